import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import { compilePattern, patternFault } from './pattern.ts';

test.each([
  '\\d{3}-\\d{2}-\\d{4}',
  '(?i)secret',
  '(?:a|b)+c?',
  '^\\s*BEGIN',
  '(?<year>\\d{4})',
  '[^\\x00-\\x7f]',
  '\\p{L}+',
  '\\u0041\\/\\cJ',
  '(x+x+)+y',
  'a{1000}',
])('%s is accepted', (pattern) => {
  expect(patternFault(pattern)).toBeUndefined();
});

test.each([
  ['(?=a)b', 'lookahead'],
  ['(?!a)b', 'negative lookahead'],
  ['(?<=a)b', 'lookbehind'],
  ['(?<!a)b', 'negative lookbehind'],
  ['(a)\\1', 'a backreference'],
  ['(?<n>a)\\k<n>', 'a named backreference'],
  ['(a', 'an open group'],
  ['[a', 'an open class'],
  ['*a', 'nothing to repeat'],
  ['(?>a)', 'an atomic group'],
  ['a{1001}', 'too many repetitions'],
  ['(a{100}){100}', 'nested repetitions'],
  ['('.repeat(5_000) + ')'.repeat(5_000), 'deep nesting'],
])('%.20s is refused: %s', (pattern) => {
  expect(patternFault(pattern)).toMatch(/^is not a regular expression in RE2 syntax: /);
});

test('a short pattern that compiles to too many instructions is refused', () => {
  expect(patternFault('(a|b)*'.repeat(1_000))).toMatch(/^is too large: it compiles to \d+ instructions/);
  expect(patternFault('x'.repeat(limits.filter_program_size_max + 1))).toMatch(/^is too large/);
});

test('escapes of JavaScript that RE2 writes differently have the same meaning', () => {
  expect(compilePattern('\\u0041(?<n>b)').matcher('xAb').find()).toBe(true);
});
