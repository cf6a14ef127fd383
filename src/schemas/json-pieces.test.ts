import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { type JsonValue, jsonWithSource } from './json.ts';
import { isLongJson, jsonPieces } from './json-pieces.ts';

const written = (value: unknown, chars?: number) =>
  Buffer.concat([...jsonPieces(value as JsonValue, chars)]).toString('utf8');

describe('JSON in pieces', () => {
  const strings = fc.string({
    unit: fc.constantFrom('a', '"', '\\', '\n', '\u0001', 'é', '彼', '😀', '\ud83d', '\ude00'),
  });
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      strings,
      fc.double(),
      fc.constantFrom(undefined, null, true, -0, 1e21, jsonWithSource.rawJSON('12345678901234567890')),
      fc.array(tie('value')),
      fc.dictionary(fc.oneof(strings, fc.constantFrom('__proto__', 'toJSON', '1')), tie('value')),
    ),
  }));

  test('equals JSON.stringify, byte for byte, wherever it is split', () => {
    fc.assert(
      fc.property(value, fc.integer({ min: 1, max: 20 }), (one, chars) => {
        const whole = { a: one };
        expect(written(whole, chars)).toBe(Buffer.from(JSON.stringify(whole)).toString('utf8'));
      }),
    );
  });

  test('omits values that JSON cannot express, like JSON.stringify', () => {
    const odd = [
      { a: undefined, b: () => 1, c: Symbol('c'), d: 1 },
      [undefined, () => 1, Symbol('c'), Number.NaN],
      { at: new Date(0), bytes: Buffer.from('a') },
      Object.create({ inherited: 1 }),
      { a: undefined },
    ];
    expect(written(odd)).toBe(JSON.stringify(odd));
  });

  test('has pieces of bounded length, whatever is long', () => {
    const long = '😀"'.repeat(2 * limits.json_piece_chars);
    const values = Array.from({ length: limits.json_piece_chars }, (_, i) => ({ i }));
    const body = { text: long, values, [`${'k'.repeat(1_000)}`]: [long] } as unknown as JsonValue;
    const pieces = [...jsonPieces(body)];
    expect(Buffer.concat(pieces).equals(Buffer.from(JSON.stringify(body)))).toBe(true);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(8 * limits.json_piece_chars);
  });

  test('may be of any depth', () => {
    const deep = JSON.parse(`${'[{"a":'.repeat(1_000)}1${'}]'.repeat(1_000)}`);
    expect(written(deep)).toBe(JSON.stringify(deep));
  });
});

describe('a value is long', () => {
  test('by its texts and by its values', () => {
    const { json_long_chars_min } = limits;
    expect(isLongJson({ a: ['x'.repeat(1_000)] })).toBe(false);
    expect(isLongJson('x'.repeat(json_long_chars_min))).toBe(true);
    expect(isLongJson({ a: [{ b: 'x'.repeat(json_long_chars_min / 2) }, 'x'.repeat(json_long_chars_min / 2)] })).toBe(
      true,
    );
    expect(isLongJson(Array.from({ length: json_long_chars_min }, () => 1))).toBe(true);
    expect(isLongJson({ ['k'.repeat(json_long_chars_min)]: 1 })).toBe(true);
  });
});
