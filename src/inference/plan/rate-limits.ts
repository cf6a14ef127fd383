import { GatewayError } from '../../errors.ts';
import { rateLimited } from '../../http/rate-limit.ts';
import { StoreWaitExceeded } from '../../http/store-wait.ts';
import { createRateBook, type RateBook } from '../../ledger/leases/rate-book.ts';
import { type Moment, RateCounter } from '../../ledger/leases/rate-counter.ts';
import { limits } from '../../limits.ts';
import type { Plan } from '../../routing/plan.ts';
import type { RateAmounts, RateLimit, RateRules } from '../../schemas/rate-limit.ts';
import type { Call, Clock } from '../call.ts';
import { RateAsker, type RateEntry, type RateLog, type RateStore } from './rate-asker.ts';
import {
  CallReservation,
  type Permit,
  type RateCounting,
  type RateLimitReservation,
} from './rate-limit-reservation.ts';
import type { Requested } from './requested-models.ts';

/** The interval of checks for unused amounts. */
const RATE_SWEEP_MS = 500;
/** The requests to the store for one call: beyond that, other nodes are always faster, or the store's clock is wrong. */
const RATE_ASKS_PER_REQUEST_MAX = 50;
/** The time between two sweeps of the store. */
const RATE_STORE_SWEEP_MS = 600_000;

/** A planned call that is to be counted. */
export interface RatedCall {
  call: Call;
  plan: Pick<Plan, 'attempts'>;
  variants: Requested['variants'];
}

/** Counts requests and tokens against rate limits: the only place that does. */
export interface RateLimits {
  /** Counts the call against the limits of its key. Undefined if no limit can concern it. Throws `GatewayError` 429, or 503 if nobody can count. */
  open(planned: RatedCall): RateLimitReservation | undefined | Promise<RateLimitReservation>;
  /** Returns the units that this node has not used. */
  stop(): Promise<void>;
}

export interface RateLimitsOptions {
  /** The current rules; the same object until they change. */
  rules(): RateRules;
  store: RateStore;
  clock: Clock;
  log: RateLog;
  metrics: { rateLimited(limit: string): void };
}

function isLimit({ requests_per_minute, tokens_per_minute }: RateAmounts): boolean {
  return requests_per_minute !== undefined || tokens_per_minute !== undefined;
}

function uncountable(message: string): GatewayError {
  return new GatewayError(503, `${message}; try again later`, { headers: { 'retry-after': '1' } });
}

/** This node's counters. Each takes blocks of the units that all nodes share, returns idle ones, and is deleted when its window ends. */
class NodeCounters implements RateCounting {
  readonly #options: RateLimitsOptions;
  readonly #asker: RateAsker;
  readonly #entries = new Map<string, RateEntry>();
  rules!: RateRules;
  book!: RateBook;
  limitsKeys = false;
  limitsModels = false;
  #waiting = 0;

  constructor(options: RateLimitsOptions) {
    this.#options = options;
    this.#asker = new RateAsker(options);
    this.use(options.rules());
  }

  /** Makes the rules those of later calls. */
  use(rules: RateRules): void {
    this.rules = rules;
    this.book = createRateBook(rules);
    this.limitsKeys = rules.keys.size > 0 || isLimit(rules.per_key);
    this.limitsModels = rules.models.size > 0 || isLimit(rules.per_model) || isLimit(rules.per_key_and_model);
  }

  #entryOf(limit: RateLimit): RateEntry {
    const existing = this.#entries.get(limit.id);
    if (existing !== undefined) {
      existing.counter.limit = limit;
      return existing;
    }
    if (this.#entries.size >= limits.rate_counters_max) this.#deleteOne();
    const entry = { counter: new RateCounter(limit), waiting: 0, asking: undefined };
    this.#entries.set(limit.id, entry);
    return entry;
  }

