/** Kysely's driver of SQLite: one message a statement, or a whole transaction; one writer at a time. */
import { Worker } from 'node:worker_threads';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type TransactionSettings,
} from 'kysely';
import { limits } from '../limits.ts';
import { stepsOf, type TakesWholeTransactions } from './bulk.ts';
import type {
  SqliteFailure,
  SqliteOutcome,
  SqliteParameter,
  SqliteReply,
  SqliteRequest,
  SqliteWorkerOptions,
} from './sqlite-messages.ts';
import { StoreUnavailable } from './unavailable.ts';

export type Ask = SqliteRequest extends infer R ? (R extends unknown ? Omit<R, 'id'> : never) : never;

/** What SQLite said no to. `code` tells a broken uniqueness rule apart from everything else. */
export class SqliteError extends Error {
  override readonly name = 'SqliteError';
  readonly code: string | undefined;
  readonly errcode: number | undefined;

  constructor(failure: SqliteFailure, sql: string | undefined) {
    super(sql === undefined ? failure.message : `${failure.message} in: ${sql.slice(0, 200)}`);
    this.code = failure.code;
    this.errcode = failure.errcode;
  }
}

interface Waiting {
  resolve: (result: SqliteOutcome) => void;
  reject: (error: Error) => void;
  sql: string | undefined;
}

/** Where statements run. */
export interface SqliteStore {
  ask(request: Ask): Promise<SqliteOutcome>;
  close(): Promise<void>;
}

/** `file`: undefined for a store in memory. */
export function sqliteOptions(file: string | undefined): SqliteWorkerOptions {
  return { file, busy_ms: limits.database_busy_ms_max, statements_max: limits.database_statements_max };
}

/** The thread and the questions it has not answered yet. */
export class SqliteThread implements SqliteStore {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #onLost: (error: Error) => void;
  #next = 1;
  #gone: Error | undefined;
  #closing = false;

  private constructor(worker: Worker, onLost: (error: Error) => void) {
    this.#worker = worker;
    this.#onLost = onLost;
  }

