import type { onRequestHookHandler } from 'fastify';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { networkOf, type TrustedProxies } from './trusted-proxies.ts';

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
  clock: { now_ms(): number; monotonic_ms(): number },
  what = 'management requests',
): (caller: string) => void {
  const buckets = new Map<string, Bucket>();
  return (caller) => {
    const at_ms = clock.monotonic_ms();
    const known = buckets.get(caller) ?? { tokens: per_minute, at_ms };
    const tokens = Math.min(per_minute, known.tokens + ((at_ms - known.at_ms) * per_minute) / 60_000);
    buckets.delete(caller);
    if (buckets.size >= limits.rate_limit_callers_max) buckets.delete(buckets.keys().next().value ?? '');
    // A refused call costs nothing: else who asks again too soon would never be let through.
    buckets.set(caller, tokens >= 1 ? { tokens: tokens - 1, at_ms } : known);
    if (tokens >= 1) return;
    const wait_ms = Math.ceil(((1 - tokens) * 60_000) / per_minute);
    const message = `More than ${per_minute} ${what} a minute; try again in ${Math.ceil(wait_ms / 1_000)} s`;
    throw rateLimited(message, { limit: per_minute, remaining: 0, ends_at_ms: clock.now_ms() + wait_ms, wait_ms });
  };
}

/** Counts the requests of each client by its address, before their bodies are sent: for routes that ask for no key. */
export function limitClients(count: (client: string) => void, proxies: TrustedProxies): onRequestHookHandler {
  return ({ ip, headers }, _reply, done) => {
    count(networkOf(proxies.clientAddress(ip, headers['x-forwarded-for'])));
    done();
  };
}

/** The 429 of a limit of the gateway's own: when to come back, if that helps, and the limit, as headers and in the body. */
export function rateLimited(
  message: string,
  told: { limit: number; remaining: number; ends_at_ms: number; wait_ms: number; is_final?: boolean },
): GatewayError {
  const shown = {
    'X-RateLimit-Limit': String(told.limit),
    'X-RateLimit-Remaining': String(told.remaining),
    'X-RateLimit-Reset': String(told.ends_at_ms),
  };
  const wait_s = Math.ceil(told.wait_ms / 1_000);
  return new GatewayError(429, message, {
    metadata: { headers: shown, provider_name: null, retry_after_seconds: wait_s },
    headers: {
      ...Object.fromEntries(Object.entries(shown).map(([name, value]) => [name.toLowerCase(), value])),
      'retry-after': String(wait_s),
      // The official SDKs wait as long as this says, and take no whole minute of `retry-after`.
      'retry-after-ms': String(told.wait_ms),
      // A longer wait they do not wait for: they would try again at once, in vain.
      ...(told.wait_ms > 60_000 || told.is_final ? { 'x-should-retry': 'false' } : {}),
    },
  });
}
