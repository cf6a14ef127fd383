import { describe, expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import { type ResponseHeaders, retryAfterMs } from './retry-after.ts';

const now = Date.UTC(2026, 0, 1, 12, 0, 0);
const date = 'Thu, 01 Jan 2026 12:00:00 GMT';

describe('the wait that an upstream requests', () => {
  test.each<[string, ResponseHeaders, number | undefined]>([
    ['is unknown without a header', {}, undefined],
    ['is read in seconds', { 'retry-after': '7' }, 7_000],
    ['may have a fraction, rounded up', { 'retry-after': '0.0015' }, 2],
    ['may be a date', { 'retry-after': 'Thu, 01 Jan 2026 12:00:30 GMT' }, 30_000],
    ['is zero for a date in the past', { 'retry-after': 'Thu, 01 Jan 2026 11:00:30 GMT' }, 0],
    ['is more precise in milliseconds', { 'retry-after': '1', 'retry-after-ms': '250' }, 250],
    ['is the first of several', { 'retry-after': ['3', '9'] }, 3_000],
    ['ignores values that are not a time', { 'retry-after': 'soon', 'retry-after-ms': '-4' }, undefined],
    ['is bounded', { 'retry-after': '99999999' }, limits.retry_after_ms_max],
    ['may be read from rate limit headers', { 'x-ratelimit-reset-requests': '1m2.5s' }, 62_500],
    ['reads milliseconds in durations', { 'x-ratelimit-reset-tokens': '120ms' }, 120],
    [
      'is that of the exhausted limit',
      {
        'x-ratelimit-reset-requests': '1s',
        'x-ratelimit-remaining-requests': '3',
        'x-ratelimit-reset-tokens': '6m0s',
        'x-ratelimit-remaining-tokens': '0',
      },
      360_000,
    ],
    [
      'is the shortest if no limit is reported as exhausted',
      { 'x-ratelimit-reset-requests': '9s', 'x-ratelimit-reset-tokens': '2s' },
      2_000,
    ],
    ['may be a Unix time in seconds', { 'x-ratelimit-reset': String(now / 1_000 + 5) }, 5_000],
    ['may be a Unix time in milliseconds', { 'x-ratelimit-reset': String(now + 5_000) }, 5_000],
    ['may be plain seconds', { 'x-ratelimit-reset': '12' }, 12_000],
    ['may be an RFC 3339 time', { 'anthropic-ratelimit-requests-reset': '2026-01-01T12:00:04Z' }, 4_000],
    ['prefers retry-after to rate limits', { 'retry-after': '1', 'x-ratelimit-reset-requests': '9s' }, 1_000],
  ])('%s', (_rule, headers, expected) => {
    expect(retryAfterMs({ date, ...headers })).toBe(expected);
  });

  test('is unknown for a date without a date header', () => {
    expect(retryAfterMs({ 'retry-after': date })).toBeUndefined();
  });
});
