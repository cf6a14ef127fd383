import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { createHealth } from './health.ts';

test('a failure cools an endpoint down, for longer with each in a row, up to a bound', () => {
  const health = createHealth();
  const waits: number[] = [];
  for (let count = 0; count < 8; count += 1) {
    health.failed('e', 'unavailable', undefined, 0);
    waits.push(health.coolingUntil('e', 0));
  }
  expect(waits.slice(0, 3)).toEqual([10_000, 20_000, 40_000]);
  expect(waits.at(-1)).toBe(limits.cool_down_ms_max);
});

test('an upstream’s own wait is kept', () => {
  const health = createHealth();
  health.failed('e', 'rate_limited', 1_500, 100);
  expect(health.coolingUntil('e', 1_599)).toBe(1_600);
  expect(health.coolingUntil('e', 1_600)).toBe(0);
});

test('a shorter wait does not end a longer one', () => {
  const health = createHealth();
  health.failed('e', 'rate_limited', 60_000, 0);
  health.failed('e', 'rate_limited', 1_000, 100);
  expect(health.coolingUntil('e', 200)).toBe(60_000);
});

test.each([
  'rate_limited',
  'overloaded',
  'unavailable',
  'timeout',
  'credential',
  'payment',
  'not_found',
  'invalid_response',
] as const)('%s cools down', (failure) => {
  const health = createHealth();
  health.failed('e', failure, undefined, 0);
  expect(health.coolingUntil('e', 0)).toBeGreaterThan(0);
});

test('a success ends the cool-down', () => {
  const health = createHealth();
  health.failed('e', 'timeout', undefined, 0);
  health.succeeded('e', 1);
  expect(health.coolingUntil('e', 1)).toBe(0);
});

test.each(['invalid_request', 'content_filter', 'state_rejected'] as const)(
  '%s says nothing about the endpoint',
  (failure) => {
    const health = createHealth();
    health.failed('e', failure, undefined, 0);
    expect(health.coolingUntil('e', 0)).toBe(0);
  },
);

test('what is remembered is bounded; the longest-ago failure is forgotten first', () => {
  const health = createHealth();
  for (let n = 0; n <= limits.health_endpoints_max; n += 1) health.failed(`e${n}`, 'unavailable', undefined, 0);
  expect(health.coolingUntil('e0', 0)).toBe(0);
  expect(health.coolingUntil('e1', 0)).toBeGreaterThan(0);
});
