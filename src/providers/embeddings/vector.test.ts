import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { normalised, readVector, toBase64, toNumbers } from './vector.ts';

const floats = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 50 });

describe('vectors', () => {
  test('32-bit floats are the same after base64 in both directions, bit for bit', () => {
    fc.assert(
      fc.property(floats, (numbers) => {
        const base64 = toBase64(numbers);
        expect(toNumbers(readVector(base64) ?? [])).toEqual(numbers);
        expect(toBase64(toNumbers(base64))).toBe(base64);
      }),
    );
  });

  test('the floats in base64 are little-endian, as clients expect', () => {
    expect(toBase64([1, -2])).toBe(Buffer.from([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]).toString('base64'));
  });

  test('vectors of numbers stay unchanged', () => {
    const numbers = [0.1, -1e-40, 0.123456789012345];
    expect(toNumbers(readVector(numbers) ?? [])).toBe(numbers);
  });

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['an empty list', []],
    ['a list with a text', [1, 'x']],
    ['a list with null, as servers send for NaN', [1, null]],
    ['an empty text', ''],
    ['half a float', 'AAA='],
    ['a text that is not base64', 'AAAAAA==!!!!!!!!'],
    ['an object', { 0: 1 }],
  ])('%s is not a vector', (_, value) => {
    expect(readVector(value)).toBeUndefined();
  });

  test('a vector is normalised to length one; a zero vector stays', () => {
    expect(normalised([3, 4])).toEqual([0.6, 0.8]);
    expect(normalised([0, 0])).toEqual([0, 0]);
  });
});
