import { describe, expect, test } from 'vitest';
import { chunksOf } from '../../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion, ChatRequest, Delta, TokenClasses } from '../../schemas/inner.ts';
import { outputTokens } from '../../schemas/usage.ts';
import { AnswerMeter, estimatePrompt, isMeaningful } from './meter.ts';

const request: ChatRequest = { messages: [{ role: 'user', content: 'Tell me a story about a gateway.' }] };

describe('what is charged for', () => {
  test('the upstream’s own count, when it told one', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once' } });
    meter.chunk({ delta: {}, finish_reason: 'stop', ext: { response: { usage: { in_uncached: 7, out_text: 1 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 7, out_text: 1 });
  });

  test('an explicit zero is a count', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once' } });
    meter.chunk({ delta: {}, finish_reason: 'stop', ext: { response: { usage: { in_uncached: 0, out_text: 0 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 0, out_text: 0 });
  });

  test.each([1e300, 9e15, 2 ** 53])('a count that no answer can have is not believed: %d', (count) => {
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

  test('our count, marked, when it told none', () => {
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

  test('the told input with our count of the output, when the stream was cut', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, in_cache_read: 5 } } } });
    meter.chunk({ delta: { content: 'Once upon' } });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, in_cache_read: 5, out_text: 2, estimated: true });
  });

  test('counts that were told in pieces, together', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once' }, ext: { response: { requestId: 'r-1', usage: { in_uncached: 11 } } } });
    meter.chunk({ delta: {}, finish_reason: 'stop', ext: { response: { usage: { out_text: 1 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: 1 });
    expect(meter.upstream_id).toBe('r-1');
  });

  test('every told class of the input, when the stream was cut', () => {
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

  test('our count of a refusal and of calls', () => {
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

  test('an empty answer that finished and told nothing costs nothing', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, finish_reason: 'stop' });
    expect(meter.usage(request)).toBeNull();
  });

  test('our count, when a whole answer tells what no answer can have', () => {
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
    ['nothing of it', { out_text: 0 }, { out_text: 10, estimated: true }],
    ['less', { out_text: 1 }, { out_text: 10, estimated: true }],
    ['more', { out_text: 40 }, { out_text: 40 }],
    ['thoughts', { out_reasoning: 30 }, { out_text: 10, out_reasoning: 30, estimated: true }],
  ])('what was told before the answer went on without an end: %s', (_, out, used) => {
    const meter = new AnswerMeter();
    meter.chunk(usageChunk({ in_uncached: 11, ...out }));
    meter.chunk({ delta: { content: TEN } });
    // Said again, it is no other count.
    meter.chunk(usageChunk({ in_uncached: 11, ...out }));
    const all = { in_uncached: 11, ...used };
    expect(meter.usage(request)).toEqual(all);
    expect(meter.outputTokens()).toBe(outputTokens(all));
    expect(meter.progress(request)).toEqual({ out_text: 0, ...all, estimated: true });
  });

  test('thoughts that were told in one count with the text, and came beside it', () => {
    const meter = new AnswerMeter();
    meter.chunk(usageChunk({ in_uncached: 11, out_text: 5, out_reasoning: 0, counts: { web_search: 1 } }));
    meter.chunk({ delta: { reasoning: TEN } });
    meter.chunk({ delta: { content: 'one two' } });
    const used = { in_uncached: 11, out_text: 2, out_reasoning: 10, counts: { web_search: 1 }, estimated: true };
    expect(meter.usage(request)).toEqual(used);
  });

  test.each<[string, ChatChunk[]]>([
    ['with what came last', [usageChunk({ in_uncached: 11, out_text: 4 })]],
    ['with its end', [{ delta: {}, finish_reason: 'stop' }, usageChunk({ in_uncached: 11, out_text: 1 })]],
  ])('a count that was told anew %s, whatever ours finds', (_, last) => {
    const meter = new AnswerMeter();
    meter.chunk(usageChunk({ in_uncached: 11, out_text: 1 }));
    meter.chunk({ delta: { content: TEN } });
    for (const chunk of last) meter.chunk(chunk);
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: last.length === 1 ? 4 : 1 });
  });

  test('tokens that are told to have come out of what has no end, though nothing is to be seen of them', () => {
    const meter = new AnswerMeter();
    meter.chunk(usageChunk({ in_uncached: 11, out_reasoning: 5 }));
    expect(meter.is_void).toBe(true);
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_reasoning: 5 });
    meter.chunk({ delta: {}, finish_reason: 'error', native_finish_reason: null });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_reasoning: 5 });
    meter.chunk({ delta: {}, finish_reason: 'error', native_finish_reason: 'FAILED' });
    expect(meter.usage(request)).toBeNull();
  });

  test('nothing, when nothing was produced and it never finished', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { role: 'assistant', content: '' }, ext: { response: { usage: { in_uncached: 11 } } } });
    expect(meter.usage(request)).toBeNull();
  });

  test('nothing, when nothing was produced and it ended in an error', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, finish_reason: 'error', ext: { response: { usage: { in_uncached: 11, out_text: 0 } } } });
    expect(meter.usage(request)).toBeNull();
  });

  test('what was produced before an error', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once' } });
    meter.chunk({ delta: {}, finish_reason: 'error', ext: { response: { usage: { in_uncached: 11, out_text: 1 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: 1 });
  });

  test('an empty answer that finished, as told', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, finish_reason: 'stop', native_finish_reason: 'stop' });
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, out_text: 0 } } } });
    expect(meter.is_void).toBe(false);
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: 0 });
  });

  test('nothing, when nothing was produced and nobody said why it ended', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, finish_reason: 'stop', native_finish_reason: null });
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, out_text: 0 } } } });
    expect(meter.is_void).toBe(true);
    expect(meter.usage(request)).toBeNull();
  });

  test('tokens that came out, though nothing is to be seen of them and nobody said why it ended', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: {}, finish_reason: 'stop', native_finish_reason: null });
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, out_reasoning: 5 } } } });
    expect(meter.is_void).toBe(false);
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_reasoning: 5 });
  });

  test('what was produced, though nobody said why it ended', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: { content: 'Once' }, finish_reason: 'stop', native_finish_reason: null });
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, out_text: 0 } } } });
    expect(meter.is_void).toBe(false);
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: 0 });
  });

  test('a whole answer of annotations alone', () => {
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
  ['the opening of a detail', { reasoning_details: [{ type: 'reasoning.text', text: '', index: 0 }] }, false],
  ['what is sealed', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] }, true],
  ['a call', { tool_calls: [{ index: 0, id: 'c', function: { name: 'f' } }] }, true],
  ['no calls', { tool_calls: [] }, false],
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
  ['no annotations', { annotations: [] }, false],
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
  test('counts tools that are offered and calls that were made', () => {
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
  test('counts hundreds for what is no text', () => {
    const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,' } };
    expect(of({ messages: [{ role: 'user', content: [image] }] })).toBeGreaterThan(500);
  });
});

