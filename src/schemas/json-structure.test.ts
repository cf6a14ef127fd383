import { describe, expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { answerLevels, isDeeperThan, JsonStructure, structureBreach } from './json-structure.ts';

const times = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i));
const bounds = { values_max: 10, levels_max: 3, keys_max: 2 };

describe('the levels of a value', () => {
  test('count nested lists and objects', () => {
    expect(isDeeperThan('a', 0)).toBe(false);
    expect(isDeeperThan([], 0)).toBe(true);
    expect(isDeeperThan({ a: [1, { b: [] }] }, 4)).toBe(false);
    expect(isDeeperThan({ a: [1, { b: [] }] }, 3)).toBe(true);
  });

  test('may be any number', () => {
    expect(isDeeperThan(JSON.parse('['.repeat(100_000) + ']'.repeat(100_000)), 256)).toBe(true);
  });
});

describe('the structure of a text', () => {
  test.each([
    ['[[[1]]]', undefined],
    ['[[[[1]]]]', 'must not be nested deeper than 3 levels'],
    ['[1,2,3,4,5,6,7,8]', undefined],
    ['[1,2,3,4,5,6,7,8,9,10]', 'must not have more than 10 values'],
    ['{"a":1,"b":2}', undefined],
    ['{"a":1,"b":2,"c":3}', 'must not have an object with more than 2 keys'],
    ['[{"a":1,"b":2},{"c":1}]', undefined],
    ['["[[[[{{{{,,,,,,,,,,,::::::::","\\\\\\"[[[[[[["]', undefined],
  ])('%s', (text, breach) => {
    expect(structureBreach(text.padEnd(10), bounds)).toBe(breach);
  });

  test('is the same however the text is split', () => {
    const text = JSON.stringify({ a: ['"', '\\', '\\"', 'x\\\\'], 'b"\\': { c: [{}, [], 1.5, true] }, d: 'é[,' });
    const whole = new JsonStructure();
    whole.write(text);
    for (let first = 0; first <= text.length; first += 1) {
      for (let second = first; second <= text.length; second += 1) {
        const pieces = new JsonStructure();
        for (const piece of [text.slice(0, first), text.slice(first, second), text.slice(second)]) pieces.write(piece);
        expect([pieces.values, pieces.memory_bytes]).toEqual([whole.values, whole.memory_bytes]);
      }
    }
    expect(whole.values).toBeGreaterThanOrEqual(10);
  });

  test('has at least the number of values, for any JSON', () => {
    const count = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? 1 + Object.values(value).reduce((sum: number, one) => sum + count(one), 0)
        : 1;
    for (const value of [{}, [], 'a', [1, [2, { a: {}, b: [3, 'x', null] }]], { a: { b: { c: [1, 2, 3] } } }]) {
      const structure = new JsonStructure();
      structure.write(JSON.stringify(value));
      expect(structure.values).toBeGreaterThanOrEqual(count(value));
      expect(structure.values).toBeLessThanOrEqual(2 * count(value));
    }
  });

  test('of an answer is bounded in its levels alone', () => {
    const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    const { answer_levels_max } = limits;
    expect(structureBreach(deep(answer_levels_max), answerLevels)).toBeUndefined();
    for (const text of [deep(answer_levels_max + 1), '{"a":'.repeat(answer_levels_max + 1), '['.repeat(5_000)])
      expect(structureBreach(text, answerLevels)).toBe(`must not be nested deeper than ${answer_levels_max} levels`);
    expect(structureBreach(`[${'1,'.repeat(1_000_000)}${'[],'.repeat(5_000)}1]`, answerLevels)).toBeUndefined();
    expect(structureBreach(`{${times(20_000, (i) => `"k${i}":{}`).join()}}`, answerLevels)).toBeUndefined();
  });

  const few = { values_max: 51, levels_max: 10, keys_max: 100 };

  test('counts values by commas and brackets', () => {
    expect(structureBreach(`[${'1,'.repeat(49)}1]`, few)).toBeUndefined();
    expect(structureBreach(`[${'1,'.repeat(50)}1]`, few)).toMatch(/values$/);
    expect(structureBreach(`[${'[]'.repeat(60)}]`, few)).toMatch(/values$/);
  });

  test('ignores text in strings, wherever they end', () => {
    const inside = '['.repeat(100) + ','.repeat(100);
    const text = JSON.stringify({ a: inside, b: `"${inside}\\`, c: `\\\\"${inside}` });
    expect(structureBreach(text, few)).toBeUndefined();
    expect(structureBreach(`["${inside}\\\\",${'['.repeat(11)}${']'.repeat(11)}]`, few)).toMatch(/levels$/);
    expect(structureBreach(`["${inside}`, few)).toBeUndefined();
  });

  test('is refused for a short text of many levels, and accepted for one of few', () => {
    const roomy = { values_max: 1_000, levels_max: 10, keys_max: 1_000 };
    expect(structureBreach('[{"a":'.repeat(5), roomy)).toBeUndefined();
    expect(structureBreach('[{"a":'.repeat(6), roomy)).toMatch(/levels$/);
    expect(structureBreach(`[${'{},[],'.repeat(20)}0]`, roomy)).toBeUndefined();
  });

  test('of invalid JSON is bounded as well', () => {
    expect(structureBreach(':'.repeat(100_000))).toMatch(/keys$/);
    expect(structureBreach(`${'}'.repeat(1_000)}${'['.repeat(1_000)}`)).toMatch(/levels$/);
    expect(structureBreach(','.repeat(limits.json_values_max))).toMatch(/values$/);
  });
});
