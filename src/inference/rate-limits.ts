import type { Model } from '../catalog/model.ts';
import { GatewayError } from '../errors.ts';
import { rateLimited } from '../http/rate-limit.ts';
import { createRateBook, type RateCaller } from '../ledger/rate-book.ts';
import { type Moment, RateCounter } from '../ledger/rate-counter.ts';
import { limits } from '../limits.ts';
import { type Candidate, pricesOf } from '../routing/candidate.ts';
import { isFree } from '../routing/rules.ts';
import type { RateLimit, RateRules } from '../schemas/rate-limit.ts';
import { inputTokens } from '../schemas/usage.ts';
import type { Call, Clock } from './call.ts';
import { estimatePrompt } from './meter.ts';
import { RateAsker, type RateEntry, type RateStore } from './rate-asker.ts';

/** One call, past the limits of its key. */
export interface Passage {
  /**
   * Counts the call against the limits of an endpoint's model, each once. Throws `GatewayError` 429: another model may be let
   * through; 503 where nobody can count.
   */
  enter(candidate: Candidate): Promise<void> | undefined;
  /**
   * The call has ended: with so many tokens, at a model. Tokens that were set aside and not used are free again, as far as
   * their minute lasts; those above count in the minute that it is now.
   */
  end(tokens: number, model_id: string | undefined): void;
  /** The call has ended, and nobody knows what it used: it stays as it was set aside. */
  leave(): void;
  /** The call ended before anything was sent: it does not count. */
  withdraw(): void;
}

/** Lets calls through: the one place where requests and tokens are counted against rates. */
export interface RateLimits {
  /** Counts the call against the limits of its key. Throws `GatewayError` 429, 503 where nobody can count. */
  open(call: Call, asksFree: AsksFree): Passage | Promise<Passage>;
  /** Gives back what this node has not used. */
  stop(): Promise<void>;
}

const FREE_PASSAGE: Passage = { enter: () => undefined, end() {}, leave() {}, withdraw() {} };

/** Lets everything through. */
export const NO_RATE_LIMITS: RateLimits = { open: () => FREE_PASSAGE, stop: async () => {} };

export interface RateLimitsOptions {
  /** Asked anew, since they may change; the same object as long as they are the same. */
  rules(): RateRules;
  store: RateStore;
  clock: Clock;
  log: { warn(facts: object, message: string): void };
  metrics: { rateLimited(limit: string): void };
}

interface Permit {
  entry: RateEntry;
  units: number;
  start_ms: number;
  /** Undefined: of the key, whatever the model. */
  model_id: string | undefined;
}

/** Whether a client asked for the free variant of a model. */
type AsksFree = (model: Model) => boolean;

function callerOf({ principal: { key_hash, key_name, organization_id, budgets } }: Call): RateCaller {
  const granted_nano = budgets.find(({ scope }) => scope === 'organization')?.limit_nano;
  return { key_hash, key_name, organization_id, granted_nano };
}

/** What a call will use, as far as it can be told before: its prompt by our count, and the output bound that it names. */
function tokensOf({ request, estimate }: Call): { prompt: number; bound: number } {
  const prompt = estimate === undefined ? estimatePrompt(request) : inputTokens(estimate());
  return { prompt, bound: request.max_completion_tokens ?? request.max_tokens ?? 0 };
}

