import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../limits.ts';
import { DATABASE_FILE, unopened } from './database.ts';
import { verifyMigrations } from './migrations.ts';

/** The error with which a gateway would refuse the embedded store of a data directory; undefined if it would open it. Writes nothing. */
export async function storeFault(dataDir: string): Promise<string | undefined> {
  const file = join(dataDir, DATABASE_FILE);
  if (!existsSync(file)) return undefined;
  try {
    const database = new DatabaseSync(file, { readOnly: true, timeout: limits.database_busy_ms_max });
    try {
      const isMigrated =
        database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").get() !== undefined;
      const applied = isMigrated ? database.prepare('SELECT name, checksum FROM schema_migrations').all() : [];
      await verifyMigrations(applied as { name: string; checksum: string }[]);
    } finally {
      database.close();
    }
    return undefined;
  } catch (error) {
    return unopened(file, error).message;
  }
}
