import { expect, test } from 'vitest';
import { hasLongIntegers, parseJson } from './json.ts';

test.each([
  '{"id":12345678901234567890}',
  '[1,-9223372036854775808,2]',
  '{"a":{"b":[ 18446744073709551615 ]},"c":1.5,"d":"x"}',
])('integers of 64 bits are unchanged: %s', (text) => {
  expect(hasLongIntegers(text)).toBe(true);
  expect(JSON.stringify(parseJson(text))).toBe(text.replaceAll(' ', ''));
});

test.each([
  '{"a":9007199254740991}',
  '{"a":0.1234567890123456789,"b":1e300}',
  '{"a":"12345678901234567890"}',
  '[]',
  'null',
])('numbers within the range of a double are numbers: %s', (text) => {
  expect(parseJson(text)).toEqual(JSON.parse(text));
});

test('a long integer inside a string has no effect', () => {
  const text = '{"a":"x: 12345678901234567890","b":3,"c":1.1e2}';
  expect(hasLongIntegers(text)).toBe(true);
  expect(parseJson(text)).toEqual(JSON.parse(text));
});

test('invalid JSON is refused', () => {
  expect(() => parseJson('{"a":12345678901234567890')).toThrow(SyntaxError);
});