  /**
   * Starts the thread and waits until the file is open; fails with SQLite's reason. `onLost` is told, once, of a thread
   * that ends although nobody closed it.
   */
  static async start(file: string, onLost: (error: Error) => void): Promise<SqliteThread> {
    // Beside this file, in TypeScript or emitted as JavaScript.
    const url = new URL('./sqlite-worker.js', import.meta.url);
    const worker = new Worker(url, { workerData: sqliteOptions(file), execArgv: [] });
    const thread = new SqliteThread(worker, onLost);
    const opened = new Promise<void>((resolve, reject) => {
      thread.#waiting.set(0, { resolve: () => resolve(), reject, sql: undefined });
    });
    worker.on('message', (reply: SqliteReply) => thread.#settle(reply));
    worker.on('error', (error) => thread.#end(error));
    worker.on('exit', () => thread.#end(undefined));
    await opened;
    return thread;
  }

  ask(request: Ask): Promise<SqliteOutcome> {
    if (this.#gone) return Promise.reject(this.#gone);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, sql: request.do === 'query' ? request.sql : undefined });
      this.#worker.postMessage({ id, ...request } satisfies SqliteRequest);
    });
  }

  async close(): Promise<void> {
    if (this.#gone) return;
    this.#closing = true;
    await this.ask({ do: 'close' });
    await this.#worker.terminate();
  }

  #settle(reply: SqliteReply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (!waiting) return;
    if ('error' in reply) waiting.reject(new SqliteError(reply.error, reply.error.sql ?? waiting.sql));
    else waiting.resolve(reply);
  }

  #end(cause: Error | undefined): void {
    if (this.#gone) return;
    this.#gone = new StoreUnavailable('The SQLite thread has ended', { cause });
    const opening = this.#waiting.get(0);
    // A thread that never began tells its reason to who started it, in its own words.
    opening?.reject(cause ?? this.#gone);
    this.#waiting.delete(0);
    for (const { reject } of this.#waiting.values()) reject(this.#gone);
    this.#waiting.clear();
    if (!opening && !this.#closing) this.#onLost(this.#gone);
  }
}

/** First come, first served; a waiter that would wait for ever (a transaction that asks for a second one) fails instead. */
class Turn {
  #held = false;
  readonly #waiters: (() => void)[] = [];

  async take(): Promise<void> {
    if (!this.#held) {
      this.#held = true;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiters.splice(this.#waiters.indexOf(enter), 1);
        reject(new StoreUnavailable(`Waited ${limits.database_turn_ms_max} ms for the SQLite write connection`));
      }, limits.database_turn_ms_max);
      const enter = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#waiters.push(enter);
    });
  }

  give(): void {
    const next = this.#waiters.shift();
    if (next) next();
    else this.#held = false;
  }
}

function isRead(query: CompiledQuery): boolean {
  return SelectQueryNode.is(query.query) || /^\s*(select|pragma)\b/i.test(query.sql);
}

class SqliteConnection implements DatabaseConnection {
  readonly #store: SqliteStore;
  readonly #writer: Turn;
  /** In memory there is one connection, so a reader must not look into somebody's open transaction. */
  readonly #readsTakeTurns: boolean;
  /** Holds the write connection until released. */
  #owns = false;
  #open = false;

  constructor(store: SqliteStore, writer: Turn, readsTakeTurns: boolean) {
    this.#store = store;
    this.#writer = writer;
    this.#readsTakeTurns = readsTakeTurns;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const steps = stepsOf(query);
    const read = steps === undefined && isRead(query) && !this.#owns;
    const takesTurn = !this.#owns && (!read || this.#readsTakeTurns);
    if (takesTurn) await this.#writer.take();
    try {
      const { rows, changes } = await this.#store.ask(
        steps === undefined
          ? {
              do: 'query',
              connection: read ? 'read' : 'write',
              sql: query.sql,
              parameters: query.parameters as readonly SqliteParameter[],
            }
          : { do: 'transact', steps },
      );
      return {
        rows: rows as R[],
        ...(changes === undefined ? {} : { numAffectedRows: BigInt(changes) }),
      };
    } finally {
      if (takesTurn) this.#writer.give();
    }
  }

  /** `reads`: sees one moment, and neither waits for other processes that write nor makes them wait. */
  async begin(reads: boolean): Promise<void> {
    await this.#writer.take();
    this.#owns = true;
    // A deferred transaction that turns into a writer fails at once when another process writes, whatever the timeout.
    await this.executeQuery(CompiledQuery.raw(reads ? 'BEGIN' : 'BEGIN IMMEDIATE'));
    this.#open = true;
  }

  async commit(): Promise<void> {
    await this.executeQuery(CompiledQuery.raw('COMMIT'));
    this.#open = false;
  }

  async rollback(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    await this.#store.ask({ do: 'reset' });
  }

  async release(): Promise<void> {
    if (!this.#owns) return;
    try {
      await this.rollback();
    } finally {
      this.#owns = false;
      this.#writer.give();
    }
  }

  // biome-ignore lint/correctness/useYield: the interface wants a generator; nothing here streams rows.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('The SQLite driver does not stream rows; page by key instead');
  }
}

class SqliteDriver implements Driver {
  readonly #store: SqliteStore;
  readonly #inMemory: boolean;
  readonly #writer = new Turn();

  constructor(store: SqliteStore, inMemory: boolean) {
    this.#store = store;
    this.#inMemory = inMemory;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<SqliteConnection> {
    return new SqliteConnection(this.#store, this.#writer, this.#inMemory);
  }

  async beginTransaction(connection: SqliteConnection, settings: TransactionSettings): Promise<void> {
    const { accessMode, isolationLevel } = settings;
    const reads = accessMode === 'read only' && isolationLevel === 'repeatable read';
    if (!reads && (accessMode || isolationLevel)) throw new Error('SQLite transactions take no such settings');
    await connection.begin(reads);
  }

  async commitTransaction(connection: SqliteConnection): Promise<void> {
    await connection.commit();
  }

  async rollbackTransaction(connection: SqliteConnection): Promise<void> {
    await connection.rollback();
  }

  async releaseConnection(connection: SqliteConnection): Promise<void> {
    await connection.release();
  }

  async destroy(): Promise<void> {
    await this.#store.close();
  }
}

/** Kysely would run one query at a time for SQLite; here readers go on beside the writer, and `Turn` orders the writers. */
class ThreadAdapter extends SqliteAdapter implements TakesWholeTransactions {
  readonly takes_whole_transactions = true;

  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

/** Kysely on the SQLite thread. */
export function sqliteDialect(store: SqliteStore, inMemory: boolean): Dialect {
  return {
    createDriver: () => new SqliteDriver(store, inMemory),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new ThreadAdapter(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  };
}
