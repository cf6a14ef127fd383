import type { ChangeFeed } from './change-feed.ts';
import { fileChangeFeed } from './file-change-feed.ts';
import { PostgresChangeFeed, type PostgresChangeFeedOptions } from './postgres-change-feed.ts';

/** Opens the feed that belongs to a store. */
export async function openChangeFeed(
  options: Omit<PostgresChangeFeedOptions, 'url'> & { data_dir: string; database_url: string | undefined },
): Promise<ChangeFeed> {
  const { data_dir, database_url: url, ...rest } = options;
  return url === undefined ? fileChangeFeed(data_dir) : PostgresChangeFeed.start({ url, ...rest });
}
