import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createLivePattern } from './live-pattern.ts';
import { compilePattern } from './pattern.ts';

const PATTERNS = [
  'sk-[a-z0-9]{4}',
  'sk-[a-z0-9]+',
  'secret',
  '\\bab\\b',
  'ab$',
  '^ab',
  '(?m)^ab$',
  '(?i)KEY=\\w+',
  '(a|ab)(c|bcd)(d*)',
  'a.{2,5}b',
  '[^ ]+@[^ ]+',
  'é+b|😀a',
  'a*?b',
  'x?',
];

describe('where a match may still begin or grow', () => {
  test.each([
    ['sk-[a-z0-9]{4}', 'a sk-ab', 2],
    ['sk-[a-z0-9]{4}', 'a sk-abcd', 9],
    ['sk-[a-z0-9]+', 'a sk-abcdefgh', 2],
    ['sk-[a-z0-9]+', 'a sk-abcdefgh.', 14],
    ['secret', 'no secrets se', 11],
    ['ab$', 'xx ab', 3],
    ['\\bab\\b', 'xx ab', 3],
    ['\\bab\\b', 'xxab', 4],
    ['.*x', 'one\ntwo', 4],
  ])('of %s in %j: %i', (pattern, text, held) => {
    expect(createLivePattern(compilePattern(pattern))(text)).toBe(held);
  });

  test('nothing that is found before it changes, whatever follows', () => {
    const letters = fc.array(
      fc.constantFrom('a', 'b', 'c', 'd', 's', 'k', '-', '@', ' ', '\n', 'é', '😀', '1', 'x', '='),
      {
        maxLength: 24,
      },
    );
    for (const pattern of PATTERNS) {
      const compiled = compilePattern(pattern);
      const live = createLivePattern(compiled);
      fc.assert(
        fc.property(letters, letters, (one, two) => {
          const text = one.join('');
          const whole = text + two.join('');
          const held = live(text);
          const settled = (of: string) => matches(pattern, of).filter(([start, end]) => start < held && end > start);
          expect(settled(whole), `${pattern} ${JSON.stringify(text)} held from ${held}`).toEqual(settled(text));
          for (const [, end] of settled(text)) expect(end).toBeLessThanOrEqual(text.length);
        }),
        { numRuns: 400, seed: 5 },
      );
    }
  });
});

function matches(pattern: string, text: string): [number, number][] {
  const matcher = compilePattern(pattern).matcher(text);
  const found: [number, number][] = [];
  while (matcher.find()) found.push([matcher.start(), matcher.end()]);
  return found;
}
