import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { Client } from 'pg';
import { limits } from '../limits.ts';
import { type Announcement, type ChangeFeed, urgent } from './change-feed.ts';
import { isRefusal } from './postgres-pool.ts';
import type { Queries } from './queries.ts';
import type { MachineClock } from './store-clock.ts';

/** How long a revocation waits for nodes that do not confirm it. */
export const ANNOUNCE_MS_MAX = 1_000;
/** The interval at which a serving node sends itself a message through PostgreSQL, and the idle time after which it stops. */
export const FEED_BEAT_MS = 150;
const FEED_REST_MS = 10_000;
/** The time without the return of a message after which a warning is logged. */
export const FEED_WARN_MS = 5_000;
/** The wait before a broken connection for notifications is opened again: doubled from the first value to the last. */
const FEED_RETRY_MS_MIN = 100;
const FEED_RETRY_MS_MAX = 5_000;

const machineClock: MachineClock = { nowMs: Date.now, monotonicMs: () => performance.now() };

export interface PostgresChangeFeedOptions {
  url: string;
  /** Default: the machine's. */
  clock?: MachineClock | undefined;
  /** False if this process only makes changes and caches nothing. */
  listens: boolean;
  /** If changes are sent through a pooler, its queries: a message sent through them must arrive before the cache is used. */
  through?: Queries | undefined;
  /** Whether the cache must stay current at all times. The node then sends beats even while it serves no requests. */
  is_restless?: boolean | undefined;
  /** Called with the store's time, and the moment at which it was requested. */
  onTime?: ((storeMs: number, sentMs: number) => void) | undefined;
  /** Called if the server has no free connection. */
  onRefused?: (() => void) | undefined;
  /** Called if notifications do not arrive, so that caches are bypassed; `onReturn` when they arrive again. */
  onSilence?: ((reason: string) => void) | undefined;
  onReturn?: (() => void) | undefined;
}

/** The messages between nodes, on one channel, so that they have one order. */
type Message =
  | { is: 'beat'; from: string; sent_ms: number; offset_ms?: number }
  | { is: 'change'; topic: Announcement['topic']; id: string }
  /** A node that receives this has received every change that was committed before. */
  | { is: 'ask'; from: string; number: number }
  /** Sent on the same way as changes. */
  | { is: 'proof'; from: string }
  | { is: 'answer'; from: string; to: string; number: number };

type Listener = (change: Announcement | 'everything') => void;

/** A change that waits for answers. The nodes that must answer are known once the node has received its own `ask`. */
interface Question {
  missing: Set<string> | undefined;
  resolve: () => void;
}

/** A notification reaches the whole database; nodes on one schema share a channel. Not md5, which some servers refuse. */
const CHANNEL = `'gateway_' || substr(encode(sha256(convert_to(current_schema(), 'UTF8')), 'hex'), 1, 32)`;

/** Sends a message; returns the server's time at that moment. */
const NOTIFY = 'SELECT pg_notify($1, $2), CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now';

/**
 * The feed of nodes that share a PostgreSQL server, by its notifications. These reach every listener in the order of the
 * commits (PostgreSQL, NOTIFY), on which everything here relies:
 *
 * - Each serving node sends beats to itself. When a beat comes back, the node has received everything that was committed
 *   before it was sent. The node uses its cache for `feed_silence_ms_max` from the moment of sending (a slow connection is
 *   noticed), and reads from the store after it, without a connection, and before the first beat has come back. A suspended
 *   machine may not have counted that time: then its two clocks have diverged since the beat.
 * - A change is sent in its transaction. After the commit its node sends `ask` to all nodes; a node that answers has received
 *   the change. All nodes that may still use older entries have sent a beat before the `ask` came back, so the node waits for
 *   their answers. A node that does not answer stops using its cache before `announce_ms_max` has passed.
 */
