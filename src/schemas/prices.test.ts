import { expect, test } from 'vitest';
import { isPriced } from './prices.ts';

test('a missing price is unknown, and not zero', () => {
  expect(isPriced({ prompt: 0, completion: 0 })).toBe(true);
  expect(isPriced({ prompt: 1 })).toBe(false);
  expect(isPriced({})).toBe(false);
});