  /** Deletes the least recently used entry with its remaining units: less is admitted, never more. */
  #deleteOne(): void {
    for (const [id, { asking, waiting }] of this.#entries) {
      // An entry in use would be created a second time, and both would ask the store for units.
      if (asking !== undefined || waiting > 0) continue;
      this.#entries.delete(id);
      return;
    }
  }

  #permit({ counter }: RateEntry, units: number): Permit {
    const { start_ms } = counter;
    return {
      units,
      giveBack: (unused) => counter.giveBack(unused, start_ms),
      owe: (more) => counter.owe(more, this.#asker.now()),
    };
  }

  take(limit: RateLimit, units: number): Permit | undefined {
    const entry = this.#entryOf(limit);
    const { counter } = entry;
    if (!counter.take(units, this.#asker.now())) return undefined;
    // So that the next calls do not wait.
    if (entry.asking === undefined && counter.isLow()) void this.#asker.ask(entry, (now) => counter.ask(0, 0, now));
    return this.#permit(entry, units);
  }

  async acquire(limit: RateLimit, units: number, storeWait: Call['store_wait']): Promise<Permit | undefined> {
    const entry = this.#entryOf(limit);
    this.#entries.delete(limit.id);
    this.#entries.set(limit.id, entry);
    const { counter } = entry;
    if (this.#waiting >= limits.rate_waiting_max) throw uncountable('Too many requests wait to be counted');
    this.#waiting += 1;
    entry.waiting += units;
    try {
      for (let attempts = 0; attempts < RATE_ASKS_PER_REQUEST_MAX; attempts += 1) {
        const now = this.#asker.now();
        if (counter.take(units, now)) return this.#permit(entry, units);
        if (counter.isRefused(units, now)) throw this.#refusal(counter, now);
        if (!(await this.#isAnswered(entry, units, storeWait))) break;
      }
      if (this.rules.uncounted === 'allow') return undefined;
      throw uncountable('The gateway cannot count requests against their rate limits at the moment');
    } finally {
      this.#waiting -= 1;
      entry.waiting -= units;
    }
  }

  /** Whether the store answered within the time that the request can wait. */
  async #isAnswered(entry: RateEntry, units: number, storeWait: Call['store_wait']): Promise<boolean> {
    const answered = this.#asker.ask(entry, (at) => entry.counter.ask(units, entry.waiting, at));
    if (storeWait === undefined) return answered;
    try {
      return await storeWait.within(answered);
    } catch (error) {
      if (error instanceof StoreWaitExceeded) return false;
      throw error;
    }
  }

  #refusal(counter: RateCounter, now: Moment, more = '', isFinal = false): GatewayError {
    const { message, amount } = counter.limit;
    this.#options.metrics.rateLimited(/^[a-z-]+/.exec(message)?.[0] ?? 'other');
    return rateLimited(`Rate limit exceeded: ${message}${more}`, {
      limit: amount,
      ...counter.window(now),
      is_final: isFinal,
    });
  }

  neverFits(limit: RateLimit, units: number): GatewayError {
    const { counter } = this.#entryOf(limit);
    return this.#refusal(counter, this.#asker.now(), `; the prompt of this request alone counts ${units}`, true);
  }

  /** Reports to the store the units that are owed, and returns idle ones, or all; deletes counters whose window has ended. */
  async report(all: boolean): Promise<void> {
    const now = this.#asker.now();
    const reports: Promise<boolean>[] = [];
    for (const [id, entry] of this.#entries) {
      const { counter } = entry;
      if (entry.asking !== undefined) continue;
      if (counter.hasLeftover(now, all)) reports.push(this.#asker.ask(entry, (at) => counter.leftover(at, all)));
      else if (counter.isSpent(now) && entry.waiting === 0) this.#entries.delete(id);
    }
    await Promise.all(reports);
  }

  /** Resolves when no request to the store is running. */
  async idle(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(({ asking }) => asking));
  }
}

export function createRateLimits(options: RateLimitsOptions): RateLimits {
  const { store, clock, log } = options;
  const counters = new NodeCounters(options);
  let sweptMs = clock.nowMs();

  async function sweep(): Promise<void> {
    await counters.report(false);
    const nowMs = clock.nowMs();
    if (nowMs - sweptMs < RATE_STORE_SWEEP_MS) return;
    sweptMs = nowMs;
    try {
      await store.sweep(nowMs);
    } catch (err) {
      log.warn({ err }, 'old counters of rate limits could not be deleted');
    }
  }
  const timer = setInterval(() => void sweep(), RATE_SWEEP_MS).unref();

  return {
    open({ call, plan, variants }) {
      const rules = options.rules();
      if (rules !== counters.rules) counters.use(rules);
      let isLimited = counters.limitsKeys || counters.limitsModels;
      for (const { model } of plan.attempts) isLimited ||= model.id.endsWith(':free') || variants?.has(model) === true;
      if (!isLimited) return undefined;
      const reservation = new CallReservation(call, variants, counters);
      const acquiring = counters.limitsKeys ? reservation.acquireForKey() : undefined;
      return acquiring === undefined ? reservation : acquiring.then(() => reservation);
    },

    async stop() {
      clearInterval(timer);
      await counters.idle();
      await counters.report(true);
    },
  };
}
