import { Client, type ClientConfig } from 'pg';
import { limits } from '../limits.ts';
import { isUnavailable, StoreUnavailable } from './unavailable.ts';

/** PostgreSQL, appendix A: read_only_sql_transaction. */
const READ_ONLY = '25006';
/** The server has no connection to spare (insufficient resources), or is starting (cannot_connect_now). */
const REFUSED = /^(?:53...|57P03)$/;
/** What PgBouncer says at its bound, without a code of its own. */
const REFUSED_TEXT = /no more connections allowed/;

export function isRefusal(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (typeof code === 'string' && REFUSED.test(code)) || REFUSED_TEXT.test(String(message));
}

/**
 * A connection that does not answer in time is closed: it may be dead without a word to either end, and would be
 * handed out again and again, each time for the whole timeout.
 */
export class MortalClient extends Client {
  /** The server only reads, as a standby does that was reached after a failover: another connection may lead to the one that writes. */
  only_reads = false;
  /** When the question was sent that is not answered yet. */
  asked_at_ms: number | undefined;
  /** The server has answered, be it with an error about the question. */
  onAnswer: () => void = () => {};
  /** Gives the connection back to its pool; `is_broken`: it is closed. */
  release: (is_broken?: boolean) => void = () => {};

  // The driver asks in one way only: by configuration, for a promise.
  override query(...question: unknown[]): never {
    const ask = super.query as (...question: unknown[]) => Promise<unknown>;
    this.asked_at_ms = performance.now();
    return ask.apply(this, question).then(
      (answer) => {
        this.#answered();
        return answer;
      },
      async (error: unknown) => {
        if (!isUnavailable(error)) this.#answered();
        // The text of pg's client.js, which has no code for it.
        if (error instanceof Error && error.message === 'Query read timeout') await this.die();
        if ((error as { code?: unknown }).code === READ_ONLY) this.only_reads = true;
        this.asked_at_ms = undefined;
        throw error;
      },
    ) as never;
  }

  /** The same with a bound of its own. */
  ask<Row>(question: { text: string; values?: unknown[]; query_timeout: number }): Promise<{ rows: Row[] }> {
    return this.query(question);
  }

  get is_usable(): boolean {
    return !this.only_reads && !this.connection.stream.destroyed;
  }

  /** Resolves when the pool would see that this connection is gone. */
  die(): Promise<void> {
    const { stream } = this.connection;
    return new Promise((resolve) => {
      if (stream.closed) resolve();
      else stream.once('close', () => resolve()).destroy();
    });
  }

  #answered(): void {
    this.asked_at_ms = undefined;
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
  /** Called for idle connections that broke; they are replaced when they are needed. */
  onConnectionLost(error: Error): void;
  /** Called for every answer of the server. */
  onAnswer(): void;
}

/**
 * The connections of one process. Who finds none free waits, within a bound of its own, for one that comes back or one that
 * is opened. A server that refuses a connection fails nobody while others are open: who waits gets one of those. After a
 * refusal one connection at a time is tried, so that a full server is not tried by everybody at once.
 */
export class PostgresPool {
  readonly #options: PostgresPoolOptions;
  readonly #open = new Set<MortalClient>();
  /** Used last, stands last. */
  #idle: MortalClient[] = [];
  #waiters: Waiter[] = [];
  #opening = 0;
  #refusal: Error | undefined;
  #retry_ms: number = limits.pool_retry_ms_min;
  #retry: NodeJS.Timeout | undefined;
  /** The next one that comes back is closed. */
  #sheds = false;
  #reaper: NodeJS.Timeout | undefined;
  #ended: PromiseWithResolvers<void> | undefined;

  constructor(options: PostgresPoolOptions) {
    this.#options = options;
  }

  get connections(): number {
    return this.#open.size;
  }

  /** First come, first served. Rejects with `StoreUnavailable` where there is none within `wait_ms`. */
  connect(wait_ms: number): Promise<MortalClient> {
    if (this.#ended) return Promise.reject(new StoreUnavailable('The store is closed'));
    const idle = this.#idle.pop();
    if (idle !== undefined) return Promise.resolve(idle);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(this.#unavailable(`No connection to the store was free within ${wait_ms} ms`));
      }, wait_ms);
      const waiter: Waiter = { resolve, reject, timer };
      this.#waiters.push(waiter);
      this.#openMore();
    });
  }

  /** Gives one connection up, unless it is the last, and opens none for a while: something else of this process needs one of a full server. */
  shed(): void {
    if (this.#open.size < 2) return;
    this.#pause(limits.pool_retry_ms_max);
    const idle = this.#idle.pop();
    if (idle === undefined) this.#sheds = true;
    else this.#close(idle);
  }

  /** Closes connections whose question was sent before this moment and is still not answered. */
  closeHanging(before_ms: number): void {
    for (const { asked_at_ms, connection } of this.#open) {
      if (asked_at_ms !== undefined && asked_at_ms < before_ms) connection.stream.destroy();
    }
  }

  /** Resolves when all connections are closed; those in use are, when they come back. */
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
    // One that breaks while it is in use fails its question; without a listener its event would end the process.
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
    this.#retry_ms = limits.pool_retry_ms_min;
    client.onAnswer = this.#options.onAnswer;
    client.release = (is_broken) => this.#takeBack(client, is_broken === true);
    this.#open.add(client);
    this.#options.onAnswer();
    this.#takeBack(client, false);
    this.#openMore();
  }

  /** Where nobody has a connection that could come back, and the server is not merely full, waiting would not help. */
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
    const wait_ms = this.#retry_ms;
    this.#retry_ms = Math.min(wait_ms * 2, limits.pool_retry_ms_max);
    this.#pause(wait_ms);
  }

  #pause(ms: number): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#openMore();
    }, ms);
  }

  #takeBack(client: MortalClient, is_broken: boolean): void {
    if (!this.#open.has(client)) return;
    const is_shed = this.#sheds && this.#open.size > 1;
    if (is_broken || is_shed || !client.is_usable || this.#ended) {
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
    // One that hangs would not answer the word of parting.
    if (client.asked_at_ms !== undefined) client.connection.stream.destroy();
    else void client.end().catch(() => undefined);
    this.#forget(client);
  }

  #forget(client: MortalClient): void {
    if (!this.#open.delete(client)) return;
    this.#idle = this.#idle.filter((one) => one !== client);
    if (this.#ended) this.#endIfDone();
    else this.#openMore();
  }

  #endIfDone(): void {
    if (this.#open.size === 0 && this.#opening === 0) this.#ended?.resolve();
  }

  /** The last one stays: on a server that is full, another process would take its place. */
  #reapLater(): void {
    if (this.#reaper !== undefined || this.#idle.length < 2) return;
    const [longest] = this.#idle;
    this.#reaper = setTimeout(() => {
      this.#reaper = undefined;
      if (longest !== undefined && this.#idle.length > 1 && this.#idle[0] === longest) this.#close(longest);
      this.#reapLater();
    }, limits.pool_idle_ms).unref();
  }
}
