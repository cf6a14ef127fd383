import { expect, test } from 'vitest';
import { accumulate } from './accumulate.ts';
import { chunksOf, deltasOf } from './chunks.ts';
import type { ChatChunk, ChatCompletion, Message } from './inner.ts';

const answer = (message: Partial<Message>, more: Partial<ChatCompletion['choices'][0]> = {}): ChatCompletion => ({
  choices: [
    {
      index: 0,
      message: { content: null, ...message, role: 'assistant' },
      finish_reason: 'stop',
      native_finish_reason: 'end',
      ...more,
    },
  ],
  created: 7,
  service_tier: 'default',
  system_fingerprint: 'fp',
  ext: { wire: 'openai-chat', rest: { a: 1 }, usage: { in_uncached: 1 }, requestId: 'r' },
});
const cites = (url: string, endIndex: number) => ({
  type: 'url_citation' as const,
  url_citation: { url, start_index: 0, end_index: endIndex },
});
const native = { type: 'native' as const, wire: 'openai-chat' as const, block: { type: 'x' } };
const ext = { wire: 'openai-chat' as const, rest: { id: 'm' } };

const answers: Record<string, ChatCompletion> = {
  nothing: answer({}),
  text: answer({ content: 'a' }),
  'a refusal': answer({ refusal: 'no' }),
  'an error': answer({ content: 'a' }, { finish_reason: 'error', error: { code: 502, message: 'gone' } }),
  probabilities: answer({ content: 'a' }, { logprobs: { content: [{ token: 'a' }] } }),
  'probabilities of nothing': answer({}, { logprobs: { content: [] } }),
  'pictures and sound': answer({
    images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }],
    audio: { id: 'a', data: 'AA==' },
  }),
  'reasoning and calls': answer(
    {
      reasoning: 'one\n\ntwo',
      reasoning_details: [
        { type: 'reasoning.text', text: 'one', signature: 's', format: 'unknown', index: 0 },
        { type: 'reasoning.text', text: 'two', format: 'unknown', index: 1 },
      ],
      content: 'a',
      tool_calls: [
        { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } },
        { id: 'd', type: 'function', function: { name: 'g', arguments: '{"a":1}' } },
      ],
    },
    { finish_reason: 'tool_calls' },
  ),
  'an order, remainders and natives': answer({
    content: [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ],
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, ext }],
    annotations: [cites('https://a.example', 1), cites('https://b.example', 2), cites('https://c.example', 0)],
    ext: {
      wire: 'openai-chat',
      rest: {},
      order: [
        { kind: 'call', at: 0 },
        { kind: 'text', at: 0, ext },
        { kind: 'native', at: 0 },
        { kind: 'text', at: 1 },
      ],
      natives: [native],
    },
  }),
};

test.each(Object.keys(answers))('%s: the accumulated chunks equal the answer', (name) => {
  const completion = answers[name]!;
  expect(accumulate(chunksOf(completion), 7)).toEqual(completion);
});

test('a citation belongs to the text in which it ends', () => {
  const chunks = chunksOf(answers['an order, remainders and natives']!);
  const cited = chunks.flatMap(({ delta }) => (delta.annotations ? [[delta.content, delta.annotations.length]] : []));
  expect(cited).toEqual([
    ['a', 1],
    ['b', 2],
  ]);
});

test('the readable strings of several details equal the joined reasoning', () => {
  const details = answers['reasoning and calls']!.choices[0].message.reasoning_details!;
  const order = details.map((_, at) => ({ kind: 'reasoning' as const, at }));
  const chunks = chunksOf(answer({ reasoning_details: details, ext: { wire: 'openai-chat', rest: {}, order } }));
  expect(chunks.map(({ delta }) => delta.reasoning ?? '').join('')).toBe('one\n\ntwo');
});

test('a refusal in two blocks is emitted once', () => {
  const refusalChunk = (n: number, refusal: string): ChatChunk => ({
    delta: { refusal },
    ext: { slot: { n, open: { kind: 'refusal', ext }, close: {} } },
  });
  const chunks = chunksOf(accumulate([refusalChunk(0, 'no'), refusalChunk(1, ', never')], 0));
  expect(chunks.flatMap(({ delta }) => delta.refusal ?? [])).toEqual(['no, never']);
});

test('a delta of several blocks is split in the order of blocks without loss', () => {
  const call = (index: number) => ({
    index,
    id: `call_${index}`,
    type: 'function' as const,
    function: { name: 'f', arguments: '{}' },
  });
  const audio = { id: 'audio_1', data: 'AAAA' };
  const images = [{ type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AAAA' } }];
  const delta = {
    role: 'assistant' as const,
    content: 'c',
    refusal: 'r',
    reasoning: 't',
    images,
    audio,
    tool_calls: [call(0), call(1)],
  };
  expect(deltasOf(delta)).toEqual({
    blocks: [
      { reasoning: 't' },
      { content: 'c' },
      { refusal: 'r' },
      { images },
      { audio },
      { tool_calls: [call(0)] },
      { tool_calls: [call(1)] },
    ],
    rest: { role: 'assistant' },
  });
});
