import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { Client } from 'pg';
import { limits } from '../limits.ts';
import type { Announcement, ChangeFeed } from './change-feed.ts';
import type { Queries } from './database.ts';
import { isRefusal } from './postgres-pool.ts';
import type { MachineClock } from './store-clock.ts';

const machineClock: MachineClock = { now_ms: Date.now, monotonic_ms: () => performance.now() };

export interface PostgresChangeFeedOptions {
  url: string;
  /** Default: the machine's. */
  clock?: MachineClock | undefined;
  /** False: this process remembers nothing, it only makes changes. */
  listens: boolean;
  /** Where changes are noted through a pooler: a word that goes the same way must be heard before anything remembered is used. */
  through?: Queries | undefined;
  /** True: what is remembered is to be as new as can be at any time, so that this node goes on hearing when it serves nobody. */
  is_restless?: boolean | undefined;
  /** Told the store's time, and when it was asked for. */
  onTime?: ((store_ms: number, sent_ms: number) => void) | undefined;
  /** Called when the server has no connection to spare. */
  onRefused?: (() => void) | undefined;
  /** Told that notifications do not arrive, so that everything is read from the store, and that they do again. */
  onSilence?: ((reason: string) => void) | undefined;
  onReturn?: (() => void) | undefined;
}

/** What nodes say to each other; one channel for all of it, so that all of it has one order. */
type Message =
  | { is: 'beat'; from: string; sent_ms: number; offset_ms?: number }
  | { is: 'change'; topic: Announcement['topic']; id: string }
  /** Who hears this has heard every change that was committed before. */
  | { is: 'ask'; from: string; number: number }
  /** Sent the way that changes go. */
  | { is: 'proof'; from: string }
  | { is: 'answer'; from: string; to: string; number: number };

type Listener = (change: Announcement | 'everything') => void;

/** A change that waits until it is heard. Who has not answered is known once the question itself has come back. */
interface Question {
  missing: Set<string> | undefined;
  answered: () => void;
}

/** Notifications are told to a whole database; nodes on one schema of it share a channel. Not md5, which some servers refuse. */
const CHANNEL = `'gateway_' || substr(encode(sha256(convert_to(current_schema(), 'UTF8')), 'hex'), 1, 32)`;

/** The time that the server has when it takes a message. */
const NOTIFY = 'SELECT pg_notify($1, $2), CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now';

/**
 * The feed of nodes that share a PostgreSQL server, by its notifications. These reach every listener in the order of the
 * commits (PostgreSQL, NOTIFY), and that is what everything here rests on:
 *
 * - Each serving node sends itself a beat. When one comes back, it has heard of everything that was committed before the
 *   beat was sent. It trusts its memory for `feed_silence_ms_max` from that moment (of sending: a connection that lags is
 *   noticed), and reads from the store after it, without any connection, and until the first beat has come back. A machine
 *   that was suspended may not have counted that time: then its clocks have moved against each other since the beat.
 * - A change is told in its transaction. After the commit its node asks all nodes; who answers has heard of the change.
 *   All nodes that could still trust an older memory have beaten before the question came back, so their answers can be
 *   waited for. One that does not answer has stopped trusting before `announce_ms_max` is over.
 */
