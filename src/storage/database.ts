import { join } from 'node:path';
import { Kysely, sql } from 'kysely';
import { limits } from '../limits.ts';
import { migrate } from './migrations.ts';
import type { Queries } from './queries.ts';
import type { Tables } from './schema.ts';
import { SqliteThread, sqliteDialect } from './sqlite-driver.ts';
import { type MachineClock, StoreClock } from './store-clock.ts';
import { StoreReach } from './store-reach.ts';

/** The timeout of one statement. */
const DATABASE_STATEMENT_MS_MAX = 30_000;

export type { Queries } from './queries.ts';

export interface DatabaseOptions {
  /** The folder of the embedded store; undefined: in memory. */
  data_dir?: string | undefined;
  /** A PostgreSQL server in place of the embedded store. */
  database_url?: string | undefined;
  /** The address of the server itself, if `database_url` is that of a pooler in transaction mode. */
  listen_url?: string | undefined;
  /** The most connections that a process opens to PostgreSQL, in addition to the one for notifications. */
  connections_max?: number | undefined;
  /** Called if an idle connection breaks; it is replaced when needed. */
  onConnectionLost?: ((error: Error) => void) | undefined;
  /** Called with undefined when the store stops answering requests, and with the length of the outage when it answers again. */
  onReach?: ((awayMs: number | undefined) => void) | undefined;
  /** Called when this machine's clock is further from the store's than `limits.store_skew_ms`. */
  onSkew?: ((skewMs: number) => void) | undefined;
  /** Default: the machine's clock. */
  clock?: MachineClock | undefined;
  /** Called if the thread of the embedded store ends unexpectedly: the store cannot be used any more. */
  onLost?: ((error: Error) => void) | undefined;
  /** The timeout of a statement on PostgreSQL; migrations have none. */
  statement_ms_max?: number | undefined;
}

