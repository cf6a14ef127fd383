import { expect, test } from 'vitest';
import { statusOf } from './endpoint-status.ts';
import type { Condition } from './health.ts';

test.each<[Condition, number | null, number | null, string]>([
  ['well', null, null, '0'],
  ['well', 95, 50, '0'],
  ['well', 94.9, 100, '-2'],
  ['well', 79.9, 100, '-5'],
  ['well', null, 79.9, '-5'],
  ['rate_limited', 100, 100, '-1'],
  ['rate_limited', 90, 100, '-2'],
  ['failing', 100, 100, '-3'],
  ['failing', 90, 100, '-3'],
  ['failing', 10, 100, '-5'],
  ['refused', 100, 100, '-10'],
  ['refused', 10, 100, '-10'],
])('%s, with %s and %s percent successful calls, is %s', (condition, uptimeLast5m, uptimeLast30m, status) => {
  expect(statusOf(condition, { uptime_last_5m: uptimeLast5m, uptime_last_30m: uptimeLast30m })).toBe(status);
});
