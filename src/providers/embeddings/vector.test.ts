import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { normalised, readVector, toBase64, toNumbers } from './vector.ts';

const floats = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 50 });

describe('vectors', () => {
  test('32-bit floats survive base64 both ways, bit for bit', () => {
    fc.assert(
      fc.property(floats, (numbers) => {
        const base64 = toBase64(numbers);
        expect(toNumbers(readVector(base64) ?? [])).toEqual(numbers);
        expect(toBase64(toNumbers(base64))).toBe(base64);
      }),
    );
  });

  test('the floats in base64 are little-endian, as every client reads them', () => {
    expect(toBase64([1, -2])).toBe(Buffer.from([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]).toString('base64'));
  });

  test('numbers that were sent as numbers stay what they were', () => {
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
    ['a text that is no base64', 'AAAAAA==!!!!!!!!'],
    ['an object', { 0: 1 }],
  ])('%s is no vector', (_, value) => {
    expect(readVector(value)).toBeUndefined();
  });

  test('a vector is brought to length one; one without length stays', () => {
    expect(normalised([3, 4])).toEqual([0.6, 0.8]);
    expect(normalised([0, 0])).toEqual([0, 0]);
  });
});
