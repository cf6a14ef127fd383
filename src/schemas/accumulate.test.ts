import { describe, expect, test } from 'vitest';
import { accumulate, createAccumulator, joinReasoning } from './accumulate.ts';
import type { ChatChunk, ReasoningDetail } from './inner.ts';

const text = (content: string): ChatChunk => ({ delta: { content } });
const thought = (detail: ReasoningDetail): ChatChunk => ({ delta: { reasoning_details: [detail] } });

describe('the flat fields', () => {
  test('text fragments are joined, and an empty answer is null', () => {
    expect(accumulate([text('a'), text(''), text('b')], 7).choices[0].message).toEqual({
      role: 'assistant',
      content: 'ab',
    });
    expect(accumulate([{ delta: { role: 'assistant', content: '' } }], 7).choices[0].message.content).toBeNull();
  });

  test('the last value of an envelope field is used, and remainders and usage are merged by field', () => {
    const answer = accumulate(
      [
        {
          delta: { role: 'assistant' },
          system_fingerprint: 'fp',
          ext: { response: { wire: 'anthropic-messages', rest: { a: 1, b: 1 }, requestId: 'r' } },
        },
        { delta: {}, finish_reason: 'stop', native_finish_reason: 'end_turn', service_tier: 'flex' },
        { delta: {}, finish_reason: null, ext: { response: { rest: { b: 2 }, usage: { in_uncached: 3 } } } },
      ],
      7,
    );
    expect(answer).toEqual({
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: null },
          finish_reason: 'stop',
          native_finish_reason: 'end_turn',
        },
      ],
      created: 7,
      system_fingerprint: 'fp',
      service_tier: 'flex',
      ext: { wire: 'anthropic-messages', rest: { a: 1, b: 2 }, requestId: 'r', usage: { in_uncached: 3 } },
    });
  });

  test('tool calls are joined by index, also if they are interleaved', () => {
    const chunks: ChatChunk[] = [
      { delta: { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] } },
      { delta: { tool_calls: [{ index: 1, id: 'b', type: 'function', function: { name: 'g', arguments: '{"y"' } }] } },
      { delta: { tool_calls: [{ index: 0, function: { arguments: '{"x":1}' } }] } },
      { delta: { tool_calls: [{ index: 1, function: { arguments: ':2}' } }] } },
    ];
    expect(accumulate(chunks, 7).choices[0].message.tool_calls).toEqual([
      { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
      { id: 'b', type: 'function', function: { name: 'g', arguments: '{"y":2}' } },
    ]);
  });

  test('refusal, images, audio, annotations and token probabilities are collected', () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } } as const;
    const citation = {
      type: 'url_citation',
      url_citation: { url: 'https://a', start_index: 0, end_index: 0 },
    } as const;
    const choice = accumulate(
      [
        { delta: { refusal: 'I ' }, logprobs: { content: [1], refusal: null } },
        { delta: { refusal: 'refuse' }, logprobs: { content: [2], refusal: null } },
        { delta: { images: [image] } },
        { delta: { audio: { id: 'x', transcript: 'he' } } },
        { delta: { annotations: [citation] } },
        { delta: { audio: { transcript: 'llo', data: 'AA' } } },
        { delta: { annotations: [citation] } },
      ],
      7,
    ).choices[0];
    expect(choice.message).toEqual({
      role: 'assistant',
      content: null,
      refusal: 'I refuse',
      images: [image],
      audio: { id: 'x', transcript: 'hello', data: 'AA' },
      annotations: [citation, citation],
    });
    expect(choice.logprobs).toEqual({ content: [1, 2], refusal: null });
  });

  test('an error inside the answer is kept', () => {
    const error = { code: 502, message: 'unexpected call' };
    expect(accumulate([{ delta: {}, finish_reason: 'error', error }], 7).choices[0].error).toEqual(error);
  });
});

describe('reasoning', () => {
  test('deltas of one index become one detail, with the last signature', () => {
    const { reasoning, reasoning_details } = accumulate(
      [
        thought({ type: 'reasoning.text', text: 'a', format: 'anthropic-claude-v1', index: 0 }),
        thought({ type: 'reasoning.text', text: 'b', format: 'anthropic-claude-v1', index: 0 }),
        thought({ type: 'reasoning.text', signature: 's', format: 'anthropic-claude-v1', index: 0 }),
        thought({ type: 'reasoning.encrypted', data: 'e', format: 'anthropic-claude-v1', index: 1 }),
        thought({ type: 'reasoning.summary', summary: 'c', format: 'unknown', index: 2 }),
        thought({ type: 'reasoning.summary', summary: 'd', format: 'unknown', index: 2 }),
      ],
      7,
    ).choices[0].message;
    expect(reasoning).toBe('ab\n\ncd');
    expect(reasoning_details).toEqual([
      { type: 'reasoning.text', text: 'ab', signature: 's', format: 'anthropic-claude-v1', index: 0 },
      { type: 'reasoning.encrypted', data: 'e', format: 'anthropic-claude-v1', index: 1 },
      { type: 'reasoning.summary', summary: 'cd', format: 'unknown', index: 2 },
    ]);
  });

  test('a bare string becomes one detail of unknown format', () => {
    const { message } = accumulate([{ delta: { reasoning: 'a' } }, { delta: { reasoning: 'b' } }], 7).choices[0];
    expect(message.reasoning).toBe('ab');
    expect(message.reasoning_details).toEqual([{ type: 'reasoning.text', text: 'ab', format: 'unknown', index: 0 }]);
  });

  test('a detail without slots is identified by its index', () => {
    const part = (fragment: string) => thought({ type: 'reasoning.text', text: fragment, format: 'unknown', index: 0 });
    const { message } = accumulate([part('a'), text('x'), part('b')], 7).choices[0];
    expect(message.reasoning_details).toHaveLength(1);
    expect(message.reasoning).toBe('ab');
  });

  test('signatures and encrypted details are not text', () => {
    expect(joinReasoning([{ type: 'reasoning.encrypted', data: 'e' }])).toBeNull();
    expect(
      joinReasoning([
        { type: 'reasoning.text', text: '' },
        { type: 'reasoning.summary', summary: 's' },
      ]),
    ).toBe('s');
  });
});

