import { expect, test } from 'vitest';
import { isSampled } from './request-log.ts';

const IDS = 100_000;
const share = (bp: number) => {
  let taken = 0;
  for (let at = 0; at < IDS; at += 1) if (isSampled(`gen-1763719200-${at}`, bp)) taken += 1;
  return taken / IDS;
};

test.each([1, 10, 500, 2_500, 5_000, 9_990])(
  '%i in ten thousand calls are sampled, within a statistical deviation',
  (bp) => {
    const wanted = bp / 10_000;
    const deviation = Math.sqrt((wanted * (1 - wanted)) / IDS);
    expect(Math.abs(share(bp) - wanted)).toBeLessThan(5 * deviation);
  },
);

test('at a share of one, every call is sampled', () => {
  expect(share(10_000)).toBe(1);
});

test('a call that is sampled at a share is sampled at every larger one', () => {
  for (let at = 0; at < 1_000; at += 1) {
    const id = `gen-1763719200-${at}`;
    const drawn = [1, 100, 2_500, 5_000, 9_999, 10_000].map((bp) => isSampled(id, bp));
    expect(drawn).toEqual([...drawn].sort());
  }
});

test('with a secret, the sample depends on the secret and is the same on every node', () => {
  const drawn = (secret?: string) =>
    Array.from({ length: 1_000 }, (_, at) => isSampled(`session-${at}`, 5_000, secret)).join();
  expect(drawn('one')).toBe(drawn('one'));
  expect(new Set([drawn(), drawn('one'), drawn('two')]).size).toBe(3);
});
