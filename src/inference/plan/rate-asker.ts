import type { Moment, RateCounter } from '../../ledger/leases/rate-counter.ts';
import { limits } from '../../limits.ts';
import type { RateAnswer, RateAsk } from '../../schemas/rate-limit.ts';
import type { Clock } from '../call.ts';

/** Where the counters are that all nodes share. */
export interface RateStore {
  /** `at` is the machine's time, where the store has none of its own. */
  ask(asks: readonly RateAsk[], at: number): Promise<RateAnswer[]>;
  /** Deletes what nobody counts in any more. */
  sweep(at: number): Promise<void>;
}

/** A counter of this node, and who waits for it. */
export interface RateEntry {
  counter: RateCounter;
  /** Units that requests wait for. */
  waiting: number;
  /** A question that is under way: no second one is asked meanwhile. */
  asking: Promise<boolean> | undefined;
}

/** Where it is told that the store cannot count. */
export interface RateLog {
  warn(facts: object, message: string): void;
}

interface Queued {
  entry: RateEntry;
  ask(now: Moment): RateAsk;
  resolve(is_answered: boolean): void;
}

/** Asks the store in batches: while one is under way, what comes next gathers. */
export class RateAsker {
  readonly #store: RateStore;
  readonly #clock: Clock;
  readonly #log: RateLog;
  #queued: Queued[] = [];
  #is_sending = false;
  /** Monotonic time until which a store that did not answer is not asked. */
  #down_until_ms = 0;

  constructor({ store, clock, log }: { store: RateStore; clock: Clock; log: RateLog }) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  now(): Moment {
    return { wall_ms: this.#clock.now_ms(), monotonic_ms: this.#clock.monotonic_ms() };
  }

  /** Whether the store has answered; it is not waited for longer than a bound. Never rejects. */
  ask(entry: RateEntry, ask: (now: Moment) => RateAsk): Promise<boolean> {
    if (this.#clock.monotonic_ms() < this.#down_until_ms) return Promise.resolve(false);
    entry.asking ??= new Promise<boolean>((resolve) => {
      this.#queued.push({
        entry,
        ask,
        resolve(is_answered) {
          entry.asking = undefined;
          resolve(is_answered);
        },
      });
      if (!this.#is_sending) void this.#send();
    });
    return entry.asking;
  }

  async #send(): Promise<void> {
    this.#is_sending = true;
    // What comes in the same turn of the loop goes in the same batch.
    await Promise.resolve();
    while (this.#queued.length > 0) {
      // Statements are prepared for such sizes: each batch is one.
      const size = 2 ** Math.floor(Math.log2(this.#queued.length));
      await this.#sendBatch(this.#queued.splice(0, Math.min(size, limits.rate_asks_max)));
    }
    this.#is_sending = false;
  }

  async #sendBatch(batch: readonly Queued[]): Promise<void> {
    const sent = this.now();
    const asks = batch.map(({ ask }) => ask(sent));
    const { promise: late, resolve: isLate } = Promise.withResolvers<Error>();
    const told = `the store did not answer within ${limits.rate_ask_ms_max} ms`;
    const timer = setTimeout(() => isLate(new Error(told)), limits.rate_ask_ms_max);
    const done = this.#store
      .ask(asks, sent.wall_ms)
      .then((answers) => this.#take(batch, asks, answers, sent))
      .catch((error: unknown) => {
        for (const [index, { entry }] of batch.entries()) entry.counter.unanswered(asks[index] as RateAsk);
        return error;
      });
    // An answer that comes later is taken all the same.
    const err = await Promise.race([done, late]);
    clearTimeout(timer);
    if (err !== undefined) {
      this.#down_until_ms = this.#clock.monotonic_ms() + limits.rate_ask_ms_max;
      this.#log.warn({ err, counters: batch.length }, 'rate limits could not be counted');
    }
    for (const { resolve } of batch) resolve(err === undefined);
  }

  #take(batch: readonly Queued[], asks: readonly RateAsk[], answers: readonly RateAnswer[], sent: Moment): undefined {
    const received = this.now();
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    for (const [index, { entry }] of batch.entries()) {
      const asked = asks[index] as RateAsk;
      const answer = byId.get(asked.id);
      if (answer === undefined) entry.counter.unanswered(asked);
      else entry.counter.answered(asked, answer, sent, received);
    }
  }
}
