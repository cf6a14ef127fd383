import fc from 'fast-check';
import { RE2JS } from 're2js';
import { expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { limits } from '../../limits.ts';
import { patternFault } from './pattern.ts';
import { compileSteps } from './pattern-cost.ts';

const atoms = [
  'a',
  'Kß',
  '😀',
  '.',
  '^',
  '\\d',
  '\\W',
  '\\pL',
  '\\PN',
  '\\p{Greek}',
  '\\x{1f600}',
  '\\101',
  '\\Q(a[\\E',
  '\\{',
  '{',
  '{,3}',
  '[a-z_]',
  '[^\\]x-]',
  '[]a]',
  '[^]a]',
  '[[:alpha:]\\d-]',
  '[[:x]',
  '[\\x{100}-\\x{200}é]',
  '[(]',
  '(?i)',
  '(?s-i)',
];
const repeats = ['', '', '*', '+?', '?', '{3}', '{2,}', '{0,7}', '{4}?', '{0}'];

/** Patterns of which RE2 accepts most. */
const patterns = fc.letrec<{ one: string; all: string }>((tie) => {
  const kinds = fc.constantFrom('(', '(?:', '(?<n>', '(?i:');
  return {
    one: fc.oneof(
      { maxDepth: 2 },
      fc.constantFrom(...atoms),
      fc.tuple(kinds, tie('all')).map(([open, inner]) => `${open}${inner})`),
    ),
    all: fc
      .array(
        fc.tuple(tie('one'), fc.constantFrom(...repeats), fc.constantFrom('', '', '|')).map((parts) => parts.join('')),
        { maxLength: 6 },
      )
      .map((parts) => parts.join('')),
  };
}).all;

function sizeOf(pattern: string): number | undefined {
  try {
    return RE2JS.compile(pattern).programSize();
  } catch {
    return undefined;
  }
}

test('a program is never larger than its estimate', () => {
  let compiled = 0;
  fc.assert(
    fc.property(patterns, (pattern) => {
      const size = sizeOf(pattern);
      if (size === undefined) return;
      compiled += 1;
      expect(compileSteps(pattern)).toBeGreaterThanOrEqual(size);
    }),
    { numRuns: inTier(300, 3_000) },
  );
  expect(compiled).toBeGreaterThan(inTier(100, 1_000));
});

test('a short pattern is accepted if its program is within the limit', () => {
  fc.assert(
    fc.property(patterns, (pattern) => {
      fc.pre(pattern.length <= 200 && (pattern.match(/\{\d/g)?.length ?? 0) <= 2);
      const size = sizeOf(RE2JS.translateRegExp(pattern));
      if (size === undefined || size > limits.filter_program_size_max) return;
      expect(patternFault(pattern)).toBeUndefined();
    }),
    { numRuns: inTier(200, 2_000) },
  );
});

test.each([
  '[A-Za-z0-9._%+-]{1,500}@[A-Za-z0-9.-]{64}',
  '(?i)[a-z\\pL]{1000}',
  '[\\pL\\pN\\pM\\pP]+'.repeat(10),
  `(?i)[${'\\x{4e00}-\\x{9fff}'.repeat(10)}]`,
  Array.from({ length: 1_500 }, (_, index) => `\\x{${(0x1f300 + index).toString(16)}}`).join('|'),
  Array.from({ length: 400 }, (_, index) => `secret-${index}`).join('|'),
])('%.40s is accepted', (pattern) => {
  expect(patternFault(pattern)).toBeUndefined();
});

// Each would block the event loop for 0.3 to 11 seconds.
test.each([
  ['\\pL', 33_000],
  ['(?i)[a-z\\pL]', 7_000],
  ['(?i)[B-\\x{1e900}]', 64],
  ['a?', 49_000],
  ['(a|b)*', 16_000],
  ['\\d\\w\\s', 16_000],
  ['a*|', 30_000],
  ['(?:a{1000})', 9_000],
])('%s, %i times repeated, is refused before it is compiled', (part, times) => {
  expect(patternFault(part.repeat(times))).toMatch(
    /^is too large: compiling it may take \d+ steps, 12000 are allowed$/,
  );
});

test.each([
  ['a class of many classes', `[${'\\pL'.repeat(33_000)}]`],
  ['a pattern with brackets in a class and in quoted text', `\\Q[\\E[(\\Q]${'(?:a{1000}){3}'.repeat(5)}`],
  ['an open class of names', `[${'[:'.repeat(33_000)}`],
])('%s is refused before it is compiled', (_, pattern) => {
  expect(patternFault(pattern)).toMatch(/^is too large: compiling it may take/);
});
