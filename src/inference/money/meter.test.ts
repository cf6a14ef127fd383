import { describe, expect, test } from 'vitest';
import { chunksOf } from '../../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion, ChatRequest, Delta, TokenClasses } from '../../schemas/inner.ts';
import { outputTokens } from '../../schemas/usage.ts';
import { AnswerMeter, estimatePrompt, isMeaningful } from './meter.ts';

const request: ChatRequest = { messages: [{ role: 'user', content: 'Tell me a story about a gateway.' }] };

describe('usage to charge', () => {
  test('the upstream’s usage, if it is reported', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once' } });
    meter.chunk({ delta: {}, finish_reason: 'stop', ext: { response: { usage: { in_uncached: 7, out_text: 1 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 7, out_text: 1 });
  });

  test('a reported zero is a count', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once' } });
    meter.chunk({ delta: {}, finish_reason: 'stop', ext: { response: { usage: { in_uncached: 0, out_text: 0 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 0, out_text: 0 });
  });

  test.each([1e300, 9e15, 2 ** 53])('an impossible count is replaced by an estimate: %d', (count) => {
    for (const usage of [
      { in_uncached: count, out_text: 1 },
      { in_uncached: 1, out_text: count },
      { in_uncached: 1, out_text: 1, counts: { web_search: count } },
      { in_uncached: 1, out_text: 1, extra: [{ model: 'other', classes: { in_uncached: count } }] },
    ]) {
      const meter = new AnswerMeter();
      meter.chunk({ delta: { content: 'Once' } });
      meter.chunk({ delta: {}, finish_reason: 'stop', ext: { response: { usage } } });
      expect(meter.usage(request)).toEqual({ in_uncached: estimatePrompt(request), out_text: 1, estimated: true });
    }
  });

  test('an estimate, marked as estimated, if no usage is reported', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once upon a time' } });
    meter.chunk({ delta: { reasoning: 'hm' } });
    expect(meter.usage(request)).toEqual({
      in_uncached: estimatePrompt(request),
      out_text: 4,
      out_reasoning: 1,
      estimated: true,
    });
  });

  test('the reported input with an estimate of the output, if the stream is interrupted', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, in_cache_read: 5 } } } });
    meter.chunk({ delta: { content: 'Once upon' } });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, in_cache_read: 5, out_text: 2, estimated: true });
  });

  test('usage that is reported in several parts is merged', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once' }, ext: { response: { requestId: 'r-1', usage: { in_uncached: 11 } } } });
    meter.chunk({ delta: {}, finish_reason: 'stop', ext: { response: { usage: { out_text: 1 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: 1 });
    expect(meter.upstream_id).toBe('r-1');
  });

  test('every reported class of the input, if the stream is interrupted', () => {
    const inputs = {
      in_uncached: 1,
      in_cache_read: 2,
      in_cache_write_5m: 3,
      in_cache_write_1h: 4,
      in_audio: 5,
      in_image: 6,
    };
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once upon' }, ext: { response: { usage: inputs } } });
    expect(meter.usage(request)).toEqual({ ...inputs, out_text: 2, estimated: true });
  });

  test('the estimate includes refusals and tool calls', () => {
    const count = (delta: Delta) => {
      const meter = new AnswerMeter();
      meter.chunk({ delta });
      return meter.usage(request)?.out_text ?? 0;
    };
    const words = 'one two three four five six seven eight';
    expect(count({ refusal: words })).toBeGreaterThan(5);
    const called = (name: string, args: string) =>
      count({ tool_calls: [{ index: 0, id: 'c', function: { name, arguments: args } }] });
    expect(called(words, '')).toBeGreaterThan(5);
    expect(called('', words)).toBeGreaterThan(5);
  });

  test('a finished empty answer without reported usage costs nothing', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, finish_reason: 'stop' });
    expect(meter.usage(request)).toBeNull();
  });

  test('an estimate, if a whole answer reports impossible usage', () => {
    const meter = new AnswerMeter();
    const choices: ChatCompletion['choices'] = [
      {
        index: 0,
        message: { role: 'assistant', content: 'Once upon' },
        finish_reason: 'stop',
        native_finish_reason: 'stop',
      },
    ];
    const ext = { usage: { in_uncached: -1, out_text: 1 } };
    for (const chunk of chunksOf({ choices, ext } as unknown as ChatCompletion)) meter.chunk(chunk);
    expect(meter.usage(request)).toMatchObject({ out_text: 2, estimated: true });
  });

  const usageChunk = (usage: TokenClasses): ChatChunk => ({ delta: {}, ext: { response: { usage } } });
  const TEN = 'one two three four five six seven eight nine ten';

  test.each<[string, TokenClasses, TokenClasses]>([
    ['no output', { out_text: 0 }, { out_text: 10, estimated: true }],
    ['less', { out_text: 1 }, { out_text: 10, estimated: true }],
    ['more', { out_text: 40 }, { out_text: 40 }],
    ['reasoning', { out_reasoning: 30 }, { out_text: 10, out_reasoning: 30, estimated: true }],
  ])('output usage reported before more text, in a stream without an end: %s', (_, out, used) => {
    const meter = new AnswerMeter();
    meter.chunk(usageChunk({ in_uncached: 11, ...out }));
    meter.chunk({ delta: { content: TEN } });
    // A repeated count is not a new one.
    meter.chunk(usageChunk({ in_uncached: 11, ...out }));
    const all = { in_uncached: 11, ...used };
    expect(meter.usage(request)).toEqual(all);
    expect(meter.outputTokens()).toBe(outputTokens(all));
    expect(meter.progress(request)).toEqual({ out_text: 0, ...all, estimated: true });
  });

  test('reasoning after a count of text and reasoning is added by estimate, and text is counted by estimate', () => {
    const meter = new AnswerMeter();
    meter.chunk(usageChunk({ in_uncached: 11, out_text: 5, out_reasoning: 0, counts: { web_search: 1 } }));
    meter.chunk({ delta: { reasoning: TEN } });
    meter.chunk({ delta: { content: 'one two' } });
    const used = { in_uncached: 11, out_text: 2, out_reasoning: 10, counts: { web_search: 1 }, estimated: true };
    expect(meter.usage(request)).toEqual(used);
  });

  test.each<[string, ChatChunk[]]>([
    ['with the last content', [usageChunk({ in_uncached: 11, out_text: 4 })]],
    ['with the finish reason', [{ delta: {}, finish_reason: 'stop' }, usageChunk({ in_uncached: 11, out_text: 1 })]],
  ])('a count that is reported again %s replaces the estimate', (_, last) => {
    const meter = new AnswerMeter();
    meter.chunk(usageChunk({ in_uncached: 11, out_text: 1 }));
    meter.chunk({ delta: { content: TEN } });
    for (const chunk of last) meter.chunk(chunk);
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: last.length === 1 ? 4 : 1 });
  });

  test('reported reasoning tokens of an unfinished answer without visible output, unless the provider states a failure', () => {
    const meter = new AnswerMeter();
    meter.chunk(usageChunk({ in_uncached: 11, out_reasoning: 5 }));
    expect(meter.is_void).toBe(true);
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_reasoning: 5 });
    meter.chunk({ delta: {}, finish_reason: 'error', native_finish_reason: null });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_reasoning: 5 });
    meter.chunk({ delta: {}, finish_reason: 'error', native_finish_reason: 'FAILED' });
    expect(meter.usage(request)).toBeNull();
  });

  test('nothing, if no output arrived and the answer never finished', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { role: 'assistant', content: '' }, ext: { response: { usage: { in_uncached: 11 } } } });
    expect(meter.usage(request)).toBeNull();
  });

  test('nothing, if no output arrived and the answer ended in an error', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, finish_reason: 'error', ext: { response: { usage: { in_uncached: 11, out_text: 0 } } } });
    expect(meter.usage(request)).toBeNull();
  });

  test('the output before an error', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once' } });
    meter.chunk({ delta: {}, finish_reason: 'error', ext: { response: { usage: { in_uncached: 11, out_text: 1 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: 1 });
  });

  test('the reported usage of a finished empty answer', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, finish_reason: 'stop', native_finish_reason: 'stop' });
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, out_text: 0 } } } });
    expect(meter.is_void).toBe(false);
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: 0 });
  });

  test('nothing, if no output arrived and no finish reason was stated', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, finish_reason: 'stop', native_finish_reason: null });
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, out_text: 0 } } } });
    expect(meter.is_void).toBe(true);
    expect(meter.usage(request)).toBeNull();
  });

  test('reported output tokens without visible output and without a stated finish reason', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, finish_reason: 'stop', native_finish_reason: null });
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, out_reasoning: 5 } } } });
    expect(meter.is_void).toBe(false);
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_reasoning: 5 });
  });

  test('the output, if no finish reason was stated', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once' }, finish_reason: 'stop', native_finish_reason: null });
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, out_text: 0 } } } });
    expect(meter.is_void).toBe(false);
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: 0 });
  });

  test('a whole answer with annotations alone is not void', () => {
    const meter = new AnswerMeter();
    const cited = {
      type: 'url_citation' as const,
      url_citation: { url: 'https://a.example', start_index: 0, end_index: 0 },
    };
    const message = { role: 'assistant' as const, content: '', annotations: [cited] };
    const choices: ChatCompletion['choices'] = [
      { index: 0, message, finish_reason: 'stop', native_finish_reason: null },
    ];
    const ext = { usage: { in_uncached: 11, out_text: 0 } };
    for (const chunk of chunksOf({ choices, ext } as unknown as ChatCompletion)) meter.chunk(chunk);
    expect(meter.is_void).toBe(false);
  });
});