export function createRateLimits(options: RateLimitsOptions): RateLimits {
  const { metrics, store, clock } = options;
  let read = { rules: options.rules(), book: createRateBook(options.rules()) };
  const current = () => {
    const rules = options.rules();
    if (rules !== read.rules) read = { rules, book: createRateBook(rules) };
    return read;
  };
  const asker = new RateAsker(options);
  const entries = new Map<string, RateEntry>();
  let waiting = 0;
  let swept_ms = clock.now_ms();

  function entryOf(limit: RateLimit): RateEntry {
    const known = entries.get(limit.id);
    if (known !== undefined) {
      known.counter.limit = limit;
      return known;
    }
    // What the oldest still had is given to nobody: less is let through, never more.
    if (entries.size >= limits.rate_counters_max) entries.delete(entries.keys().next().value ?? '');
    const entry = { counter: new RateCounter(limit), waiting: 0, asking: undefined };
    entries.set(limit.id, entry);
    return entry;
  }

  function refusal({ counter }: RateEntry, now: Moment): GatewayError {
    const { told, amount } = counter.limit;
    metrics.rateLimited(/^[a-z-]+/.exec(told)?.[0] ?? 'other');
    return rateLimited(`Rate limit exceeded: ${told}`, { limit: amount, ...counter.window(now) });
  }

  function tooLarge({ counter }: RateEntry, tokens: number): GatewayError {
    const { told } = counter.limit;
    return new GatewayError(429, `Rate limit exceeded: ${told}; the prompt of this request alone counts ${tokens}`, {
      metadata: { provider_name: null },
      // The official SDKs do not try again then.
      headers: { 'x-should-retry': 'false' },
    });
  }

  /** Undefined: nobody can count, and the operator wants such requests let through. */
  async function acquire(entry: RateEntry, units: number): Promise<number | undefined> {
    const { counter } = entry;
    if (waiting >= limits.rate_waiting_max) throw uncountable('Too many requests wait to be counted');
    waiting += 1;
    entry.waiting += units;
    try {
      for (;;) {
        const now = asker.now();
        if (counter.take(units, now)) return counter.start_ms;
        if (counter.isRefused(units, now)) throw refusal(entry, now);
        if (await asker.ask(entry, (at) => counter.ask(units, entry.waiting, at))) continue;
        if (current().rules.uncounted === 'allow') return undefined;
        throw uncountable('The gateway cannot count requests against their rate limits at the moment');
      }
    } finally {
      waiting -= 1;
      entry.waiting -= units;
    }
  }

  function uncountable(message: string): GatewayError {
    return new GatewayError(503, `${message}; try again later`, { headers: { 'retry-after': '1' } });
  }

  class CallPassage implements Passage {
    readonly #call: Call;
    readonly #asksFree: AsksFree;
    readonly caller: RateCaller;
    #permits: Permit[] = [];
    #tokens: { prompt: number; bound: number } | undefined;
    /** By the name of a model: what stood against it. */
    #refused: Map<string, unknown> | undefined;

    constructor(call: Call, asksFree: AsksFree) {
      this.#call = call;
      this.#asksFree = asksFree;
      this.caller = callerOf(call);
    }

    #unitsFor(entry: RateEntry): number {
      const { unit, amount } = entry.counter.limit;
      if (unit === 'requests') return 1;
      this.#tokens ??= tokensOf(this.#call);
      const { prompt, bound } = this.#tokens;
      if (prompt > amount) throw tooLarge(entry, prompt);
      return Math.min(prompt + bound, amount);
    }

    /** All of the limits, or none. At once where this node has what is needed. */
    take(list: readonly RateLimit[], model_id: string | undefined): Promise<void> | undefined {
      const taken: Permit[] = [];
      try {
        for (const [index, limit] of list.entries()) {
          if (this.#permits.some(({ entry }) => entry.counter.limit.id === limit.id)) continue;
          const entry = entryOf(limit);
          const units = this.#unitsFor(entry);
          if (!entry.counter.take(units, asker.now())) return this.#takeRest(list.slice(index), taken, model_id);
          taken.push({ entry, units, start_ms: entry.counter.start_ms, model_id });
        }
      } catch (error) {
        giveBack(taken);
        throw error;
      }
      this.#permits.push(...taken);
      return undefined;
    }

    async #takeRest(list: readonly RateLimit[], taken: Permit[], model_id: string | undefined): Promise<void> {
      try {
        for (const limit of list) {
          if (this.#permits.some(({ entry }) => entry.counter.limit.id === limit.id)) continue;
          const entry = entryOf(limit);
          const units = this.#unitsFor(entry);
          const start_ms = await acquire(entry, units);
          if (start_ms !== undefined) taken.push({ entry, units, start_ms, model_id });
        }
      } catch (error) {
        giveBack(taken);
        throw error;
      }
      this.#permits.push(...taken);
    }

    /** What the operator's account has for nothing; at an organization's own account it is the organization's matter. */
    #isFree(candidate: Candidate): boolean {
      const { model, own } = candidate;
      if (own !== undefined || !(model.id.endsWith(':free') || this.#asksFree(model))) return false;
      return isFree(pricesOf(candidate));
    }

    enter(candidate: Candidate): Promise<void> | undefined {
      const is_free = this.#isFree(candidate);
      const list = current().book.ofModel(this.caller, { id: candidate.model.id, is_free });
      if (list.length === 0) return undefined;
      return this.#enterOnce(is_free ? `${candidate.model.id} free` : candidate.model.id, list, candidate.model.id);
    }

    #enterOnce(name: string, list: readonly RateLimit[], model_id: string): Promise<void> | undefined {
      const refused = this.#refused?.get(name);
      if (refused !== undefined) throw refused;
      const refuse = (error: unknown) => {
        this.#refused ??= new Map();
        this.#refused.set(name, error);
        throw error;
      };
      try {
        return this.take(list, model_id)?.catch(refuse);
      } catch (error) {
        return refuse(error);
      }
    }

    end(tokens: number, model_id: string | undefined): void {
      for (const permit of this.#release()) {
        const { entry, units, start_ms } = permit;
        if (entry.counter.limit.unit !== 'tokens') continue;
        const used = permit.model_id === undefined || permit.model_id === model_id ? tokens : 0;
        if (used > units) entry.counter.owe(used - units, asker.now());
        else entry.counter.giveBack(units - used, start_ms);
      }
    }

    leave(): void {
      this.#release();
    }

    withdraw(): void {
      giveBack(this.#release());
    }

    #release(): Permit[] {
      const permits = this.#permits;
      this.#permits = [];
      return permits;
    }
  }

  function giveBack(permits: readonly Permit[]): void {
    for (const { entry, units, start_ms } of permits) entry.counter.giveBack(units, start_ms);
  }

  /** Tells the store what is owed and gives back what is idle; forgets counters that are over. */
  function tell(all: boolean): Promise<boolean>[] {
    const now = asker.now();
    const telling: Promise<boolean>[] = [];
    for (const [id, entry] of entries) {
      const { counter } = entry;
      if (entry.asking !== undefined) continue;
      if (counter.hasLeftover(now, all)) telling.push(asker.ask(entry, (at) => counter.leftover(at, all)));
      else if (counter.isSpent(now) && entry.waiting === 0) entries.delete(id);
    }
    return telling;
  }

  async function sweep(): Promise<void> {
    await Promise.all(tell(false));
    const now_ms = clock.now_ms();
    if (now_ms - swept_ms < limits.rate_store_sweep_ms) return;
    swept_ms = now_ms;
    try {
      await store.sweep(now_ms);
    } catch (err) {
      options.log.warn({ err }, 'old counters of rate limits could not be deleted');
    }
  }
  const timer = setInterval(() => void sweep(), limits.rate_sweep_ms).unref();

  return {
    open(call, asksFree) {
      const passage = new CallPassage(call, asksFree);
      const waits = passage.take(current().book.ofKey(passage.caller), undefined);
      return waits === undefined ? passage : waits.then(() => passage);
    },

    async stop() {
      clearInterval(timer);
      await Promise.all([...entries.values()].map(({ asking }) => asking));
      await Promise.all(tell(true));
    },
  };
}
