import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { joined } from './joined.ts';

test('pieces are joined in slices of bounded size, and released', () => {
  const { joined_slice_bytes } = limits;
  const whole = randomBytes(10 * joined_slice_bytes + 7);
  const pieces: Buffer[] = [];
  for (let at = 0; at < whole.length; at += 60_000) pieces.push(whole.subarray(at, at + 60_000));
  const work = joined(pieces);
  let steps = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  expect(step.value.equals(whole)).toBe(true);
  expect(steps).toBeGreaterThanOrEqual(9);
  expect(pieces.every(({ length }) => length === 0)).toBe(true);
});

test('a single piece is not copied, and no pieces make an empty buffer', () => {
  const one = Buffer.from('a');
  expect(joined([one]).next().value).toBe(one);
  expect(joined([]).next().value).toHaveLength(0);
});
