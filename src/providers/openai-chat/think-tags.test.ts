import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createThinkSplitter, createThinkStripper } from './think-tags.ts';

function split(pieces: string[]): { reasoning: string; text: string } {
  const splitter = createThinkSplitter();
  const runs = [...pieces.flatMap((piece) => splitter.push(piece)), ...splitter.end()];
  const join = (isReasoning: boolean) =>
    runs
      .filter((run) => run.is_reasoning === isReasoning)
      .map((run) => run.text)
      .join('');
  return { reasoning: join(true), text: join(false) };
}

test.each<[string, string, string]>([
  // content, reasoning, text
  ['<think>a</think>b', 'a', 'b'],
  ['\n<think>\na\n</think>\n\nb', '\na\n', '\n\nb'],
  ['<think></think>b', '', 'b'],
  ['a <think>b</think>', '', 'a <think>b</think>'],
  ['<think>a</think><think>b</think>', 'a', '<think>b</think>'],
  ['<think>never closed', 'never closed', ''],
  ['<thin', '', '<thin'],
  ['  ', '', '  '],
  ['            <think>a</think>', 'a', ''],
  ['<think>a</thinb</think>c', 'a</thinb', 'c'],
])('%j is reasoning %j and text %j', (content, reasoning, text) => {
  expect(split([content])).toEqual({ reasoning, text });
});

test('tags are recognized wherever the text is split', () => {
  const piece = fc.constantFrom('<think>', '</think>', '<', 'th', 'ink>', '/', 'a', '<t', ' ');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const whole = pieces.join('');
      // Leading space is bounded if it arrives in pieces, so only contents without it are compared.
      fc.pre(!whole.startsWith(' '));
      expect(split([...whole])).toEqual(split([whole]));
      expect(split(pieces)).toEqual(split([whole]));
    }),
  );
});

test('text is held back only while it may be the start of a tag', () => {
  const splitter = createThinkSplitter();
  expect(splitter.push('<think>abc<')).toEqual([{ is_reasoning: true, text: 'abc' }]);
  expect(splitter.push('b')).toEqual([{ is_reasoning: true, text: '<b' }]);
  const plain = createThinkSplitter();
  expect(plain.push('H')).toEqual([{ is_reasoning: false, text: 'H' }]);
});

test('literal tags are removed wherever they are split', () => {
  const stripper = createThinkStripper();
  const out = ['<th', 'ink', '>\nTo', ' find <', '3</thi', 'nk>', ' ok <t']
    .map((piece) => stripper.push(piece))
    .join('');
  expect(out + stripper.end()).toBe('\nTo find <3 ok <t');
});