test.each<[string, Parameters<typeof isMeaningful>[0], boolean]>([
  ['a role', { role: 'assistant', content: '' }, false],
  ['text', { content: 'x' }, true],
  ['reasoning', { reasoning: 'x' }, true],
  ['a signature alone', { reasoning_details: [{ type: 'reasoning.text', signature: 's' }] }, true],
  ['the start of a reasoning detail', { reasoning_details: [{ type: 'reasoning.text', text: '', index: 0 }] }, false],
  ['encrypted reasoning', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] }, true],
  ['a tool call', { tool_calls: [{ index: 0, id: 'c', function: { name: 'f' } }] }, true],
  ['an empty list of tool calls', { tool_calls: [] }, false],
  ['a refusal', { refusal: 'no' }, true],
  ['an image', { images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,' } }] }, true],
  ['audio', { audio: { id: 'a', data: '' } }, true],
  [
    'an annotation',
    {
      annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example', start_index: 0, end_index: 0 } }],
    },
    true,
  ],
  ['an empty list of annotations', { annotations: [] }, false],
])('%s is meaningful: %s', (_name, delta, expected) => {
  expect(isMeaningful(delta)).toBe(expected);
});

describe('the estimate of a prompt', () => {
  const of = (more: Partial<ChatRequest>) => estimatePrompt({ messages: [], ...more });
  const words = 'one two three four five six seven eight';

  test('counts texts, whole or in parts', () => {
    const whole = of({ messages: [{ role: 'user', content: words }] });
    expect(whole).toBeGreaterThan(of({ messages: [{ role: 'user', content: '' }] }) + 5);
    expect(of({ messages: [{ role: 'user', content: [{ type: 'text', text: words }] }] })).toBe(whole);
  });
  test('counts tool definitions and tool calls', () => {
    const tools: ChatRequest['tools'] = [{ type: 'function', function: { name: 'f', description: words } }];
    expect(of({ tools })).toBeGreaterThan(of({}) + 5);
    const call = {
      id: 'c',
      type: 'function' as const,
      function: { name: 'f', arguments: JSON.stringify({ a: words }) },
    };
    const made = (toolCalls: (typeof call)[]) =>
      of({ messages: [{ role: 'assistant', content: null, tool_calls: toolCalls }] });
    expect(made([call])).toBeGreaterThan(made([]) + 5);
  });
  test('counts hundreds of tokens for an image', () => {
    const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,' } };
    expect(of({ messages: [{ role: 'user', content: [image] }] })).toBeGreaterThan(500);
  });
});

