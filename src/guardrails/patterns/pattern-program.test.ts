import fc from 'fast-check';
import { RE2JS } from 're2js';
import { expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { PatternProgram } from './pattern-program.ts';

const atoms = [
  'a',
  'b',
  'c',
  'ab',
  '[ab]',
  '[^a]',
  '.',
  '\\b',
  '\\B',
  '^',
  '$',
  '(?m:^)',
  '(?m:$)',
  '\\w',
  '\\d',
  '(?i:A)',
  '😀',
  '(?s:.)',
  '\\n',
];
const repeats = ['', '', '', '*', '+', '?', '*?', '+?', '??', '{2}', '{1,3}', '{0,2}?'];
const patterns = fc.letrec<{ one: string; all: string }>((tie) => ({
  one: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(...atoms),
    fc.tuple(fc.constantFrom('(', '(?:'), tie('all')).map(([open, inner]) => `${open}${inner})`),
  ),
  all: fc
    .array(
      fc
        .tuple(tie('one'), fc.constantFrom(...repeats), fc.constantFrom('', '', '', '|'))
        .map((parts) => parts.join('')),
      {
        minLength: 1,
        maxLength: 5,
      },
    )
    .map((parts) => parts.join('')),
})).all;
const texts = fc
  .array(fc.constantFrom('a', 'b', 'c', 'A', '1', ' ', '\n', '😀', '_'), { maxLength: 14 })
  .map((parts) => parts.join(''));

function compiled(pattern: string): RE2JS | undefined {
  try {
    return RE2JS.compile(pattern);
  } catch {
    return undefined;
  }
}

function byRe2(pattern: RE2JS, text: string) {
  const matches = [];
  const matcher = pattern.matcher(text);
  while (matcher.find()) {
    if (matcher.end() > matcher.start()) matches.push({ start: matcher.start(), end: matcher.end() });
  }
  return matches;
}

test('a program finds the same matches as re2js', () => {
  let matched = 0;
  fc.assert(
    fc.property(patterns, texts, (pattern, text) => {
      const regexp = compiled(pattern);
      if (regexp === undefined) return;
      const wanted = byRe2(regexp, text);
      matched += wanted.length;
      expect(new PatternProgram(regexp).find(text)).toEqual(wanted);
    }),
    { numRuns: inTier(400, 4_000) },
  );
  expect(matched).toBeGreaterThan(inTier(100, 1_000));
});

test('matches before the held offset do not change when more text follows', () => {
  let held = 0;
  fc.assert(
    fc.property(patterns, texts, texts, (pattern, text, more) => {
      const regexp = compiled(pattern);
      if (regexp === undefined) return;
      const program = new PatternProgram(regexp);
      const from = program.heldFrom(text);
      if (from < text.length) held += 1;
      const before = program.find(text);
      const crossing = before.filter(({ start, end }) => start < from && end > from).map(({ start }) => start);
      const border = Math.min(from, ...crossing);
      const isBefore = ({ start }: { start: number }) => start < border;
      const after = program.find(text + more).filter(isBefore);
      expect(after).toEqual(before.filter(isBefore));
      expect(after.every(({ end }) => end <= border)).toBe(true);
    }),
    { numRuns: inTier(400, 4_000) },
  );
  expect(held).toBeGreaterThan(inTier(40, 400));
});
