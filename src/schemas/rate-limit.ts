import type { DAY_MS } from './budget.ts';

/** The most that may be used per minute (UTC); undefined: unlimited. */
export interface RateAmounts {
  requests_per_minute: number | undefined;
  tokens_per_minute: number | undefined;
}

/** The most that an organization may use free models. */
export interface FreeRates {
  requests_per_minute: number;
  requests_per_day: number;
  /** Replaces `requests_per_day` for organizations that bought enough credits. */
  requests_per_day_funded: number;
  funded_usd: number;
}

/** The operator's rate limits of requests and tokens. */
export interface RateRules {
  /** For each key. */
  per_key: RateAmounts;
  /** For each model, over all keys. */
  per_model: RateAmounts;
  /** For each key at each model. */
  per_key_and_model: RateAmounts;
  /** Replaces `per_key`, by the hash or the name of a key. */
  keys: ReadonlyMap<string, RateAmounts>;
  /** Replaces `per_model`, by the id of a model, or a pattern in which `*` stands for any characters. */
  models: ReadonlyMap<string, RateAmounts>;
  /** Undefined if free models have no limits of their own. */
  free_models: FreeRates | undefined;
  /** What happens to a request that cannot be counted because the store does not answer. */
  uncounted: 'refuse' | 'allow';
}

export const MINUTE_MS = 60_000;

/** A limit that requests count against, in windows of UTC that begin at the same time for all. */
export interface RateLimit {
  /** The name of the counter, the same on every node. */
  id: string;
  unit: 'requests' | 'tokens';
  span_ms: typeof MINUTE_MS | typeof DAY_MS;
  amount: number;
  /** Text of the refusal after `Rate limit exceeded: `. */
  message: string;
}

/** A node's request for units of a counter's current window. */
export interface RateAsk {
  id: string;
  span_ms: number;
  amount: number;
  /** The least that it needs at once; with less it gets nothing. 0: it only reports. */
  need: number;
  /** Units that calls are waiting for now. */
  waiting: number;
  /** Units that it expects to use soon. */
  want: number;
  /** Units used without a grant, which are counted in any case. */
  owed: number;
  /** Unused units of the grant for the window that begins at `back_start_ms`. */
  back: number;
  back_start_ms: number;
}

/** The granted units, their window, and the current state of that window. */
export interface RateAnswer {
  id: string;
  granted: number;
  used: number;
  window_start_ms: number;
  /** The time of the store, not later than the answer. */
  now_ms: number;
}