describe('tool calls', () => {
  const called = (...texts: string[]) => ({
    tool_calls: texts.map((text, index) => ({ index, function: { name: 'f', arguments: text } })),
  });

  test.each<[string, string[], { count: number; valid: number }]>([
    ['JSON', ['{"a":1}', '{}'], { count: 2, valid: 2 }],
    ['an empty text, for a tool without parameters', [''], { count: 1, valid: 1 }],
    ['cut JSON, or an empty text', ['{"a":', 'a: 1', '{}'], { count: 3, valid: 1 }],
  ])('are counted, and those with valid JSON arguments: %s', (_title, texts, expected) => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: called(...texts) });
    meter.chunk({ delta: {}, finish_reason: 'tool_calls' });
    expect(meter.calledTools?.count(meter.finish_reason)).toEqual(expected);
  });

  test('are counted once if they arrive in pieces', () => {
    const meter = new AnswerMeter();
    for (const piece of ['{"city"', ':"Paris', '"}']) meter.chunk({ delta: called(piece, piece) });
    expect(meter.calledTools?.count(meter.finish_reason)).toEqual({ count: 2, valid: 2 });
  });

  test('are not counted in an answer that reached its length limit; an answer without them has no count', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: called('{"a":') });
    meter.chunk({ delta: {}, finish_reason: 'length' });
    expect(meter.calledTools?.count(meter.finish_reason)).toBeUndefined();
    const other = new AnswerMeter();
    other.chunk({ delta: { content: 'x' }, finish_reason: 'stop' });
    expect(other.calledTools).toBeUndefined();
  });
});
