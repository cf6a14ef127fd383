import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inTier } from '../../test/tier.ts';
import { createRestorer, placeholderFinder } from './restorer.ts';
import { createJsonFilter } from './streams/json-filter.ts';

const values = new Map([
  ['[EMAIL_1]', 'bob@mail.example'],
  ['[EMAIL_10]', 'eve "E" \\ @mail.example'],
  ['[my key_1]', 'sk-1234'],
]);

function restored(pieces: readonly string[]): string {
  const restorer = createRestorer(values);
  return pieces.map((piece) => restorer.push(piece)).join('') + restorer.end();
}

test.each([
  ['Ask [EMAIL_1], not [EMAIL_10].', 'Ask bob@mail.example, not eve "E" \\ @mail.example.'],
  [
    'Ask \\[EMAIL\\_1\\] or [email_1] or [EMAIL 1] or [ Email-1 ].',
    `Ask ${Array(4).fill('bob@mail.example').join(' or ')}.`,
  ],
  ['[My Key_1]', 'sk-1234'],
  // Placeholders of other calls, and texts that only resemble placeholders.
  [
    '[EMAIL_2] [EMAIL] [EMAIL_1 [PHONE_1] EMAIL_1 [[EMAIL_1]]',
    '[EMAIL_2] [EMAIL] [EMAIL_1 [PHONE_1] EMAIL_1 [bob@mail.example]',
  ],
  ['a[0] = b[1]; // [x] \\', 'a[0] = b[1]; // [x] \\'],
])('placeholders in %s are restored, whatever the chunk boundaries', (text, expected) => {
  expect(restored([text])).toBe(expected);
  expect(restored([...text])).toBe(expected);
  for (let cut = 0; cut <= text.length; cut += 1)
    expect(restored([text.slice(0, cut), text.slice(cut)])).toBe(expected);
});

test('text that cannot become a placeholder is not held back', () => {
  const restorer = createRestorer(values);
  expect(restorer.push('See [the list')).toBe('See [the list');
  expect(restorer.push('] and [EMA')).toBe('] and ');
  expect(restorer.push('IL ME]')).toBe('[EMAIL ME]');
  expect(restorer.end()).toBe('');
});

test('restored values in tool arguments are escaped, so that they stay JSON', () => {
  const filter = createJsonFilter(placeholderFinder(values));
  const text = [...'{"to":"[EMAIL_10]","cc":["[EMAIL_1]"]}'].map((char) => filter.push(char)).join('') + filter.end();
  expect(JSON.parse(text)).toEqual({ to: 'eve "E" \\ @mail.example', cc: ['bob@mail.example'] });
});

test('any chunking of a text restores the same as the whole text', () => {
  const word = fc.constantFrom('[EMAIL_1]', '[EMAIL_10]', '[', ']', '\\', 'EMAIL', '_1', ' ', 'x', '\n', '[my key_1]');
  fc.assert(
    fc.property(fc.array(fc.array(word, { maxLength: 4 }), { maxLength: 8 }), (pieces) => {
      const texts = pieces.map((words) => words.join(''));
      expect(restored(texts)).toBe(restored([texts.join('')]));
    }),
    { numRuns: inTier(125, 500), seed: 1 },
  );
});
