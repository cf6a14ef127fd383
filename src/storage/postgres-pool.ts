import { Client, type ClientConfig } from 'pg';
import { isUnavailable, StoreUnavailable } from './unavailable.ts';

/** The wait before the next connection after a server refused one: doubled from the first value to the last. */
const POOL_RETRY_MS_MIN = 50;
const POOL_RETRY_MS_MAX = 1_000;
/** The idle time after which a connection is closed, unless it is the last. */
const POOL_IDLE_MS = 10_000;

/** PostgreSQL, appendix A: read_only_sql_transaction. */
const READ_ONLY = '25006';
/** The server has no free connection (insufficient resources), or is starting (cannot_connect_now). */
const REFUSED = /^(?:53...|57P03)$/;
/** PgBouncer's message at its limit, which has no code of its own. */
const REFUSED_TEXT = /no more connections allowed/;
/** Whether a connection was refused because the server is full or starting. */
export function isRefusal(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (typeof code === 'string' && REFUSED.test(code)) || REFUSED_TEXT.test(String(message));
}

/**
 * A connection that is closed if it does not answer in time: it may be dead without either end knowing, and would be lent
 * again and again, each time for the whole timeout.
 */
export class MortalClient extends Client {
  /** The server is read-only, for example a standby after a failover: a new connection may lead to the primary. */
  onlyReads = false;
  /** When the running query was sent; undefined if none is running. */
  sentAtMs: number | undefined;
  /** Called when the server has answered, also with an error about the query. */
  onAnswer: () => void = () => {};
  /** Returns the connection to its pool; `isBroken`: it is closed. */
  release: (isBroken?: boolean) => void = () => {};
  // Kysely's driver calls it in one way only: with a configuration, for a promise.
  override query(...parameters: unknown[]): never {
    const run = super.query as (...parameters: unknown[]) => Promise<unknown>;
    this.sentAtMs = performance.now();
    return run.apply(this, parameters).then(
      (answer) => {
        this.#answered();
        return answer;
      },
      async (error: unknown) => {
        if (!isUnavailable(error)) this.#answered();
        // The message in pg's client.js, which has no code for it.
        if (error instanceof Error && error.message === 'Query read timeout') await this.die();
        if ((error as { code?: unknown }).code === READ_ONLY) this.onlyReads = true;
        this.sentAtMs = undefined;
        throw error;
      },
    ) as never;
  }

  /** Runs a query with a timeout of its own. */
  run<Row>(query: { text: string; values?: unknown[]; query_timeout: number }): Promise<{ rows: Row[] }> {
    return this.query(query);
  }

  get isUsable(): boolean {
    return !this.onlyReads && !this.connection.stream.destroyed;
  }

  /** Closes the connection. Resolves when the pool can see that it is closed. */
  die(): Promise<void> {
    const { stream } = this.connection;
    return new Promise((resolve) => {
      if (stream.closed) resolve();
      else stream.once('close', () => resolve()).destroy();
    });
  }

  #answered(): void {
    this.sentAtMs = undefined;
    this.onAnswer();
  }
}

interface Waiter {
  resolve(client: MortalClient): void;
  reject(error: Error): void;
  timer: NodeJS.Timeout;
}

export interface PostgresPoolOptions {
  client: ClientConfig;
  connections_max: number;
  /** Called if an idle connection breaks; it is replaced when needed. */
  onConnectionLost(error: Error): void;
  /** Called for every answer of the server. */
  onAnswer(): void;
}

/**
 * The connections of one process. If none is free, a caller waits, for a limited time, until one is returned or opened. If
 * the server refuses a connection while others are open, callers wait for one of those. After a refusal one connection at a
 * time is tried, so that processes do not overload a full server.
 */
export class PostgresPool {
  readonly #options: PostgresPoolOptions;
  readonly #open = new Set<MortalClient>();
  /** The last used one is last. */
  #idle: MortalClient[] = [];
  #waiters: Waiter[] = [];
  #opening = 0;
  #refusal: Error | undefined;
  #retryMs: number = POOL_RETRY_MS_MIN;
  #retry: NodeJS.Timeout | undefined;
  /** The next connection that is returned is closed. */
  #sheds = false;
  #reaper: NodeJS.Timeout | undefined;
  #ended: PromiseWithResolvers<void> | undefined;

  constructor(options: PostgresPoolOptions) {
    this.#options = options;
  }

  get connections(): number {
    return this.#open.size;
  }

