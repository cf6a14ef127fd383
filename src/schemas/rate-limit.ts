import type { DAY_MS } from './budget.ts';

/** How much may be used in a minute (UTC); undefined: without bound. */
export interface RateAmounts {
  requests_per_minute: number | undefined;
  tokens_per_minute: number | undefined;
}

/** How much of free models an organization may use. */
export interface FreeRates {
  requests_per_minute: number;
  requests_per_day: number;
  /** In place of it where so many credits were granted. */
  requests_per_day_funded: number;
  funded_usd: number;
}

/** How many requests and tokens are let through, as the operator wants it. */
export interface RateRules {
  /** Of each key. */
  per_key: RateAmounts;
  /** Of each model, by all keys together. */
  per_model: RateAmounts;
  /** Of each key at each model. */
  per_key_and_model: RateAmounts;
  /** In place of `per_key`: by the hash of a key, or its name. */
  keys: ReadonlyMap<string, RateAmounts>;
  /** In place of `per_model`: by the id of a model, or a pattern in which `*` stands for any characters. */
  models: ReadonlyMap<string, RateAmounts>;
  /** Undefined: free models are models like others. */
  free_models: FreeRates | undefined;
  /** What becomes of a request that cannot be counted because the store does not answer. */
  uncounted: 'refuse' | 'allow';
}

export const MINUTE_MS = 60_000;

/** A limit that a request counts against, in windows of UTC that begin anew at once for everybody. */
export interface RateLimit {
  /** The name of its counter, the same on every node. */
  id: string;
  unit: 'requests' | 'tokens';
  span_ms: typeof MINUTE_MS | typeof DAY_MS;
  amount: number;
  /** What a refusal says of it after `Rate limit exceeded: `. */
  told: string;
}

/** What a node asks of a counter's current window. */
export interface RateAsk {
  id: string;
  span_ms: number;
  amount: number;
  /** With less it gets nothing; 0: it only tells. */
  need: number;
  /** What waits for it at once. */
  waiting: number;
  /** What it would use soon. */
  want: number;
  /** Used without having been asked for: counted in any case. */
  owed: number;
  /** Not used of what it got in the window that begins at `back_start_ms`. */
  back: number;
  back_start_ms: number;
}

/** What it got, of which window, and what that holds now. */
export interface RateAnswer {
  id: string;
  granted: number;
  used: number;
  window_start_ms: number;
  /** The store's time; not later than the answer. */
  now_ms: number;
}