/** The open store. One set of queries serves both engines. */
export interface Database {
  readonly engine: 'sqlite' | 'postgres';
  readonly queries: Queries;
  /**
   * Queries for reads that requests wait for: bounded by `limits.store_read_ms_max`, and refused while the store does not answer.
   */
  readonly prompt: Queries;
  /** The store's time. */
  readonly clock: StoreClock;
  /** Whether the store answers requests. */
  isReachable(): boolean;
  /** Closes a connection to PostgreSQL, if there are more than one: another part of this process needs it. */
  shedConnection(): void;
  /** Open connections, without the one for notifications; 0 on the embedded store. */
  connections(): number;
  /** Resolves when the store answers; for readiness. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** The embedded store's file name inside the data directory. */
export const DATABASE_FILE = 'gateway.db';

/** Milliseconds since 1970. */
const POSTGRES_TIME = 'SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now';

const machineClock: MachineClock = { nowMs: Date.now, monotonicMs: () => performance.now() };

function clockOf({ clock = machineClock, onSkew = () => {} }: DatabaseOptions): StoreClock {
  return new StoreClock(clock, onSkew);
}

/** The server in a URL, without user and password, for messages. */
function serverOf(databaseUrl: string): string {
  try {
    const { host, pathname } = new URL(databaseUrl);
    return `${host}${pathname}`;
  } catch {
    return 'the server named by DATABASE_URL';
  }
}

/** The database and schema of a connection. */
async function placeOf(queries: Queries): Promise<string | undefined> {
  const { rows } = await sql<{ place: string }>`SELECT current_database() || ' ' || current_schema() AS place`.execute(
    queries,
  );
  return rows[0]?.place;
}

async function openPostgres(url: string, options: DatabaseOptions): Promise<Database> {
  const { onConnectionLost = () => {}, onReach = () => {}, listen_url } = options;
  const { statement_ms_max = DATABASE_STATEMENT_MS_MAX } = options;
  // Loaded on demand: the embedded store does not need the memory of the driver.
  const { openPool, postgresDialect, promptDialect } = await import('./postgres-dialect.ts');
  const isPooled = listen_url !== undefined && listen_url !== url;
  // A migration, and the wait for another process that migrates, have no time limit.
  const unbounded = { statement_ms_max: 0, connections_max: 1, is_pooled: false, onConnectionLost, onAnswer: () => {} };
  const patient = new Kysely<Tables>({ dialect: postgresDialect(openPool(listen_url ?? url, unbounded)) });
  let place: string | undefined;
  try {
    place = await placeOf(patient);
    await migrate(patient, 'postgres');
  } finally {
    await patient.destroy();
  }
  const { connections_max = limits.database_connections } = options;
  const onAnswer = () => reach.answered();
  const pool = openPool(url, { statement_ms_max, connections_max, is_pooled: isPooled, onConnectionLost, onAnswer });
  const clock = clockOf(options);
  const readTime = async () => {
    const client = await pool.connect(limits.store_read_ms_max);
    try {
      const sentMs = clock.monotonicMs();
      const query = { text: POSTGRES_TIME, query_timeout: limits.store_read_ms_max };
      const { rows } = await client.run<{ now: number }>(query);
      for (const { now } of rows) clock.adjust(now, sentMs);
    } finally {
      client.release();
    }
  };
  const reach = new StoreReach({
    probe: readTime,
    onChange(awayMs) {
      onReach(awayMs);
      if (awayMs === undefined) return;
      // A query from before the outage that is not answered by then is on a dead connection.
      const beforeMs = performance.now();
      setTimeout(() => pool.closeHanging(beforeMs), limits.store_read_ms_max).unref();
    },
  });
  const queries = new Kysely<Tables>({ dialect: postgresDialect(pool) });
  const prompt = new Kysely<Tables>({ dialect: promptDialect(pool, reach) });
  const close = async () => {
    reach.stop();
    await prompt.destroy();
    await queries.destroy();
    // Kysely's destroy does nothing when no query was ever run.
    await pool.end();
  };
  try {
    await readTime();
    if (isPooled && place !== (await placeOf(queries))) {
      throw new Error(
        'DATABASE_LISTEN_URL leads to another database or schema than DATABASE_URL. Use the same in both.',
      );
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    engine: 'postgres',
    queries,
    prompt,
    clock,
    isReachable: () => !reach.is_away,
    shedConnection: () => pool.shed(),
    connections: () => pool.connections,
    ping: async () => void (await sql`SELECT 1`.execute(prompt)),
    close,
  };
}

/** A failure to open or read an SQLite file, with the file and what to do; any other error unchanged. */
export function unopened(file: string, cause: unknown): Error {
  const { message, errcode } = cause as Error & { errcode?: number };
  // SQLITE_CORRUPT 11, SQLITE_NOTADB 26 and SQLITE_CANTOPEN 14 (sqlite.org/rescode.html), extended codes included.
  const code = (errcode ?? 0) & 0xff;
  if (code === 11 || code === 26) {
    return new Error(
      `${file} is damaged, or is not a store of this program (${message}). Restore it from a backup, or set GATEWAY_DATA_DIR to another folder.`,
      { cause },
    );
  }
  if (code === 14) return new Error(`${file} cannot be opened (${message})`, { cause });
  return cause instanceof Error ? cause : new Error(String(cause));
}

async function openSqlite(options: DatabaseOptions): Promise<Database> {
  const { data_dir, onLost = () => {} } = options;
  const file = data_dir === undefined ? undefined : join(data_dir, DATABASE_FILE);
  const fault = (error: unknown) => (file === undefined ? error : unopened(file, error));
  // Used by tests and benchmarks: not loaded if the store is a file.
  const memory = file === undefined ? (await import('./sqlite-memory.ts')).openSqliteMemory() : undefined;
  const store =
    memory ??
    (await SqliteThread.start(file!, onLost).catch((error: unknown) => {
      throw fault(error);
    }));
  const queries = new Kysely<Tables>({ dialect: sqliteDialect(store, data_dir === undefined) });
  const close = async () => {
    await queries.destroy();
    // Kysely's destroy does nothing when no query was ever run.
    await store.close();
  };
  try {
    await migrate(queries, 'sqlite');
    memory?.keepMigrated();
  } catch (error) {
    await close().catch(() => {});
    throw fault(error);
  }
  const ping = async () => void (await sql`SELECT 1`.execute(queries));
  // The store is on this machine: it has the machine's time, and answers while its thread runs.
  const here = { clock: clockOf(options), isReachable: () => true, connections: () => 0, shedConnection() {} };
  return { engine: 'sqlite', queries, prompt: queries, ...here, ping, close };
}

/** Opens the store and migrates it to this version. Rejects with a message that says what is wrong and what to do. */
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

/** Whether a write failed because a unique value exists already. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  // SQLITE_CONSTRAINT_PRIMARYKEY 1555 and SQLITE_CONSTRAINT_UNIQUE 2067 (sqlite.org/rescode.html); unique_violation
  // 23505 (PostgreSQL, appendix A).
  return code === '23505' || errcode === 2067 || errcode === 1555;
}

/** Whether the store aborted a transaction because of a concurrent one: it may be retried. */
export function isConflict(error: unknown): boolean {
  // serialization_failure 40001, deadlock_detected 40P01 (PostgreSQL, appendix A). SQLite's writers wait for each other.
  const { code } = error as { code?: unknown };
  return code === '40001' || code === '40P01';
}

/** Whether a write failed because a referenced or referencing row has changed since it was read, in another transaction. */
export function isReferenceViolation(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  // foreign_key_violation 23503 (PostgreSQL, appendix A); SQLITE_CONSTRAINT_FOREIGNKEY 787 (sqlite.org/rescode.html).
  return code === '23503' || errcode === 787;
}
