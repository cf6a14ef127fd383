import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { createRateLimit, rateLimited } from './rate-limit.ts';

function setUp(perMinute: number) {
  let atMs = 0;
  const count = createRateLimit(perMinute, { nowMs: () => 1_000_000 + atMs, monotonicMs: () => atMs }, 'calls');
  const isCounted = (caller: string) => {
    try {
      count(caller);
      return true;
    } catch {
      return false;
    }
  };
  const pass = (ms: number) => {
    atMs += ms;
  };
  return { count, isCounted, pass };
}

test('a caller has a full burst, then one call for each share of the minute; callers are separate', () => {
  const { isCounted, pass } = setUp(30);
  for (let n = 0; n < 30; n += 1) expect(isCounted('a')).toBe(true);
  expect(isCounted('a')).toBe(false);
  expect(isCounted('b')).toBe(true);
  pass(2_000);
  expect([isCounted('a'), isCounted('a')]).toEqual([true, false]);
  pass(3_600_000);
  for (let n = 0; n < 30; n += 1) expect(isCounted('a')).toBe(true);
  expect(isCounted('a')).toBe(false);
});

test('a call above the limit is a 429 with the wait, after which a call succeeds', () => {
  const { count, isCounted, pass } = setUp(2);
  count('a');
  count('a');
  expect(() => count('a')).toThrow(
    expect.objectContaining({
      status: 429,
      headers: {
        'retry-after': '30',
        'retry-after-ms': '30000',
        'x-ratelimit-limit': '2',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': '1030000',
      },
      metadata: {
        provider_name: null,
        retry_after_seconds: 30,
        headers: { 'X-RateLimit-Limit': '2', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '1030000' },
      },
      message: expect.stringContaining('calls'),
    }),
  );
  pass(30_000);
  expect(isCounted('a')).toBe(true);
});

test('further calls do not extend the time to wait', () => {
  const { isCounted, pass } = setUp(60);
  for (let n = 0; n < 1_000; n += 1) isCounted('a');
  pass(1_000);
  expect(isCounted('a')).toBe(true);
});

test('a caller that retries too soon is served as often as one that waits', () => {
  const { isCounted, pass } = setUp(60);
  for (let n = 0; n < 60; n += 1) isCounted('a');
  let served = 0;
  for (let n = 0; n < 100; n += 1) {
    pass(100);
    if (isCounted('a')) served += 1;
  }
  expect(served).toBe(10);
});

test('the number of remembered callers is bounded, and the least recent are removed', () => {
  const { isCounted } = setUp(1);
  for (let n = 0; n <= limits.rate_limit_callers_max; n += 1) expect(isCounted(`caller ${n}`)).toBe(true);
  expect(isCounted(`caller ${limits.rate_limit_callers_max}`)).toBe(false);
  expect(isCounted('caller 1')).toBe(false);
  expect(isCounted('caller 0')).toBe(true);
});

test('a wait longer than official SDKs accept is marked as not retryable', () => {
  const state = { limit: 50, remaining: 0, ends_at_ms: 90_000 };
  expect(rateLimited('', { ...state, wait_ms: 60_000 }).headers).not.toHaveProperty('x-should-retry');
  expect(rateLimited('', { ...state, wait_ms: 60_001 }).headers).toMatchObject({
    'x-should-retry': 'false',
    'retry-after': '61',
  });
});
