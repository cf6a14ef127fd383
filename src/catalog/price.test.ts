import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nearestPicoUsd, picoUsd, usdText } from './price.ts';

describe('a price in USD becomes integer pico-USD', () => {
  test.each([
    [0.25, 'million', 250_000],
    ['0.25', 'million', 250_000],
    [2, 'million', 2_000_000],
    [0.000001, 'million', 1],
    [1e-6, 'million', 1],
    [0.1, 'million', 100_000],
    [0.3, 'million', 300_000],
    [15.123456, 'million', 15_123_456],
    [0, 'million', 0],
    [0.005, 'unit', 5_000_000_000],
    [1e-12, 'unit', 1],
    [9007, 'unit', 9_007_000_000_000_000],
    [1e-7, 'million', 'too_fine'],
    [0.049999999999999996, 'million', 'too_fine'],
    [9008, 'unit', 'too_high'],
    [1e21, 'million', 'too_high'],
    [-1, 'million', 'not_a_price'],
    [Number.NaN, 'million', 'not_a_price'],
    [Number.POSITIVE_INFINITY, 'million', 'not_a_price'],
    ['free', 'million', 'not_a_price'],
    ['1e99999', 'million', 'not_a_price'],
  ] as const)('%s USD per %s is %s', (usd, per, expected) => {
    expect(picoUsd(usd, per)).toBe(expected);
  });

  test('binary rounding errors in external facts are rounded to the nearest pico-USD', () => {
    expect(nearestPicoUsd(0.049999999999999996, 'million')).toBe(50_000);
    expect(nearestPicoUsd(0.09999999999999999, 'million')).toBe(100_000);
    expect(nearestPicoUsd(0.0000004, 'million')).toBe(0);
    expect(nearestPicoUsd('?', 'million')).toBeUndefined();
  });
});

describe('a price is shown as a plain decimal of USD per unit', () => {
  test.each([
    [250_000, '0.00000025'],
    [1, '0.000000000001'],
    [0, '0'],
    [1_000_000_000_000, '1'],
    [12_500_000_000_000, '12.5'],
    [9_007_000_000_000_000, '9007'],
  ])('%s pico-USD is %s', (pico, text) => {
    expect(usdText(pico)).toBe(text);
  });

  test('a printed price is read back unchanged', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 9_007_000_000_000_000 }), (pico) => {
        expect(picoUsd(usdText(pico), 'unit')).toBe(pico);
      }),
    );
  });
});
