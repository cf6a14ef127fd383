import type { Moment, RateCounter } from '../../ledger/leases/rate-counter.ts';
import type { RateAnswer, RateAsk } from '../../schemas/rate-limit.ts';
import type { Clock } from '../call.ts';

/** How long a request waits for the store to count it. Afterwards no request waits for this time. */
const RATE_ASK_MS_MAX = 1_000;
/** Counters in one query to the store. */
const RATE_ASKS_MAX = 128;

/** The counters that all nodes share. */
export interface RateStore {
  /** `at`: the machine's time, used if the store has no clock. */
  ask(asks: readonly RateAsk[], at: number): Promise<RateAnswer[]>;
  /** Deletes counters of windows that have ended. */
  sweep(at: number): Promise<void>;
}

/** A counter of this node. */
export interface RateEntry {
  counter: RateCounter;
  /** Units that calls wait for. */
  waiting: number;
  /** The running request to the store; there is one at a time. */
  asking: Promise<boolean> | undefined;
}

export interface RateLog {
  warn(facts: object, message: string): void;
}

interface Queued {
  entry: RateEntry;
  ask(now: Moment): RateAsk;
  resolve(isAnswered: boolean): void;
}

/** Requests units from the store in batches. Requests made while a batch is running form the next one. */
export class RateAsker {
  readonly #store: RateStore;
  readonly #clock: Clock;
  readonly #log: RateLog;
  #queued: Queued[] = [];
  #isSending = false;
  /** Monotonic time until which a store that did not answer gets no request. */
  #downUntilMs = 0;

  constructor({ store, clock, log }: { store: RateStore; clock: Clock; log: RateLog }) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  now(): Moment {
    return { wall_ms: this.#clock.nowMs(), monotonic_ms: this.#clock.monotonicMs() };
  }

  /** Whether the store answered within `rate_ask_ms_max`. Never rejects. */
  ask(entry: RateEntry, ask: (now: Moment) => RateAsk): Promise<boolean> {
    if (this.#clock.monotonicMs() < this.#downUntilMs) return Promise.resolve(false);
    entry.asking ??= new Promise<boolean>((resolve) => {
      this.#queued.push({
        entry,
        ask,
        resolve(isAnswered) {
          entry.asking = undefined;
          resolve(isAnswered);
        },
      });
      if (!this.#isSending) void this.#send();
    });
    return entry.asking;
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    // Requests of the same turn of the event loop join the batch.
    await Promise.resolve();
    while (this.#queued.length > 0) {
      // There are prepared statements for powers of two.
      const size = 2 ** Math.floor(Math.log2(this.#queued.length));
      await this.#sendBatch(this.#queued.splice(0, Math.min(size, RATE_ASKS_MAX)));
    }
    this.#isSending = false;
  }

  async #sendBatch(batch: readonly Queued[]): Promise<void> {
    const sent = this.now();
    const asks = batch.map(({ ask }) => ask(sent));
    const { promise: late, resolve: isLate } = Promise.withResolvers<Error>();
    const message = `the store did not answer within ${RATE_ASK_MS_MAX} ms`;
    const timer = setTimeout(() => isLate(new Error(message)), RATE_ASK_MS_MAX);
    const done = this.#store
      .ask(asks, sent.wall_ms)
      .then((answers) => this.#take(batch, asks, answers, sent))
      .catch((error: unknown) => {
        for (const [index, { entry }] of batch.entries()) entry.counter.unanswered(asks[index] as RateAsk);
        return error;
      });
    // A late answer still updates the counters.
    const err = await Promise.race([done, late]);
    clearTimeout(timer);
    if (err !== undefined) {
      this.#downUntilMs = this.#clock.monotonicMs() + RATE_ASK_MS_MAX;
      this.#log.warn({ err, counters: batch.length }, 'rate limits could not be counted');
    }
    for (const { resolve } of batch) resolve(err === undefined);
  }

  #take(batch: readonly Queued[], asks: readonly RateAsk[], answers: readonly RateAnswer[], sent: Moment): undefined {
    const received = this.now();
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    for (const [index, { entry }] of batch.entries()) {
      const ask = asks[index] as RateAsk;
      const answer = byId.get(ask.id);
      if (answer === undefined) entry.counter.unanswered(ask);
      else entry.counter.answered(ask, answer, sent, received);
    }
  }
}
