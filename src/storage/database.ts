import { join } from 'node:path';
import { Kysely, sql } from 'kysely';
import { limits } from '../limits.ts';
import { migrate } from './migrations.ts';
import type { Tables } from './schema.ts';
import { SqliteThread, sqliteDialect } from './sqlite-driver.ts';

/** What stores ask: the database itself, or a transaction on it. */
export type Queries = Kysely<Tables>;

export interface DatabaseOptions {
  /** Where the embedded store lives; undefined: in memory. */
  data_dir?: string | undefined;
  /** A PostgreSQL server in place of the embedded store. */
  database_url?: string | undefined;
  /** Told about idle connections that broke; they are replaced. */
  onConnectionLost?: ((error: Error) => void) | undefined;
  /** Told that the embedded store's thread has ended by itself: nothing can be asked of it any more. */
  onLost?: ((error: Error) => void) | undefined;
  /** What a statement may take on PostgreSQL, migrations apart. */
  statement_ms_max?: number | undefined;
}

/** The open store. One set of queries serves both engines. */
export interface Database {
  readonly engine: 'sqlite' | 'postgres';
  readonly queries: Queries;
  /** Answers when the store answers; for readiness. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** The embedded store's file name inside the data directory. */
export const DATABASE_FILE = 'gateway.db';

/** The server a URL names, without user and password, for messages. */
function serverOf(database_url: string): string {
  try {
    const { host, pathname } = new URL(database_url);
    return `${host}${pathname}`;
  } catch {
    return 'the server named by DATABASE_URL';
  }
}

async function openPostgres(url: string, options: DatabaseOptions): Promise<Database> {
  const { onConnectionLost = () => {}, statement_ms_max = limits.database_statement_ms_max } = options;
  // Its driver is memory that the embedded store does not need.
  const { postgresDialect } = await import('./postgres-dialect.ts');
  // A migration, and the wait for another process that migrates, take as long as they take.
  const patient = new Kysely<Tables>({ dialect: postgresDialect(url, onConnectionLost, 0) });
  try {
    await migrate(patient, 'postgres');
  } finally {
    await patient.destroy();
  }
  const queries = new Kysely<Tables>({ dialect: postgresDialect(url, onConnectionLost, statement_ms_max) });
  return {
    engine: 'postgres',
    queries,
    ping: async () => void (await sql`SELECT 1`.execute(queries)),
    close: () => queries.destroy(),
  };
}

/** What SQLite said of a file that it could not open or read, with the file and what to do; any other error as it is. */
export function unopened(file: string, cause: unknown): Error {
  const { message, errcode } = cause as Error & { errcode?: number };
  // SQLITE_CORRUPT 11, SQLITE_NOTADB 26 and SQLITE_CANTOPEN 14 (sqlite.org/rescode.html), extended codes included.
  const code = (errcode ?? 0) & 0xff;
  if (code === 11 || code === 26) {
    return new Error(
      `${file} is damaged, or is no store of this program (${message}). Restore it from a backup, or set GATEWAY_DATA_DIR to another folder.`,
      { cause },
    );
  }
  if (code === 14) return new Error(`${file} cannot be opened (${message})`, { cause });
  return cause instanceof Error ? cause : new Error(String(cause));
}

async function openSqlite({ data_dir, onLost = () => {} }: DatabaseOptions): Promise<Database> {
  const file = data_dir === undefined ? undefined : join(data_dir, DATABASE_FILE);
  const fault = (error: unknown) => (file === undefined ? error : unopened(file, error));
  const thread = await SqliteThread.start(file, onLost).catch((error: unknown) => {
    throw fault(error);
  });
  const queries = new Kysely<Tables>({ dialect: sqliteDialect(thread, data_dir === undefined) });
  const close = async () => {
    await queries.destroy();
    // Kysely's destroy does nothing when no query was ever run.
    await thread.close();
  };
  try {
    await migrate(queries, 'sqlite');
  } catch (error) {
    await close().catch(() => {});
    throw fault(error);
  }
  return { engine: 'sqlite', queries, ping: async () => void (await sql`SELECT 1`.execute(queries)), close };
}

/** Opens the store and brings it to this version. Fails with a plain sentence where it cannot. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { database_url } = options;
  if (database_url === undefined) return openSqlite(options);
  try {
    return await openPostgres(database_url, options);
  } catch (error) {
    if (/ECONNREFUSED|ENOTFOUND|timeout/.test(String(error))) {
      throw new Error(`PostgreSQL at ${serverOf(database_url)} does not answer`, { cause: error });
    }
    throw error;
  }
}

/** Whether a write failed because a value that must be unique is already there. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  // SQLITE_CONSTRAINT_PRIMARYKEY 1555 and SQLITE_CONSTRAINT_UNIQUE 2067 (sqlite.org/rescode.html); unique_violation
  // 23505 (PostgreSQL, appendix A).
  return code === '23505' || errcode === 2067 || errcode === 1555;
}

/** Whether the store gave a transaction up because of another one; trying again is right. */
export function isConflict(error: unknown): boolean {
  // serialization_failure 40001, deadlock_detected 40P01 (PostgreSQL, appendix A). SQLite's writers wait for each other.
  const { code } = error as { code?: unknown };
  return code === '40001' || code === '40P01';
}

/** Whether a write failed because what it refers to, or what refers to it, is not as it was read: another transaction was faster. */
export function isReferenceViolation(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  // foreign_key_violation 23503 (PostgreSQL, appendix A); SQLITE_CONSTRAINT_FOREIGNKEY 787 (sqlite.org/rescode.html).
  return code === '23503' || errcode === 787;
}