describe('calls of tools', () => {
  const called = (...texts: string[]) => ({
    tool_calls: texts.map((text, index) => ({ index, function: { name: 'f', arguments: text } })),
  });

  test.each<[string, string[], { count: number; valid: number }]>([
    ['JSON', ['{"a":1}', '{}'], { count: 2, valid: 2 }],
    ['nothing, for a tool without parameters', [''], { count: 1, valid: 1 }],
    ['what is cut, or none', ['{"a":', 'a: 1', '{}'], { count: 3, valid: 1 }],
  ])('are counted, and those whose arguments are JSON: %s', (_title, texts, expected) => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: called(...texts) });
    meter.chunk({ delta: {}, finish_reason: 'tool_calls' });
    expect(meter.calledTools?.count(meter.finish_reason)).toEqual(expected);
  });

  test('come in pieces', () => {
    const meter = new AnswerMeter();
    for (const piece of ['{"city"', ':"Paris', '"}']) meter.chunk({ delta: called(piece, piece) });
    expect(meter.calledTools?.count(meter.finish_reason)).toEqual({ count: 2, valid: 2 });
  });

  test('of an answer that ran into its bound tell nothing, nor does an answer without', () => {
    const meter = new AnswerMeter();
    meter.chunk({ delta: called('{"a":') });
    meter.chunk({ delta: {}, finish_reason: 'length' });
    expect(meter.calledTools?.count(meter.finish_reason)).toBeUndefined();
    const other = new AnswerMeter();
    other.chunk({ delta: { content: 'x' }, finish_reason: 'stop' });
    expect(other.calledTools).toBeUndefined();
  });
});
