import { join } from 'node:path';
import { Kysely, sql } from 'kysely';
import { limits } from '../limits.ts';
import { migrate } from './migrations.ts';
import type { Tables } from './schema.ts';
import { SqliteThread, sqliteDialect } from './sqlite-driver.ts';
import { type MachineClock, StoreClock } from './store-clock.ts';
import { StoreReach } from './store-reach.ts';

/** What stores ask: the database itself, or a transaction on it. */
export type Queries = Kysely<Tables>;

export interface DatabaseOptions {
  /** Where the embedded store lives; undefined: in memory. */
  data_dir?: string | undefined;
  /** A PostgreSQL server in place of the embedded store. */
  database_url?: string | undefined;
  /** Where `database_url` leads to a pooler that hands servers out by the transaction: the server itself. */
  listen_url?: string | undefined;
  /** How many connections a process opens to PostgreSQL, beside the one for notifications. */
  connections_max?: number | undefined;
  /** Told about idle connections that broke; they are replaced. */
  onConnectionLost?: ((error: Error) => void) | undefined;
  /** Called when the store stops answering requests, and with how long it was away when it answers again. */
  onReach?: ((away_ms: number | undefined) => void) | undefined;
  /** Called when this machine's clock is further from the store's than `limits.store_skew_ms`. */
  onSkew?: ((skew_ms: number) => void) | undefined;
  /** Default: the machine's. */
  clock?: MachineClock | undefined;
  /** Told that the embedded store's thread has ended by itself: nothing can be asked of it any more. */
  onLost?: ((error: Error) => void) | undefined;
  /** What a statement may take on PostgreSQL, migrations apart. */
  statement_ms_max?: number | undefined;
}

/** The open store. One set of queries serves both engines. */
export interface Database {
  readonly engine: 'sqlite' | 'postgres';
  readonly queries: Queries;
  /** The same for what requests wait for: bounded by `limits.store_read_ms_max`, and refused while the store does not answer. */
  readonly prompt: Queries;
  /** The store's time. */
  readonly clock: StoreClock;
  /** False: the store does not answer requests. */
  isReachable(): boolean;
  /** Gives up a connection to PostgreSQL, where it has more than one: another part of this process needs it. */
  shedConnection(): void;
  /** Open now, the one for notifications apart; 0 on the embedded store. */
  connections(): number;
  /** Answers when the store answers; for readiness. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** The embedded store's file name inside the data directory. */
export const DATABASE_FILE = 'gateway.db';

/** Milliseconds since 1970. */
const POSTGRES_TIME = 'SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now';

const machineClock: MachineClock = { now_ms: Date.now, monotonic_ms: () => performance.now() };

function clockOf({ clock = machineClock, onSkew = () => {} }: DatabaseOptions): StoreClock {
  return new StoreClock(clock, onSkew);
}

/** The server a URL names, without user and password, for messages. */
function serverOf(database_url: string): string {
  try {
    const { host, pathname } = new URL(database_url);
    return `${host}${pathname}`;
  } catch {
    return 'the server named by DATABASE_URL';
  }
}

/** Which database and schema a connection is in. */
async function placeOf(queries: Queries): Promise<string | undefined> {
  const { rows } = await sql<{ place: string }>`SELECT current_database() || ' ' || current_schema() AS place`.execute(
    queries,
  );
  return rows[0]?.place;
}

async function openPostgres(url: string, options: DatabaseOptions): Promise<Database> {
  const { onConnectionLost = () => {}, onReach = () => {}, listen_url } = options;
  const { statement_ms_max = limits.database_statement_ms_max } = options;
  // Its driver is memory that the embedded store does not need.
  const { openPool, postgresDialect, promptDialect } = await import('./postgres-dialect.ts');
  const is_pooled = listen_url !== undefined && listen_url !== url;
  // A migration, and the wait for another process that migrates, take as long as they take.
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
  const onAnswer = () => reach.heard();
  const pool = openPool(url, { statement_ms_max, connections_max, is_pooled, onConnectionLost, onAnswer });
  const clock = clockOf(options);
  const tellTime = async () => {
    const client = await pool.connect(limits.store_read_ms_max);
    try {
      const sent_ms = clock.monotonic_ms();
      const question = { text: POSTGRES_TIME, query_timeout: limits.store_read_ms_max };
      const { rows } = await client.ask<{ now: number }>(question);
      for (const { now } of rows) clock.adjust(now, sent_ms);
    } finally {
      client.release();
    }
  };
  const reach = new StoreReach({
    probe: tellTime,
    onChange(away_ms) {
      onReach(away_ms);
      if (away_ms === undefined) return;
      // Questions of before that are still not answered then are on connections that lead nowhere any more.
      const before_ms = performance.now();
      setTimeout(() => pool.closeHanging(before_ms), limits.store_read_ms_max).unref();
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
    await tellTime();
    if (is_pooled && place !== (await placeOf(queries))) {
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

/** What SQLite said of a file that it could not open or read, with the file and what to do; any other error as it is. */
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
  const store =
    file === undefined
      ? // Of tests and benchmarks: nothing of it is loaded where a file is the store.
        (await import('./sqlite-memory.ts')).openSqliteMemory()
      : await SqliteThread.start(file, onLost).catch((error: unknown) => {
          throw fault(error);
        });
  const queries = new Kysely<Tables>({ dialect: sqliteDialect(store, data_dir === undefined) });
  const close = async () => {
    await queries.destroy();
    // Kysely's destroy does nothing when no query was ever run.
    await store.close();
  };
  try {
    await migrate(queries, 'sqlite');
  } catch (error) {
    await close().catch(() => {});
    throw fault(error);
  }
  const ping = async () => void (await sql`SELECT 1`.execute(queries));
  // The store is on this machine: its time is the machine's, and it answers as long as its thread is there.
  const here = { clock: clockOf(options), isReachable: () => true, connections: () => 0, shedConnection() {} };
  return { engine: 'sqlite', queries, prompt: queries, ...here, ping, close };
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