describe('the order of blocks', () => {
  const slot = (n: number, kind: 'text' | 'reasoning' | 'call') => ({ slot: { n, open: { kind } } });

  test('is omitted for reasoning, text, calls', () => {
    const { message } = accumulate(
      [
        { ...thought({ type: 'reasoning.text', text: 'a', format: 'unknown', index: 0 }), ext: slot(0, 'reasoning') },
        { ...text('b'), ext: slot(1, 'text') },
        {
          delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] },
          ext: slot(2, 'call'),
        },
      ],
      7,
    ).choices[0];
    expect(message.ext).toBeUndefined();
  });

  test('is stated if text precedes reasoning, and visits every entry once', () => {
    const { message } = accumulate(
      [
        { ...text('a'), ext: slot(0, 'text') },
        { ...thought({ type: 'reasoning.text', text: 't', format: 'unknown', index: 0 }), ext: slot(1, 'reasoning') },
        {
          ...thought({ type: 'reasoning.encrypted', data: 'e', format: 'unknown', index: 1 }),
          ext: { slot: { n: 1 } },
        },
        { ...text('b'), ext: slot(2, 'text') },
        { ...text('c'), ext: { slot: { n: 2 } } },
      ],
      7,
    ).choices[0];
    expect(message.content).toEqual([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'bc' },
    ]);
    expect(message.ext).toEqual({
      wire: 'openai-chat',
      rest: {},
      order: [
        { kind: 'text', at: 0 },
        { kind: 'reasoning', at: 0, span: 2 },
        { kind: 'text', at: 1 },
      ],
    });
  });

  test('includes native blocks and remainders, and a call keeps its own remainder', () => {
    const wire = 'anthropic-messages' as const;
    const native = { type: 'native' as const, wire, block: { type: 'server_tool_use', input: {} } };
    const whole = { ...native, block: { type: 'server_tool_use', input: { q: 1 } } };
    const { message } = accumulate(
      [
        { delta: {}, ext: { slot: { n: 0, open: { kind: 'native', native } } } },
        { delta: {}, ext: { slot: { n: 0, raw: { partial: 1 } } } },
        { delta: {}, ext: { slot: { n: 0, close: { native: whole } } } },
        { ...text('b'), ext: { slot: { n: 1, open: { kind: 'text', ext: { wire, rest: { id: 1 } } } } } },
        { delta: {}, ext: { slot: { n: 1, close: { ext: { wire, rest: { phase: 'x' } } } } } },
        {
          delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] },
          ext: { slot: { n: 2, open: { kind: 'call', ext: { wire, rest: { caller: 'z' } } } } },
        },
      ],
      7,
    ).choices[0];
    expect(message.tool_calls![0]!.ext).toEqual({ wire, rest: { caller: 'z' } });
    expect(message.ext).toEqual({
      wire,
      rest: {},
      natives: [whole],
      order: [
        { kind: 'native', at: 0 },
        { kind: 'text', at: 0, ext: { wire, rest: { id: 1, phase: 'x' } } },
        { kind: 'call', at: 0 },
      ],
    });
  });
});

test('reading the answer so far does not change the later answer', () => {
  const accumulator = createAccumulator();
  accumulator.add({ ...text('a'), logprobs: { content: [1] } });
  const early = accumulator.result(7);
  accumulator.add({ ...text('b'), logprobs: { content: [2] } });
  accumulator.add({ delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{' } }] } });
  const later = accumulator.result(7);
  accumulator.add({ delta: { tool_calls: [{ index: 0, function: { arguments: '}' } }] } });
  expect(early.choices[0]).toMatchObject({ message: { content: 'a' }, logprobs: { content: [1] } });
  expect(later.choices[0].message.tool_calls![0]!.function.arguments).toBe('{');
});

test('many details of one block are separate, in any order of their pieces', () => {
  const open = { delta: {}, ext: { slot: { n: 0, open: { kind: 'reasoning' as const } } } };
  const piece = (index: number, text: string): ChatChunk => ({
    delta: { reasoning_details: [{ type: 'reasoning.text', text, format: 'unknown', index }] },
    ext: { slot: { n: 0 } },
  });
  for (const count of [3, 16, 17, 60]) {
    const indexes = Array.from({ length: count }, (_, index) => index);
    const chunks = [
      open,
      ...indexes.map((index) => piece(index, 'a')),
      ...indexes.toReversed().map((index) => piece(index, 'b')),
    ];
    const { reasoning_details } = accumulate(chunks, 0).choices[0].message;
    expect(reasoning_details).toEqual(
      indexes.map((index) => ({ type: 'reasoning.text', text: 'ab', format: 'unknown', index })),
    );
  }
});
