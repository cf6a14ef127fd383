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

test('all that a text of JSON says is told, however it is written', () => {
  const spaced = fc.constantFrom(undefined, 1, '\t');
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), spaced, (value, space) => {
      const text = JSON.stringify(value, null, space);
      const { tokens, is_json } = tokensOf(text);
      expect(is_json).toBe(true);
      const given = JSON.parse(text) as JsonValue;
      expect(tokens.map((token) => token.text).sort()).toEqual(leavesOf(given).sort());
      expect(withTokens(text, [])).toBe(text);
    }),
  );
});

test('what is no JSON is known as such, and what is one as one', () => {
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

test('a member that readers drop is told as well', () => {
  expect(tokensOf('{"a":"dropped","a":"kept"}').tokens.map(({ text }) => text)).toEqual(['a', 'dropped', 'a', 'kept']);
});

test('names that become one stay beside each other', () => {
  const text = '{"x": 1, "y": 2, "N": 3}';
  const { tokens } = tokensOf(text);
  const changed = tokens
    .filter(({ text: said }) => /[xy]/.test(said))
    .map((token): [JsonToken, string] => [token, 'N']);
  expect(withTokens(text, changed)).toBe('{"N 2": 1, "N 3": 2, "N": 3}');
});
