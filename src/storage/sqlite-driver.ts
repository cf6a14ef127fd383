/** Kysely's driver of SQLite: one message for a statement or a whole transaction; one writer at a time. */
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

/** How long a statement waits for the process's one SQLite writer. */
const DATABASE_TURN_MS_MAX = 30_000;
/** Prepared statements kept per SQLite connection. */
export const DATABASE_STATEMENTS_MAX = 100;

/** A request without its id. */
export type SqliteCommand = SqliteRequest extends infer R ? (R extends unknown ? Omit<R, 'id'> : never) : never;

/** An error of SQLite. `code` distinguishes a unique violation from others. */
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
  id: number;
  resolve: (result: SqliteOutcome) => void;
  reject: (error: Error) => void;
  sql: string | undefined;
}

/** Runs statements. */
export interface SqliteStore {
  run(command: SqliteCommand): Promise<SqliteOutcome>;
  close(): Promise<void>;
}

/** The SQLite thread, and the requests that it has not answered yet. */
export class SqliteThread implements SqliteStore {
  readonly #worker: Worker;
  /** In the order of the requests, which is that of the answers. Not a Map, whose tables would keep what was answered: see `RunningRequests`. */
  readonly #waiting: Waiting[] = [];
  readonly #onLost: (error: Error) => void;
  #next = 1;
  #ended: Error | undefined;
  #closing = false;

  private constructor(worker: Worker, onLost: (error: Error) => void) {
    this.#worker = worker;
    this.#onLost = onLost;
  }

  /**
   * Starts the thread and waits until the file is open; rejects with SQLite's error. `onLost` is called once if the thread
   * ends without having been closed.
   */
  static async start(file: string, onLost: (error: Error) => void): Promise<SqliteThread> {
    // Beside this file, as TypeScript or compiled to JavaScript.
    const url = new URL('./sqlite-worker.js', import.meta.url);
    const workerData = { file, busy_ms: limits.database_busy_ms_max, statements_max: DATABASE_STATEMENTS_MAX };
    const worker = new Worker(url, { workerData: workerData satisfies SqliteWorkerOptions, execArgv: [] });
    const thread = new SqliteThread(worker, onLost);
    const opened = new Promise<void>((resolve, reject) => {
      thread.#waiting.push({ id: 0, resolve: () => resolve(), reject, sql: undefined });
    });
    worker.on('message', (reply: SqliteReply) => thread.#settle(reply));
    worker.on('error', (error) => thread.#end(error));
    worker.on('exit', () => thread.#end(undefined));
    await opened;
    return thread;
  }

  run(command: SqliteCommand): Promise<SqliteOutcome> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, resolve, reject, sql: command.do === 'query' ? command.sql : undefined });
      this.#worker.postMessage({ id, ...command } satisfies SqliteRequest);
    });
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    this.#closing = true;
    await this.run({ do: 'close' });
    await this.#worker.terminate();
  }

  #settle(reply: SqliteReply): void {
    const at = this.#waiting.findIndex(({ id }) => id === reply.id);
    if (at === -1) return;
    const [waiting] = this.#waiting.splice(at, 1) as [Waiting];
    if ('error' in reply) waiting.reject(new SqliteError(reply.error, reply.error.sql ?? waiting.sql));
    else waiting.resolve(reply);
  }

  #end(cause: Error | undefined): void {
    if (this.#ended) return;
    this.#ended = new StoreUnavailable('The SQLite thread has ended', { cause });
    let isOpening = false;
    for (const { id, reject } of this.#waiting.splice(0)) {
      // If the thread never started, its error goes unchanged to the caller of `start`.
      reject(id === 0 ? (cause ?? this.#ended) : this.#ended);
      isOpening ||= id === 0;
    }
    if (!isOpening && !this.#closing) this.#onLost(this.#ended);
  }
}

/** A lock, first come, first served. A waiter rejects after `database_turn_ms_max`: a transaction that begins a second one would wait for ever. */
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
        reject(new StoreUnavailable(`Waited ${DATABASE_TURN_MS_MAX} ms for the SQLite write connection`));
      }, DATABASE_TURN_MS_MAX);
      const enter = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#waiters.push(enter);
    });
  }

  release(): void {
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
  /** In memory there is one connection, so reads must not run inside another caller's open transaction. */
  readonly #readsTakeTurns: boolean;
  /** Whether this connection has the write lock, which it keeps until released. */
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
      const { rows, changes } = await this.#store.run(
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
      if (takesTurn) this.#writer.release();
    }
  }

  /** `reads`: a read transaction, which sees one moment and neither waits for writers of other processes nor blocks them. */
  async begin(reads: boolean): Promise<void> {
    await this.#writer.take();
    this.#owns = true;
    // A deferred transaction that becomes a writer fails at once if another process writes, whatever the timeout.
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
    await this.#store.run({ do: 'reset' });
  }

  async release(): Promise<void> {
    if (!this.#owns) return;
    try {
      await this.rollback();
    } finally {
      this.#owns = false;
      this.#writer.release();
    }
  }

  streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
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

/** By default Kysely runs one query at a time on SQLite; here reads run beside the writer, and `Turn` orders the writers. */
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