export class PostgresChangeFeed implements ChangeFeed {
  readonly #options: PostgresChangeFeedOptions;
  readonly #clock: MachineClock;
  readonly #instance = randomUUID();
  readonly #listeners: Listener[] = [];
  /** When the last beat of each node was received, this one's included. */
  readonly #beaten = new Map<string, number>();
  readonly #questions = new Map<number, Question>();
  #lastQuestion = 0;
  #client: Client | undefined;
  #channel = '';
  #listeningSinceMs = Number.POSITIVE_INFINITY;
  /** When the last own beat that came back was sent. */
  #currentAtMs = Number.NEGATIVE_INFINITY;
  /** The same; kept when the connection is lost. */
  #currentUntilMs = Number.NEGATIVE_INFINITY;
  /** Messages that are sent through the pooler arrive here. */
  #isProven = false;
  /** The wall clock minus the monotonic clock at that beat. */
  #currentOffsetMs = 0;
  #neededAtMs = Number.NEGATIVE_INFINITY;
  #beating = false;
  /** When the first of the beats was sent that have not come back. */
  #silentSinceMs: number | undefined;
  #warned = false;
  /** The connection leads to a pooler: it would pass on the node's own messages, and perhaps no others. */
  #pooled = false;
  /** Queues the queries: the connection runs one at a time. */
  #line: Promise<unknown> = Promise.resolve();
  #retryMs: number = FEED_RETRY_MS_MIN;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  private constructor(options: PostgresChangeFeedOptions) {
    this.#options = options;
    this.#clock = options.clock ?? machineClock;
  }

  /** Starts listening, and retries if that fails: until it succeeds, no cache is used. */
  static async start(options: PostgresChangeFeedOptions): Promise<PostgresChangeFeed> {
    const feed = new PostgresChangeFeed(options);
    if (options.listens) {
      await feed.#connect();
      feed.#timer = setInterval(() => feed.#tick(), FEED_BEAT_MS).unref();
    }
    return feed;
  }

  async note(tx: Queries, changes: readonly Announcement[]): Promise<void> {
    if (changes.length === 0) return;
    const texts = changes.map(({ topic, id }) => JSON.stringify({ is: 'change', topic, id } satisfies Message));
    await sql`SELECT pg_notify(${sql.raw(CHANNEL)}, text) FROM unnest(${texts}::text[]) AS text`.execute(tx);
  }

  async deliver(changes: readonly Announcement[]): Promise<void> {
    for (const change of changes) this.#notifyListeners(change);
    if (urgent(changes).length === 0) return;
    this.#lastQuestion += 1;
    const number = this.#lastQuestion;
    let timer: NodeJS.Timeout | undefined;
    const bound = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ANNOUNCE_MS_MAX);
    });
    const answers = new Promise<void>((resolve) => {
      this.#questions.set(number, { missing: undefined, resolve });
      this.#send({ is: 'ask', from: this.#instance, number });
    });
    await Promise.race([answers, bound]);
    clearTimeout(timer);
    this.#questions.delete(number);
  }

  listen(listener: Listener): void {
    this.#listeners.push(listener);
  }

  current(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const wasIdle = nowMs - this.#neededAtMs > FEED_REST_MS;
    this.#neededAtMs = nowMs;
    if (wasIdle) this.#beat();
    if (nowMs - this.#currentAtMs >= limits.feed_silence_ms_max) return false;
    return Math.abs(this.#offsetMs() - this.#currentOffsetMs) <= limits.feed_clocks_ms_max;
  }

  currentUntilMs(): number {
    return this.#currentUntilMs;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    const client = this.#client;
    this.#forgetConnection();
    await client?.end();
  }

  async #connect(): Promise<void> {
    const client = new Client({
      connectionString: this.#options.url,
      connectionTimeoutMillis: limits.database_connect_ms_max,
      // On a dead connection that was not closed, no beat is answered.
      query_timeout: limits.database_connect_ms_max,
      keepAlive: true,
      application_name: 'model-gateway changes',
    });
    let isOver = false;
    const lost = () => {
      if (isOver) return;
      isOver = true;
      if (this.#client === client) this.#forgetConnection();
      this.#connectLater();
    };
    // `end` follows, and is handled.
    client.on('error', () => {});
    client.once('end', lost);
    client.on('notification', ({ payload }) => this.#receive(payload ?? ''));
    try {
      await client.connect();
      const { rows } = await client.query<{ channel: string; pid: number }>(
        `SELECT ${CHANNEL} AS channel, pg_backend_pid() AS pid`,
      );
      this.#channel = rows[0]?.channel ?? '';
      // Poolers report process ids of their own. In transaction mode a pooler drops notifications between transactions
      // (PgBouncer, `handle_server_work`), but not the beats, which come back during a query.
      this.#pooled = rows[0]?.pid !== (client as Client & { processID?: number | null }).processID;
      if (this.#pooled) throw new Error('a pooler');
      await client.query(`LISTEN ${this.#channel}`);
    } catch (error) {
      if (isRefusal(error)) this.#options.onRefused?.();
      client.connection.stream.destroy();
      lost();
      return;
    }
    if (isOver) return;
    if (this.#stopped) {
      await client.end();
      return;
    }
    this.#client = client;
    this.#retryMs = FEED_RETRY_MS_MIN;
    this.#listeningSinceMs = this.#clock.monotonicMs();
    // Changes that were committed before this moment have not arrived here.
    this.#notifyListeners('everything');
    this.#isProven = this.#options.through === undefined;
    this.#prove();
    this.#beat();
  }

  /** Sends a proof through the pooler: if the two addresses lead to different databases or schemas, changes would not arrive. */
  #prove(): void {
    const { through } = this.#options;
    if (through === undefined || this.#isProven) return;
    const text = JSON.stringify({ is: 'proof', from: this.#instance } satisfies Message);
    void sql`SELECT pg_notify(${sql.raw(CHANNEL)}, ${text})`.execute(through).catch(() => undefined);
  }

  #connectLater(): void {
    if (this.#stopped) return;
    const waitMs = this.#retryMs;
    this.#retryMs = Math.min(waitMs * 2, FEED_RETRY_MS_MAX);
    setTimeout(() => {
      if (!this.#stopped) void this.#connect();
    }, waitMs).unref();
  }

  #forgetConnection(): void {
    this.#client = undefined;
    this.#line = Promise.resolve();
    this.#currentAtMs = Number.NEGATIVE_INFINITY;
    this.#listeningSinceMs = Number.POSITIVE_INFINITY;
    this.#beaten.clear();
    // Their answers cannot arrive: they wait until `announce_ms_max`.
    this.#questions.clear();
  }

  #tick(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#options.is_restless !== true && nowMs - this.#neededAtMs > FEED_REST_MS) {
      this.#silentSinceMs = undefined;
      return;
    }
    this.#beat();
    this.#prove();
    this.#silentSinceMs ??= nowMs;
    if (this.#warned || nowMs - this.#silentSinceMs < FEED_WARN_MS) return;
    this.#warned = true;
    this.#options.onSilence?.(
      this.#pooled
        ? 'the connection leads through a pooler, which may drop notifications; set DATABASE_LISTEN_URL to the server itself'
        : this.#client === undefined
          ? 'the connection for notifications cannot be opened'
          : this.#isProven
            ? 'notifications do not arrive'
            : 'DATABASE_LISTEN_URL leads to another database or schema than DATABASE_URL',
    );
  }

  #beat(): void {
    // One at a time: a beat that waits in the queue is sent late, and proves little.
    if (this.#beating) return;
    this.#beating = true;
    const sentMs = this.#clock.monotonicMs();
    this.#send({ is: 'beat', from: this.#instance, sent_ms: sentMs, offset_ms: this.#offsetMs() }, (storeMs) => {
      this.#beating = false;
      if (storeMs !== undefined) this.#options.onTime?.(storeMs, sentMs);
    });
  }

  #send(message: Message, done: (storeMs?: number) => void = () => {}): void {
    const client = this.#client;
    if (client === undefined) {
      done();
      return;
    }
    this.#line = this.#line
      .then(() => client.query<{ now: string }>(NOTIFY, [this.#channel, JSON.stringify(message)]))
      .then(
        ({ rows }) => done(Number(rows[0]?.now)),
        () => {
          client.connection.stream.destroy();
          done();
        },
      );
  }

  #receive(text: string): void {
    let message: Message;
    try {
      message = JSON.parse(text) as Message;
    } catch {
      return;
    }
    switch (message.is) {
      case 'beat':
        this.#receiveBeat(message);
        break;
      case 'change':
        this.#notifyListeners({ topic: message.topic, id: message.id });
        break;
      case 'proof':
        if (message.from === this.#instance) this.#isProven = true;
        break;
      case 'ask':
        if (message.from === this.#instance) this.#receiveOwnQuestion(message.number);
        else this.#send({ is: 'answer', from: this.#instance, to: message.from, number: message.number });
        break;
      case 'answer':
        if (message.to === this.#instance) this.#receiveAnswer(message);
        break;
      default:
        // A message of a newer version: something may have changed.
        this.#notifyListeners('everything');
    }
  }

  #offsetMs(): number {
    return this.#clock.nowMs() - this.#clock.monotonicMs();
  }

  #receiveBeat({ from, sent_ms, offset_ms = 0 }: { from: string; sent_ms: number; offset_ms?: number }): void {
    this.#beaten.set(from, this.#clock.monotonicMs());
    if (from !== this.#instance || !this.#isProven) return;
    this.#currentAtMs = sent_ms;
    this.#currentUntilMs = sent_ms;
    this.#currentOffsetMs = offset_ms;
    this.#silentSinceMs = undefined;
    if (this.#warned) this.#options.onReturn?.();
    this.#warned = false;
  }

  #receiveOwnQuestion(number: number): void {
    const question = this.#questions.get(number);
    if (question === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    for (const [node, atMs] of this.#beaten) {
      if (nowMs - atMs > ANNOUNCE_MS_MAX) this.#beaten.delete(node);
    }
    question.missing = new Set(this.#beaten.keys());
    question.missing.delete(this.#instance);
    this.#settle(question);
  }

  #receiveAnswer({ from, number }: { from: string; number: number }): void {
    const question = this.#questions.get(number);
    question?.missing?.delete(from);
    if (question !== undefined) this.#settle(question);
  }

  #settle({ missing, resolve }: Question): void {
    if (missing === undefined || missing.size > 0) return;
    // If this node has listened for less than that, it may have missed the last beat of a node that still uses its cache.
    const waitMs = this.#listeningSinceMs + limits.feed_silence_ms_max - this.#clock.monotonicMs();
    if (waitMs <= 0) resolve();
    else setTimeout(resolve, waitMs);
  }

  #notifyListeners(change: Announcement | 'everything'): void {
    for (const listener of this.#listeners) listener(change);
  }
}
