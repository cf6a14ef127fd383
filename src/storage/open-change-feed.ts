import type { ChangeFeed } from './change-feed.ts';
import { fileChangeFeed } from './file-change-feed.ts';
import type { PostgresChangeFeedOptions } from './postgres-change-feed.ts';

/** Opens the change feed of a store. */
export async function openChangeFeed(
  options: Omit<PostgresChangeFeedOptions, 'url'> & {
    data_dir: string;
    /** The address of the server itself, not of a pooler. Undefined for the embedded store. */
    database_url: string | undefined;
  },
): Promise<ChangeFeed> {
  const { data_dir, database_url: url, ...rest } = options;
  if (url === undefined) return fileChangeFeed(data_dir);
  const { PostgresChangeFeed } = await import('./postgres-change-feed.ts');
  return PostgresChangeFeed.start({ url, ...rest });
}
