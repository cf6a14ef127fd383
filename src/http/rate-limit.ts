import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';

interface Bucket {
  tokens: number;
  at_ms: number;
}

/**
 * Bounds how often each caller does something: `per_minute` at once and on average. Gives a function that counts a call
 * and throws 429 with `retry-after` when it is one too many. Callers seen longest ago are forgotten first.
 */
export function createRateLimit(
  per_minute: number,
  monotonic_ms: () => number,
  what = 'management requests',
): (caller: string) => void {
  const buckets = new Map<string, Bucket>();
  return (caller) => {
    const at_ms = monotonic_ms();
    const known = buckets.get(caller) ?? { tokens: per_minute, at_ms };
    const tokens = Math.min(per_minute, known.tokens + ((at_ms - known.at_ms) * per_minute) / 60_000);
    buckets.delete(caller);
    if (buckets.size >= limits.rate_limit_callers_max) buckets.delete(buckets.keys().next().value ?? '');
    // A refused call costs nothing: else who asks again too soon would never be let through.
    buckets.set(caller, tokens >= 1 ? { tokens: tokens - 1, at_ms } : known);
    if (tokens >= 1) return;
    const wait_s = Math.ceil(((1 - tokens) * 60) / per_minute);
    throw new GatewayError(429, `More than ${per_minute} ${what} a minute; try again in ${wait_s} s`, {
      headers: { 'retry-after': String(wait_s) },
    });
  };
}
