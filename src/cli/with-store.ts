import { type Change, createChange } from '../api/change.ts';
import type { Config } from '../config.ts';
import type { Actor } from '../storage/audit.ts';
import { type Database, type DatabaseOptions, openDatabase } from '../storage/database.ts';
import { openChangeFeed } from '../storage/open-change-feed.ts';
import type { Home } from '../storage/organizations.ts';
import { prepareDataDir } from './data-dir.ts';
import { firstHome } from './first-start.ts';
import { systemClock } from './system-clock.ts';

/** The addresses of the configured store. */
export function databaseOf(config: Config): Pick<DatabaseOptions, 'database_url' | 'listen_url' | 'connections_max'> {
  const { database_url, listen_url, database_connections: connectionsMax } = config;
  return { database_url, listen_url, connections_max: connectionsMax };
}

/** The dependencies of a command: the configured store, and the way to change it. */
export interface OpenStore {
  database: Database;
  home: Home;
  change: Change;
  /** The actor in the audit log. */
  actor: Actor;
}

/** Opens the configured store, whether or not the gateway runs, and closes it after `run`. */
export async function withStore<T>(
  config: Config,
  run: (store: OpenStore) => Promise<T>,
  options: Pick<DatabaseOptions, 'statement_ms_max'> = {},
): Promise<T> {
  prepareDataDir(config.data_dir);
  const { data_dir } = config;
  const database = await openDatabase({ data_dir, ...databaseOf(config), ...options });
  try {
    const home = await firstHome(database, systemClock);
    const changes = await openChangeFeed({ data_dir, database_url: config.database_url, listens: false });
    try {
      const change = createChange({ database, changes, now: database.clock.nowMs });
      const { organization_id, owner_user_id: userId } = home;
      const actor: Actor = { organization_id, actor: 'command', key_hash: null, user_id: userId, request_id: null };
      return await run({ database, home, change, actor });
    } finally {
      await changes.stop();
    }
  } finally {
    await database.close();
  }
}
