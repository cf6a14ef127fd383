import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk, ChatCompletion } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { createFramer } from '../transport/frames.ts';
import { decodeResponse } from './response.ts';
import { createStreamDecoder } from './stream.ts';

const STATE: AttemptState = { generation_id: 'gen-1' };

function decode(events: (JsonValue | string)[], state: AttemptState = STATE): ChatChunk[] {
  const decoder = createStreamDecoder(state);
  const frames = events.map((event) => (typeof event === 'string' ? event : JSON.stringify(event)));
  return [...frames.flatMap((data) => decoder.push({ event: undefined, data })), ...decoder.end()];
}

const delta = (content: JsonValue, finishReason: string | null = null, more: object = {}): JsonValue => ({
  id: 'c',
  choices: [{ index: 0, delta: content, finish_reason: finishReason }],
  ...more,
});

describe('a stream', () => {
  test('starts with the role, once, and ends with its usage', () => {
    const usage = (completionTokens: number) => ({ prompt_tokens: 3, completion_tokens: completionTokens });
    const chunks = decode([
      delta({ role: 'assistant', content: 'a' }, null, { usage: usage(0) }),
      delta({ content: 'b' }, null, { usage: usage(1) }),
      delta({}, 'stop', { usage: usage(2) }),
      '[DONE]',
    ]);
    expect(chunks.filter((chunk) => chunk.delta.role !== undefined)).toEqual([chunks[0]]);
    const usageChunks = chunks.filter((chunk) => chunk.ext?.response?.usage !== undefined);
    expect(usageChunks.map((chunk) => chunk.ext?.response?.usage?.out_text)).toEqual([1, 2]);
    expect(usageChunks.at(-1)).toBe(chunks.at(-1));
  });

  test('counts zero for classes that an earlier usage had and the last one lacks', () => {
    const early = {
      prompt_tokens: 9,
      completion_tokens: 3,
      prompt_tokens_details: { cached_tokens: 8 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    const usage = { prompt_tokens: 9, completion_tokens: 5 };
    const answer = accumulate(
      decode([delta({ content: 'a' }, null, { usage: early }), delta({}, 'stop', { usage })]),
      7,
    );
    expect(answer.ext.usage).toEqual({ in_uncached: 9, in_cache_read: 0, out_text: 5, out_reasoning: 0 });
  });

  test('emits citations after an empty list of them, and keeps them if later events have none', () => {
    const cited = (events: JsonValue[]) => decode(events).flatMap((chunk) => chunk.delta.annotations ?? []);
    const late = [delta({ content: 'a' }, null, { citations: [] }), delta({}, 'stop', { citations: ['https://a'] })];
    expect(cited(late)).toMatchObject([{ url_citation: { url: 'https://a' } }]);
    const early = [delta({ content: 'a' }, null, { citations: ['https://a'] }), delta({}, 'stop', { citations: [] })];
    expect(cited(early)).toMatchObject([{ url_citation: { url: 'https://a' } }]);
  });

  test('reads usage after [DONE], and nothing else', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    const late = { choices: [{ index: 0, delta: { content: 'late' } }], usage };
    const answer = accumulate(decode([delta({ content: 'a' }, 'stop'), '[DONE]', late]), 7);
    expect(answer.ext.usage).toEqual({ in_uncached: 3, out_text: 2 });
    expect(answer.choices[0].message.content).toBe('a');
  });

  test('is not affected by events after [DONE]', () => {
    for (const late of [{ error: { message: 'x' } }, 'garbage', '[DONE]', '7']) {
      const answer = accumulate(decode([delta({ content: 'a' }, 'stop'), '[DONE]', late]), 7);
      expect(answer.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'a' } });
    }
  });

  test('keeps real usage when zeros follow', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    const zero = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    const answer = accumulate(
      decode([delta({ content: 'a' }, 'stop', { usage }), delta({}, null, { usage: zero })]),
      7,
    );
    expect(answer.ext.usage).toEqual({ in_uncached: 3, out_text: 2 });
  });

  test('without a finish reason is complete with [DONE]', () => {
    const { choices } = accumulate(decode([delta({ content: 'a' }), '[DONE]']), 7);
    expect(choices[0]).toMatchObject({ finish_reason: 'stop', native_finish_reason: null });
  });

  test.each<[string, (JsonValue | string)[]]>([
    ['of text alone', [delta({ content: 'a' })]],
    [
      'with usage beside its text',
      [delta({ content: 'a' }, null, { usage: { prompt_tokens: 1, completion_tokens: 1 } })],
    ],
    ['with usage in its first, empty chunk', [delta({ content: '' }, null, { usage: { prompt_tokens: 1 } })]],
    ['of usage alone', [{ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }]],
    [
      'with usage after its text',
      [delta({ content: 'a' }), { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }],
    ],
    ['without events', []],
  ])('%s is incomplete', (_rule, events) => {
    expect(() => decode(events)).toThrow(expect.objectContaining({ failure: 'unavailable' }));
  });

  test.each<[string, string]>([
    ['of [DONE] alone', '[DONE]'],
    ['of another format', '<html>'],
    ['of a number', '1'],
    ['of null', 'null'],
  ])('%s is an invalid response', (_rule, event) => {
    expect(() => decode([event])).toThrow(expect.objectContaining({ failure: 'invalid_response' }));
  });

  test('ignores all choices but the first', () => {
    const chunk = {
      choices: [
        { index: 1, delta: { content: 'b' } },
        { index: '2', delta: { content: 'c' } },
        { index: 0, delta: { content: 'a' } },
      ],
    };
    expect(accumulate(decode([chunk, '[DONE]']), 7).choices[0].message.content).toBe('a');
  });

  test('whose last chunk repeats the whole message is not doubled', () => {
    const last = { choices: [{ index: 0, message: { content: 'ab' }, finish_reason: 'stop' }] };
    const { choices } = accumulate(decode([delta({ content: 'a' }), delta({ content: 'b' }), last]), 7);
    expect(choices[0].message.content).toBe('ab');
  });

  test('takes reasoning from its details, or else from the string, never from both', () => {
    const details = [{ type: 'reasoning.text', text: 'a', index: 0 }];
    const chunks = decode([
      delta({ reasoning: 'a', reasoning_details: details }),
      delta({ reasoning: 'a', reasoning_details: [] }),
      delta({ content: 'b' }, 'stop'),
    ]);
    expect(accumulate(chunks, 7).choices[0].message.reasoning).toBe('a');
  });

  test('takes the string beside encrypted details', () => {
    const details = [{ type: 'reasoning.encrypted', data: 'zz', index: 0 }];
    const chunks = decode([
      delta({ reasoning_details: details }),
      delta({ reasoning: 'a', reasoning_details: [] }),
      delta({ reasoning: 'b' }),
      delta({ content: 'c' }, 'stop'),
    ]);
    expect(accumulate(chunks, 7).choices[0].message).toMatchObject({
      reasoning: 'ab',
      reasoning_details: [
        { type: 'reasoning.encrypted', data: 'zz' },
        { type: 'reasoning.text', text: 'ab' },
      ],
    });
    const message = { content: 'c', reasoning: 'ab', reasoning_details: details };
    const whole = accumulate(decodeResponse({ choices: [{ message, finish_reason: 'stop' }] }, STATE), 7);
    expect(whole.choices[0].message.reasoning).toBe('ab');
  });

  test('passes on annotations of the kinds in the public schema', () => {
    const file = { type: 'file', file: { hash: 'h' } };
    const link = { type: 'url_citation', url_citation: { url: 'https://a', title: 'A', start_index: 1, end_index: 2 } };
    const chunks = decode([delta({ content: 'a', annotations: [file, link, { type: 'other' }] }, 'stop')]);
    expect(accumulate(chunks, 7).choices[0].message.annotations).toEqual([file, link]);
  });

  test('emits token probabilities with their text', () => {
    const logprobs = { content: [{ token: 'a', logprob: -1 }], refusal: null };
    const chunks = decode([{ choices: [{ index: 0, delta: { content: 'a' }, logprobs }] }, delta({}, 'stop')]);
    expect(chunks[1]).toMatchObject({ delta: { content: 'a' }, logprobs });
  });

  test('a matched stop sequence is reported if it is a text', () => {
    for (const [stopReason, expected] of [
      ['END', 'END'],
      [151645, undefined],
    ] as const) {
      const last = { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop', stop_reason: stopReason }] };
      expect(accumulate(decode([last]), 7).ext.stopSequence).toBe(expected);
    }
  });

  test('an error chunk of a choice fails the stream', () => {
    const last = {
      choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { code: 429, message: 'slow down' } }],
    };
    expect(() => decode([delta({ content: 'a' }), last])).toThrow(
      expect.objectContaining({ failure: 'rate_limited', message: 'slow down', status: 429 }),
    );
  });

  test.each<[string, JsonValue]>([
    ['as an object', { error: { message: 'Cut short', code: 503 } }],
    ['as a text', { error: 'Cut short' }],
    ['by its kind', { object: 'error', message: 'Cut short' }],
  ])('error', (_, error) => {
    const fault = { ...(error as object), choices: [{ index: 0, message: { content: 'a' }, finish_reason: 'stop' }] };
    for (const read of [() => decode([fault]), () => accumulate(decodeResponse(fault, STATE), 7)]) {
      expect(read).toThrow(expect.objectContaining({ name: 'UpstreamError', message: 'Cut short' }));
    }
  });

  test('cached tokens are read from a header if the upstream reports them there', () => {
    const state = { ...STATE, cached_tokens_header: 'x-cached', headers: { 'x-cached': '2' } };
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    const answer = accumulate(decode([delta({ content: 'a' }, 'stop', { usage })], state), 7);
    expect(answer.ext.usage).toEqual({ in_cache_read: 2, in_uncached: 1, out_text: 2 });
  });
});

