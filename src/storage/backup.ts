import { existsSync } from 'node:fs';
import { link, open, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../limits.ts';
import { DATABASE_FILE } from './database.ts';

/**
 * Copies the embedded store of a data directory into one file, consistent at one moment, while gateways use it. Only this
 * user may read the file. Never overwrites: the copy appears under its name complete, or not at all. Rejects with a message
 * that says what to do.
 */
export async function backUp({ data_dir, file }: { data_dir: string; file: string }): Promise<void> {
  const source = join(data_dir, DATABASE_FILE);
  if (!existsSync(source)) throw new Error(`There is no embedded store at ${source}`);
  if (existsSync(file)) throw new Error(`${file} exists; a backup never overwrites a file`);
  const folder = dirname(file);
  if (!existsSync(folder))
    throw new Error(`The folder ${folder} does not exist: create it, or choose a file in another folder`);
  const partial = `${file}.${process.pid}.partial`;
  const database = new DatabaseSync(source, { readOnly: true, timeout: limits.database_busy_ms_max });
  try {
    // As private as the store itself. SQLite writes into an empty file as if there was none.
    await writeFile(partial, '', { mode: 0o600, flag: 'wx' });
    // One read transaction in WAL mode: it neither waits for writers nor blocks them.
    database.prepare('VACUUM INTO ?').run(partial);
    const written = await open(partial, 'r');
    await written.sync();
    await written.close();
    // Unlike a rename, a link fails if the name is taken.
    await link(partial, file);
  } finally {
    database.close();
    await rm(partial, { force: true });
  }
}