  /** First come, first served. Rejects with `StoreUnavailable` if none is free within `waitMs`. */
  connect(waitMs: number): Promise<MortalClient> {
    if (this.#ended) return Promise.reject(new StoreUnavailable('The store is closed'));
    const idle = this.#idle.pop();
    if (idle !== undefined) return Promise.resolve(idle);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(this.#unavailable(`No connection to the store was free within ${waitMs} ms`));
      }, waitMs);
      const waiter: Waiter = { resolve, reject, timer };
      this.#waiters.push(waiter);
      this.#openMore();
    });
  }

  /** Closes one connection, unless it is the last, and opens none for a while: another part of this process needs one of a full server. */
  shed(): void {
    if (this.#open.size < 2) return;
    this.#pause(POOL_RETRY_MS_MAX);
    const idle = this.#idle.pop();
    if (idle === undefined) this.#sheds = true;
    else this.#close(idle);
  }

  /** Closes connections whose running query was sent before this moment. */
  closeHanging(beforeMs: number): void {
    for (const { sentAtMs, connection } of this.#open) {
      if (sentAtMs !== undefined && sentAtMs < beforeMs) connection.stream.destroy();
    }
  }

  /** Closes all connections, those in use when they are returned. Resolves when all are closed. */
  end(): Promise<void> {
    if (this.#ended) return this.#ended.promise;
    this.#ended = Promise.withResolvers();
    clearTimeout(this.#retry);
    clearTimeout(this.#reaper);
    this.#rejectAll(new StoreUnavailable('The store is closed'));
    for (const client of this.#idle.splice(0)) this.#close(client);
    this.#endIfDone();
    return this.#ended.promise;
  }

  #unavailable(otherwise: string): StoreUnavailable {
    const cause = this.#refusal;
    return cause === undefined ? new StoreUnavailable(otherwise) : new StoreUnavailable(cause.message, { cause });
  }

  #rejectAll(error: Error): void {
    for (const { reject, timer } of this.#waiters.splice(0)) {
      clearTimeout(timer);
      reject(error);
    }
  }

  #openMore(): void {
    while (
      this.#ended === undefined &&
      this.#waiters.length > this.#opening &&
      this.#open.size + this.#opening < this.#options.connections_max
    ) {
      if (this.#retry !== undefined || (this.#refusal !== undefined && this.#opening > 0)) return;
      void this.#openOne();
    }
  }

  async #openOne(): Promise<void> {
    this.#opening += 1;
    const client = new MortalClient(this.#options.client);
    // If it breaks while in use, its query fails; without a listener the event would end the process.
    client.on('error', (error) => {
      if (this.#idle.includes(client)) this.#options.onConnectionLost(error);
    });
    client.once('end', () => this.#forget(client));
    try {
      await client.connect();
    } catch (error) {
      this.#opening -= 1;
      this.#notOpened(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.#opening -= 1;
    this.#refusal = undefined;
    this.#retryMs = POOL_RETRY_MS_MIN;
    client.onAnswer = this.#options.onAnswer;
    client.release = (isBroken) => this.#takeBack(client, isBroken === true);
    this.#open.add(client);
    this.#options.onAnswer();
    this.#takeBack(client, false);
    this.#openMore();
  }

  /** Fails the waiting callers if no open connection could be returned and the server is not merely full; otherwise retries later. */
  #notOpened(error: Error): void {
    this.#refusal = error;
    if (this.#ended) {
      this.#endIfDone();
      return;
    }
    if (this.#open.size === 0 && !isRefusal(error)) {
      this.#rejectAll(this.#unavailable(error.message));
      return;
    }
    const waitMs = this.#retryMs;
    this.#retryMs = Math.min(waitMs * 2, POOL_RETRY_MS_MAX);
    this.#pause(waitMs);
  }

  #pause(ms: number): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#openMore();
    }, ms);
  }

  #takeBack(client: MortalClient, isBroken: boolean): void {
    if (!this.#open.has(client)) return;
    const isShed = this.#sheds && this.#open.size > 1;
    if (isBroken || isShed || !client.isUsable || this.#ended) {
      this.#sheds = false;
      this.#close(client);
      this.#openMore();
      return;
    }
    const waiter = this.#waiters.shift();
    if (waiter === undefined) {
      this.#idle.push(client);
      this.#reapLater();
      return;
    }
    clearTimeout(waiter.timer);
    waiter.resolve(client);
  }

  #close(client: MortalClient): void {
    // A hanging connection would not answer the protocol's termination message.
    if (client.sentAtMs !== undefined) client.connection.stream.destroy();
    else void client.end().catch(() => undefined);
    this.#forget(client);
  }

  #forget(client: MortalClient): void {
    if (!this.#open.delete(client)) return;
    this.#idle = this.#idle.filter((other) => other !== client);
    if (this.#ended) this.#endIfDone();
    else this.#openMore();
  }

  #endIfDone(): void {
    if (this.#open.size === 0 && this.#opening === 0) this.#ended?.resolve();
  }

  /** Closes connections that are idle for long. The last one stays: on a full server, another process would take its place. */
  #reapLater(): void {
    if (this.#reaper !== undefined || this.#idle.length < 2) return;
    const [longest] = this.#idle;
    this.#reaper = setTimeout(() => {
      this.#reaper = undefined;
      if (longest !== undefined && this.#idle.length > 1 && this.#idle[0] === longest) this.#close(longest);
      this.#reapLater();
    }, POOL_IDLE_MS).unref();
  }
}
