import { expect, test } from 'vitest';
import { jsonExcess } from './json-bounds.ts';

const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
const bounds = { levels_max: 10, values_max: 50 };

test('a text is beyond its levels from the first that is one more', () => {
  expect(jsonExcess(deep(10), bounds)).toBeUndefined();
  expect(jsonExcess(deep(11), bounds)).toBe('levels');
  expect(jsonExcess('['.repeat(30), bounds)).toBe('levels');
  expect(jsonExcess('{"a":'.repeat(11), bounds)).toBe('levels');
});

test('values are counted by their commas and brackets', () => {
  expect(jsonExcess(`[${'1,'.repeat(49)}1]`, bounds)).toBeUndefined();
  expect(jsonExcess(`[${'1,'.repeat(50)}1]`, bounds)).toBe('values');
  expect(jsonExcess(`[${'[]'.repeat(60)}]`, bounds)).toBe('values');
  expect(jsonExcess(`[${'1,'.repeat(5_000)}1]`, { levels_max: 10 })).toBeUndefined();
});

test('what stands in strings is no bracket and no comma, wherever they end', () => {
  const inside = '['.repeat(100) + ','.repeat(100);
  expect(jsonExcess(JSON.stringify({ a: inside, b: `"${inside}\\`, c: `\\\\"${inside}` }), bounds)).toBeUndefined();
  expect(jsonExcess(`["${inside}\\\\",${deep(11)}]`, bounds)).toBe('levels');
  expect(jsonExcess(`["${inside}`, bounds)).toBeUndefined();
});
