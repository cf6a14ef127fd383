import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import { estimateTokens, TokenCount } from './token-estimate.ts';

const PROSE =
  'The gateway holds the commit until the first meaningful chunk has arrived, and only then tells the client that all is well. ';
const CODE =
  'export function sum(values: readonly number[]): number {\n  return values.reduce((total, value) => total + value, 0);\n}\n';
const JSON_TEXT = JSON.stringify({
  city: 'Paris',
  days: 3,
  units: 'celsius',
  tags: ['a', 'b'],
  nested: { ok: true, at: '2026-01-02T03:04:05Z' },
});

test.each([
  ['English prose', PROSE],
  ['code', CODE],
  ['JSON', JSON_TEXT],
  [
    'German',
    'Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist Verpflichtung aller staatlichen Gewalt. ',
  ],
  ['Chinese', '人工智能是计算机科学的一个分支，它企图了解智能的实质。'],
])('an estimate is within 35 %% of a tokenizer: %s', (_name, text) => {
  const long = text.repeat(8);
  const counted = encode(long).length;
  expect(Math.abs(estimateTokens(long) - counted) / counted).toBeLessThan(0.35);
});

test('an empty text has no tokens, and any other text has at least one', () => {
  expect(estimateTokens('')).toBe(0);
  expect(estimateTokens('a')).toBe(1);
});

test('the count of a text does not depend on how it is split', () => {
  for (const text of [PROSE, CODE, JSON_TEXT, 'camelCase 12345 人工智能\n\n-----===== über']) {
    const count = new TokenCount();
    for (const character of text) count.add(character);
    expect(count.total).toBe(estimateTokens(text));
  }
});

test('a line of one repeated character is few tokens', () => {
  expect(estimateTokens('-'.repeat(64))).toBeLessThan(8);
});

test('a very long text is estimated from samples, within 3 % of the whole', () => {
  const sentence = 'The quick brown fox jumps over 13 lazy dogs, and 語 is a word. ';
  const text = sentence.repeat(50_000);
  expect(text.length).toBeGreaterThan(2 * limits.estimated_chars_max);
  const whole = new TokenCount();
  whole.add(text);
  expect(Math.abs(estimateTokens(text) / whole.total - 1)).toBeLessThan(0.03);
});
