import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countTokens, tokensOf } from './tokens.ts';

test('the joined pieces are the text, and the count is their number', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      const tokens = tokensOf(text);
      expect(tokens.join('')).toBe(text);
      expect(countTokens(text)).toBe(tokens.length);
    }),
  );
});

test('a token is up to six characters with the white space before them', () => {
  expect(tokensOf('Hello, wonderful  world\n')).toEqual(['Hello,', ' wonder', 'ful', '  world', '\n']);
  expect(tokensOf('😀😀😀😀😀😀😀')).toEqual(['😀😀😀😀😀😀', '😀']);
});
