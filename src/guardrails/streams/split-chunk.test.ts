import { expect, test } from 'vitest';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import { piecesOf } from './split-chunk.ts';

test('a chunk with several kinds of content is split in order without loss', () => {
  const whole: ChatChunk = {
    delta: {
      role: 'assistant',
      reasoning: 'Hm.',
      content: 'Yes.',
      tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    finish_reason: 'tool_calls',
    native_finish_reason: 'tool_use',
    logprobs: { content: [] },
    ext: { response: { usage: { out_text: 3 } } },
  };
  const pieces = piecesOf(whole);
  expect(pieces.map(({ delta }) => Object.keys(delta).filter((name) => name !== 'role'))).toEqual([
    ['reasoning'],
    ['content'],
    ['tool_calls'],
    [],
  ]);
  expect(pieces[1]?.logprobs).toEqual({ content: [] });
  expect(pieces.at(-1)).toMatchObject({ finish_reason: 'tool_calls', ext: whole.ext });
  expect(accumulate([...pieces], 0)).toEqual(accumulate([whole], 0));
});
