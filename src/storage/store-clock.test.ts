import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { StoreClock } from './store-clock.ts';

const NOON = Date.parse('2026-11-21T12:00:00.000Z');

/** A machine whose clock is behind by this amount, and the store's time beside it. */
function setUp(behindMs = 0) {
  const machine = { wall_ms: NOON - behindMs, monotonic_ms: 5_000 };
  const skews: number[] = [];
  const clock = new StoreClock(
    { nowMs: () => machine.wall_ms, monotonicMs: () => machine.monotonic_ms },
    (skewMs) => void skews.push(skewMs),
  );
  const pass = (ms: number) => {
    machine.wall_ms += ms;
    machine.monotonic_ms += ms;
  };
  return { machine, clock, skews, pass };
}

test('before the first answer of the store the time is that of the machine', () => {
  const { clock } = setUp(7_200_000);
  expect(clock.nowMs()).toBe(NOON - 7_200_000);
  expect(clock.is_sure).toBe(true);
});

test('the store’s time advances by the monotonic clock, whatever the machine’s wall clock shows', () => {
  const { clock, pass } = setUp(7_200_000);
  clock.adjust(NOON, 5_000);
  pass(60_000);
  expect(clock.nowMs()).toBe(NOON + 60_000);
});

test('the store’s time counts as read in the middle of its round trip', () => {
  const { clock, pass } = setUp();
  pass(100);
  clock.adjust(NOON, 5_000);
  expect(clock.nowMs()).toBe(NOON + 50);
});

test('an answer after a long round trip does not replace one after a short round trip', () => {
  const { clock, pass } = setUp();
  clock.adjust(NOON, 5_000);
  pass(2_000);
  clock.adjust(NOON, 5_000);
  expect(clock.nowMs()).toBe(NOON + 2_000);
});

test('a skew above two seconds is logged once and counted, and again when it returns', () => {
  const { clock, skews, machine } = setUp(limits.store_skew_ms + 1);
  clock.adjust(NOON, 5_000);
  clock.adjust(NOON, 5_000);
  expect(skews).toEqual([-(limits.store_skew_ms + 1)]);
  machine.wall_ms = NOON;
  clock.adjust(NOON, 5_000);
  machine.wall_ms = NOON + 10_000;
  clock.adjust(NOON, 5_000);
  expect(skews).toEqual([-(limits.store_skew_ms + 1), 10_000]);
  expect(clock.skews).toBe(2);
});

test('after the machine slept, the later of both clocks is used and is unsure until the store answers', () => {
  const { clock, machine } = setUp();
  clock.adjust(NOON, 5_000);
  machine.wall_ms += 3_600_000;
  expect(clock.is_sure).toBe(false);
  expect(clock.nowMs()).toBe(NOON + 3_600_000);
  clock.adjust(NOON + 3_600_000, 5_000);
  expect(clock.is_sure).toBe(true);
});

test('a machine clock that is set back does not set the time back', () => {
  const { clock, machine } = setUp();
  clock.adjust(NOON, 5_000);
  machine.wall_ms -= 3_600_000;
  expect(clock.nowMs()).toBe(NOON);
  expect(clock.is_sure).toBe(false);
});
