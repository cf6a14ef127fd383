import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { type JsonToken, jsonTokens, withTokens } from './json-tokens.ts';

function tokensOf(text: string): { tokens: JsonToken[]; is_json: boolean } {
  const tokens: JsonToken[] = [];
  const read = jsonTokens(text);
  for (;;) {
    const { done, value } = read.next();
    if (done === true) return { tokens, is_json: value };
    tokens.push(value);
  }
}

function leavesOf(value: JsonValue): string[] {
  if (typeof value === 'string' || typeof value === 'number') return [String(value)];
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(leavesOf);
  return Object.entries(value).flatMap(([name, member]) => [name, ...leavesOf(member ?? null)]);
}

const isJson = (text: string) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

test('the tokens of a JSON text are all its names and values, in any spelling', () => {
  const spaced = fc.constantFrom(undefined, 1, '\t');
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), spaced, (original, space) => {
      const text = JSON.stringify(original, null, space);
      const { tokens, is_json } = tokensOf(text);
      expect(is_json).toBe(true);
      const parsed = JSON.parse(text) as JsonValue;
      expect(tokens.map((token) => token.text).sort()).toEqual(leavesOf(parsed).sort());
      expect(withTokens(text, [])).toBe(text);
    }),
  );
});

test('text is classified as JSON or not like by JSON.parse', () => {
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\u0040"',
    '"\\"',
    '1',
    '-0.5e3',
    '01',
    'true',
    'nul',
    ' ',
    '"\n"',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 9 }), (pieces) => {
      const text = pieces.join('');
      expect([text, tokensOf(text).is_json]).toEqual([text, isJson(text)]);
    }),
    { numRuns: inTier(200, 2_000) },
  );
});

test('a duplicate member, which JSON.parse drops, has tokens too', () => {
  expect(tokensOf('{"a":"dropped","a":"kept"}').tokens.map(({ text }) => text)).toEqual(['a', 'dropped', 'a', 'kept']);
});

test('names that become equal are numbered', () => {
  const text = '{"x": 1, "y": 2, "N": 3}';
  const { tokens } = tokensOf(text);
  const changed = tokens.filter((token) => /[xy]/.test(token.text)).map((token): [JsonToken, string] => [token, 'N']);
  expect(withTokens(text, changed)).toBe('{"N 2": 1, "N 3": 2, "N": 3}');
});