describe('arbitrary input', () => {
  const pool: JsonValue[] = [
    delta({ role: 'assistant', content: '' }),
    delta({ content: '<think>' }),
    delta({ content: 'x</think>y' }),
    delta({
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 't' }] },
        { type: 'text', text: 'u' },
      ],
    }),
    delta({ reasoning_content: 'r' }),
    delta({
      reasoning_details: [
        { type: 'reasoning.text', text: 'd', index: 0 },
        { type: 'reasoning.encrypted', data: 'e' },
      ],
    }),
    delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{"x"' } }] }),
    delta({
      tool_calls: [
        { index: 0, function: { arguments: ':1}' } },
        { index: 1, function: { name: 'g' } },
      ],
    }),
    delta({ tool_calls: [{ custom: { name: 'h', input: 'i"' } }] }),
    delta({ function_call: { name: 'f', arguments: '{}' } }),
    delta({ executed_tools: [{ index: 0, type: 'search', search_results: { results: [{ url: 'https://a' }] } }] }),
    delta({ refusal: 'no', images: [{ image_url: { url: 'data:,' } }], audio: { id: 'a', data: 'AA' } }),
    delta({
      annotations: [{ type: 'url_citation', url_citation: { url: 'https://a', start_index: 1, end_index: 2 } }],
    }),
    delta({}, 'stop', { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 9 }, citations: ['https://a'] }),
    { error: { message: 'x', code: 500 } },
  ];
  const states: AttemptState[] = [STATE, { ...STATE, think_tags: true, think_in_reasoning: true, call_ids: ['a'] }];

  /** Runs to the end; only an `UpstreamError` may stop it. */
  function survive(work: () => ChatCompletion): ChatCompletion | undefined {
    try {
      return work();
    } catch (error) {
      expect(error).toBeInstanceOf(UpstreamError);
      return undefined;
    }
  }

  /** Every entry occurs once in the order, and every call is usable. */
  function expectSound(answer: ChatCompletion): void {
    const { message } = answer.choices[0];
    for (const call of message.tool_calls ?? []) {
      expect(call.id).not.toBe('');
      expect(call.function.arguments).not.toBe('');
    }
    const indexes = (message.reasoning_details ?? []).map((detail) => detail.index);
    expect(new Set(indexes).size).toBe(indexes.length);
    if (message.ext?.order === undefined) return;
    const visited = (kind: string) =>
      message.ext!.order!.filter((slot) => slot.kind === kind).reduce((all, slot) => all + (slot.span ?? 1), 0);
    expect(visited('reasoning')).toBe(indexes.length);
    expect(visited('call')).toBe(message.tool_calls?.length ?? 0);
    expect(visited('native')).toBe(message.ext.natives?.length ?? 0);
    expect(visited('image')).toBe(message.images?.length ?? 0);
  }

  test('reordered, lost or repeated chunks give a consistent answer or an error', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...pool), { maxLength: 14 }),
        fc.constantFrom(...states),
        (events, state) => {
          const answer = survive(() => accumulate(decode([...events, '[DONE]'], state), 7));
          if (answer !== undefined) expectSound(answer);
        },
      ),
      { numRuns: inTier(200, 2_000) },
    );
  });

  test('a stream cut at any byte gives an answer or an error', () => {
    const bytes = new TextEncoder().encode(
      pool
        .slice(0, -1)
        .map((event) => `data: ${JSON.stringify(event)}\n\n`)
        .join(''),
    );
    for (let end = 0; end <= bytes.length; end += 1) {
      survive(() => {
        const framer = createFramer('sse');
        const decoder = createStreamDecoder(STATE);
        const frames = [...framer.push(bytes.subarray(0, end)), ...framer.end()];
        return accumulate([...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()], 7);
      });
    }
  });

  test('any bytes give an answer or an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        survive(() => {
          const framer = createFramer('sse');
          const decoder = createStreamDecoder(STATE);
          const head = new TextEncoder().encode('data: ');
          const frames = [...framer.push(head), ...framer.push(bytes), ...framer.end()];
          return accumulate([...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()], 7);
        });
      }),
      { numRuns: inTier(100, 1_000) },
    );
  });

  /** Replaces one value of a chunk by any JSON. */
  function damage(value: JsonValue, at: { left: number }, by: JsonValue): JsonValue {
    if (at.left === 0) {
      at.left = -1;
      return by;
    }
    if (at.left > 0) at.left -= 1;
    if (Array.isArray(value)) return value.map((entry) => damage(entry, at, by));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, damage(entry as JsonValue, at, by)]));
  }

  test('a value of any type at any place gives an answer or an error, streamed and whole', () => {
    const wrong = fc.oneof(
      fc.constantFrom<JsonValue>(null, '', 0, -1, true, [], {}, [null], [[]], 'x', [{}], 1e99),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(fc.constantFrom(...pool), fc.nat(24), wrong, (event, place, by) => {
        const damaged = damage(event, { left: place }, by as JsonValue);
        survive(() => accumulate(decode([delta({ content: 'a' }), damaged, delta({}, 'stop'), '[DONE]']), 7));
        const text = JSON.stringify(damaged).replaceAll('"delta"', '"message"');
        survive(() => accumulate(decodeResponse(JSON.parse(text), STATE), 7));
      }),
      { numRuns: inTier(300, 3_000) },
    );
  });

  test('a whole answer and the stream of the same deltas give the same answer', () => {
    const messages = pool.slice(1, 6).map((event) => (event as { choices: [{ delta: JsonValue }] }).choices[0].delta);
    for (const message of messages) {
      const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
      const whole = { id: 'c', choices: [{ index: 0, message, finish_reason: 'stop' }], usage };
      const streamed = accumulate(decode([delta(message), delta({}, 'stop', { usage }), '[DONE]']), 7);
      expect(accumulate(decodeResponse(whole, STATE), 7)).toEqual(streamed);
    }
  });
});
