import type { onRequestHookHandler } from 'fastify';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { networkOf, type TrustedProxies } from './trusted-proxies.ts';

interface Bucket {
  tokens: number;
  at_ms: number;
}

/**
 * Bounds how often each caller does something: at most `perMinute` at once, and on average. Returns a function that counts a call, and
 * throws a 429 with `retry-after` if the caller exceeds the bound. The callers that were quiet longest are forgotten first.
 */
export function createRateLimit(
  perMinute: number,
  clock: { nowMs(): number; monotonicMs(): number },
  what = 'management requests',
): (caller: string) => void {
  const buckets = new Map<string, Bucket>();
  return (caller) => {
    const atMs = clock.monotonicMs();
    const previous = buckets.get(caller) ?? { tokens: perMinute, at_ms: atMs };
    const tokens = Math.min(perMinute, previous.tokens + ((atMs - previous.at_ms) * perMinute) / 60_000);
    buckets.delete(caller);
    if (buckets.size >= limits.rate_limit_callers_max) buckets.delete(buckets.keys().next().value ?? '');
    // A refused call is not counted, otherwise a caller that retries too soon would never get through.
    buckets.set(caller, tokens >= 1 ? { tokens: tokens - 1, at_ms: atMs } : previous);
    if (tokens >= 1) return;
    const waitMs = Math.ceil(((1 - tokens) * 60_000) / perMinute);
    const message = `More than ${perMinute} ${what} a minute; try again in ${Math.ceil(waitMs / 1_000)} s`;
    throw rateLimited(message, {
      limit: perMinute,
      remaining: 0,
      ends_at_ms: clock.nowMs() + waitMs,
      wait_ms: waitMs,
    });
  };
}

/** Limits the requests of each client address before their bodies are sent: for routes without authentication. */
export function limitClients(count: (client: string) => void, proxies: TrustedProxies): onRequestHookHandler {
  return ({ ip, headers }, _reply, done) => {
    count(networkOf(proxies.clientAddress(ip, headers['x-forwarded-for'])));
    done();
  };
}

/** The 429 of one of the gateway's own limits, with the limit and the time to wait as headers and in the body. `is_final`: retrying does not help. */
export function rateLimited(
  message: string,
  state: { limit: number; remaining: number; ends_at_ms: number; wait_ms: number; is_final?: boolean },
): GatewayError {
  const shown = {
    'X-RateLimit-Limit': String(state.limit),
    'X-RateLimit-Remaining': String(state.remaining),
    'X-RateLimit-Reset': String(state.ends_at_ms),
  };
  const waitS = Math.ceil(state.wait_ms / 1_000);
  return new GatewayError(429, message, {
    metadata: { headers: shown, provider_name: null, retry_after_seconds: waitS },
    headers: {
      ...Object.fromEntries(Object.entries(shown).map(([name, value]) => [name.toLowerCase(), value])),
      'retry-after': String(waitS),
      // The official SDKs prefer this header, and ignore a `retry-after` of a minute or more.
      'retry-after-ms': String(state.wait_ms),
      // The SDKs do not wait longer than a minute: they would retry at once, in vain.
      ...(state.wait_ms > 60_000 || state.is_final ? { 'x-should-retry': 'false' } : {}),
    },
  });
}