export class PostgresChangeFeed implements ChangeFeed {
  readonly #options: PostgresChangeFeedOptions;
  readonly #clock: MachineClock;
  readonly #instance = randomUUID();
  readonly #listeners: Listener[] = [];
  /** When the last beat of each node came, this one's included. */
  readonly #beaten = new Map<string, number>();
  readonly #questions = new Map<number, Question>();
  #asked = 0;
  #client: Client | undefined;
  #channel = '';
  #listening_since_ms = Number.POSITIVE_INFINITY;
  /** When the latest own beat that came back was sent. */
  #current_at_ms = Number.NEGATIVE_INFINITY;
  /** The same, kept when the connection is lost. */
  #heard_until_ms = Number.NEGATIVE_INFINITY;
  /** What is noted through the pooler arrives here. */
  #is_proven = false;
  /** How far the wall clock was ahead of the monotonic one then. */
  #current_offset_ms = 0;
  #needed_at_ms = Number.NEGATIVE_INFINITY;
  #beating = false;
  /** Since when beats have been sent in vain. */
  #silent_since_ms: number | undefined;
  #warned = false;
  /** A pooler stands between: it would pass on the node's own messages, and perhaps no others. */
  #pooled = false;
  /** The connection is asked one thing at a time. */
  #line: Promise<unknown> = Promise.resolve();
  #retry_ms: number = limits.feed_retry_ms_min;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  private constructor(options: PostgresChangeFeedOptions) {
    this.#options = options;
    this.#clock = options.clock ?? machineClock;
  }

  /** Starts listening, and goes on trying where that fails: until it works, nothing remembered is used. */
  static async start(options: PostgresChangeFeedOptions): Promise<PostgresChangeFeed> {
    const feed = new PostgresChangeFeed(options);
    if (options.listens) {
      await feed.#connect();
      feed.#timer = setInterval(() => feed.#tick(), limits.feed_beat_ms).unref();
    }
    return feed;
  }

  async note(tx: Queries, changes: readonly Announcement[]): Promise<void> {
    if (changes.length === 0) return;
    const texts = changes.map(({ topic, id }) => JSON.stringify({ is: 'change', topic, id } satisfies Message));
    await sql`SELECT pg_notify(${sql.raw(CHANNEL)}, text) FROM unnest(${texts}::text[]) AS text`.execute(tx);
  }

  async heard(changes: readonly Announcement[]): Promise<void> {
    if (changes.length === 0) return;
    for (const change of changes) this.#tell(change);
    this.#asked += 1;
    const number = this.#asked;
    let timer: NodeJS.Timeout | undefined;
    const bound = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, limits.announce_ms_max);
    });
    const answers = new Promise<void>((resolve) => {
      this.#questions.set(number, { missing: undefined, answered: resolve });
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
    const now_ms = this.#clock.monotonic_ms();
    const rested = now_ms - this.#needed_at_ms > limits.feed_rest_ms;
    this.#needed_at_ms = now_ms;
    if (rested) this.#beat();
    if (now_ms - this.#current_at_ms >= limits.feed_silence_ms_max) return false;
    return Math.abs(this.#offset_ms() - this.#current_offset_ms) <= limits.feed_clocks_ms_max;
  }

  heardUntil_ms(): number {
    return this.#heard_until_ms;
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
      // A connection that is dead without having been told answers no beat.
      query_timeout: limits.database_connect_ms_max,
      keepAlive: true,
      application_name: 'model-gateway changes',
    });
    let over = false;
    const lost = () => {
      if (over) return;
      over = true;
      if (this.#client === client) this.#forgetConnection();
      this.#connectLater();
    };
    // The end that follows is what counts.
    client.on('error', () => {});
    client.once('end', lost);
    client.on('notification', ({ payload }) => this.#hear(payload ?? ''));
    try {
      await client.connect();
      const { rows } = await client.query<{ channel: string; pid: number }>(
        `SELECT ${CHANNEL} AS channel, pg_backend_pid() AS pid`,
      );
      this.#channel = rows[0]?.channel ?? '';
      // Poolers tell process ids of their own. One that lends servers out by the transaction drops what these are told
      // in between (PgBouncer, `handle_server_work`), but not the beats, which come back while they are asked.
      this.#pooled = rows[0]?.pid !== (client as Client & { processID?: number | null }).processID;
      if (this.#pooled) throw new Error('a pooler');
      await client.query(`LISTEN ${this.#channel}`);
    } catch (error) {
      if (isRefusal(error)) this.#options.onRefused?.();
      client.connection.stream.destroy();
      lost();
      return;
    }
    if (over) return;
    if (this.#stopped) {
      await client.end();
      return;
    }
    this.#client = client;
    this.#retry_ms = limits.feed_retry_ms_min;
    this.#listening_since_ms = this.#clock.monotonic_ms();
    // What was committed before this moment was told to nobody here.
    this.#tell('everything');
    this.#is_proven = this.#options.through === undefined;
    this.#prove();
    this.#beat();
  }

  /** Two addresses may lead to two databases, or schemas: then nothing of what is noted would be heard. */
  #prove(): void {
    const { through } = this.#options;
    if (through === undefined || this.#is_proven) return;
    const text = JSON.stringify({ is: 'proof', from: this.#instance } satisfies Message);
    void sql`SELECT pg_notify(${sql.raw(CHANNEL)}, ${text})`.execute(through).catch(() => undefined);
  }

  #connectLater(): void {
    if (this.#stopped) return;
    const wait_ms = this.#retry_ms;
    this.#retry_ms = Math.min(wait_ms * 2, limits.feed_retry_ms_max);
    setTimeout(() => {
      if (!this.#stopped) void this.#connect();
    }, wait_ms).unref();
  }

  #forgetConnection(): void {
    this.#client = undefined;
    this.#line = Promise.resolve();
    this.#current_at_ms = Number.NEGATIVE_INFINITY;
    this.#listening_since_ms = Number.POSITIVE_INFINITY;
    this.#beaten.clear();
    // Their answers will not be heard: they wait for the bound.
    this.#questions.clear();
  }

  #tick(): void {
    const now_ms = this.#clock.monotonic_ms();
    if (this.#options.is_restless !== true && now_ms - this.#needed_at_ms > limits.feed_rest_ms) {
      this.#silent_since_ms = undefined;
      return;
    }
    this.#beat();
    this.#prove();
    this.#silent_since_ms ??= now_ms;
    if (this.#warned || now_ms - this.#silent_since_ms < limits.feed_warn_ms) return;
    this.#warned = true;
    this.#options.onSilence?.(
      this.#pooled
        ? 'it leads through a connection pooler, which may drop notifications; set DATABASE_LISTEN_URL to the server itself'
        : this.#client === undefined
          ? 'the connection for notifications cannot be made'
          : this.#is_proven
            ? 'notifications do not come back'
            : 'DATABASE_LISTEN_URL leads to another database or schema than DATABASE_URL',
    );
  }

  #beat(): void {
    // One at a time: those that wait in line would be told late, and tell little.
    if (this.#beating) return;
    this.#beating = true;
    const sent_ms = this.#clock.monotonic_ms();
    this.#send({ is: 'beat', from: this.#instance, sent_ms, offset_ms: this.#offset_ms() }, (store_ms) => {
      this.#beating = false;
      if (store_ms !== undefined) this.#options.onTime?.(store_ms, sent_ms);
    });
  }

  #send(message: Message, done: (store_ms?: number) => void = () => {}): void {
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

  #hear(text: string): void {
    let message: Message;
    try {
      message = JSON.parse(text) as Message;
    } catch {
      return;
    }
    switch (message.is) {
      case 'beat':
        this.#hearBeat(message);
        break;
      case 'change':
        this.#tell({ topic: message.topic, id: message.id });
        break;
      case 'proof':
        if (message.from === this.#instance) this.#is_proven = true;
        break;
      case 'ask':
        if (message.from === this.#instance) this.#hearOwnQuestion(message.number);
        else this.#send({ is: 'answer', from: this.#instance, to: message.from, number: message.number });
        break;
      case 'answer':
        if (message.to === this.#instance) this.#hearAnswer(message);
        break;
      default:
        // A newer version's word for something that may have changed.
        this.#tell('everything');
    }
  }

  #offset_ms(): number {
    return this.#clock.now_ms() - this.#clock.monotonic_ms();
  }

  #hearBeat({ from, sent_ms, offset_ms = 0 }: { from: string; sent_ms: number; offset_ms?: number }): void {
    this.#beaten.set(from, this.#clock.monotonic_ms());
    if (from !== this.#instance || !this.#is_proven) return;
    this.#current_at_ms = sent_ms;
    this.#heard_until_ms = sent_ms;
    this.#current_offset_ms = offset_ms;
    this.#silent_since_ms = undefined;
    if (this.#warned) this.#options.onReturn?.();
    this.#warned = false;
  }

  #hearOwnQuestion(number: number): void {
    const question = this.#questions.get(number);
    if (question === undefined) return;
    const now_ms = this.#clock.monotonic_ms();
    for (const [node, at_ms] of this.#beaten) {
      if (now_ms - at_ms > limits.announce_ms_max) this.#beaten.delete(node);
    }
    question.missing = new Set(this.#beaten.keys());
    question.missing.delete(this.#instance);
    this.#settle(question);
  }

  #hearAnswer({ from, number }: { from: string; number: number }): void {
    const question = this.#questions.get(number);
    question?.missing?.delete(from);
    if (question !== undefined) this.#settle(question);
  }

  #settle({ missing, answered }: Question): void {
    if (missing === undefined || missing.size > 0) return;
    // Who listens for a shorter time may not have heard the last beat of a node that still trusts.
    const wait_ms = this.#listening_since_ms + limits.feed_silence_ms_max - this.#clock.monotonic_ms();
    if (wait_ms <= 0) answered();
    else setTimeout(answered, wait_ms);
  }

  #tell(change: Announcement | 'everything'): void {
    for (const listener of this.#listeners) listener(change);
  }
}
