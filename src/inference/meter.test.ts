import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../schemas/inner.ts';
import { createMeter, estimatePrompt, isMeaningful } from './meter.ts';

const request: ChatRequest = { messages: [{ role: 'user', content: 'Tell me a story about a gateway.' }] };

describe('what is charged for', () => {
  test('the upstream’s own count, when it told one', () => {
    const meter = createMeter();
    meter.chunk({ delta: { content: 'Once' } });
    meter.chunk({ delta: {}, finish_reason: 'stop', ext: { response: { usage: { in_uncached: 7, out_text: 1 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 7, out_text: 1 });
  });

  test('an explicit zero is a count', () => {
    const meter = createMeter();
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
      const meter = createMeter();
      meter.chunk({ delta: { content: 'Once' } });
      meter.chunk({ delta: {}, finish_reason: 'stop', ext: { response: { usage } } });
      expect(meter.usage(request)).toEqual({ in_uncached: estimatePrompt(request), out_text: 1, estimated: true });
    }
  });

  test('our count, marked, when it told none', () => {
    const meter = createMeter();
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
    const meter = createMeter();
    meter.chunk({ delta: {}, ext: { response: { usage: { in_uncached: 11, in_cache_read: 5 } } } });
    meter.chunk({ delta: { content: 'Once upon' } });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, in_cache_read: 5, out_text: 2, estimated: true });
  });

  test('nothing, when nothing was produced and it never finished', () => {
    const meter = createMeter();
    meter.chunk({ delta: { role: 'assistant', content: '' }, ext: { response: { usage: { in_uncached: 11 } } } });
    expect(meter.usage(request)).toBeNull();
  });

  test('nothing, when nothing was produced and it ended in an error', () => {
    const meter = createMeter();
    meter.chunk({ delta: {}, finish_reason: 'error', ext: { response: { usage: { in_uncached: 11, out_text: 0 } } } });
    expect(meter.usage(request)).toBeNull();
  });

  test('what was produced before an error', () => {
    const meter = createMeter();
    meter.chunk({ delta: { content: 'Once' } });
    meter.chunk({ delta: {}, finish_reason: 'error', ext: { response: { usage: { in_uncached: 11, out_text: 1 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: 1 });
  });

  test('an empty answer that finished, as told', () => {
    const meter = createMeter();
    meter.chunk({ delta: {}, finish_reason: 'stop', ext: { response: { usage: { in_uncached: 11, out_text: 0 } } } });
    expect(meter.usage(request)).toEqual({ in_uncached: 11, out_text: 0 });
  });
});

test.each<[string, Parameters<typeof isMeaningful>[0], boolean]>([
  ['a role', { role: 'assistant', content: '' }, false],
  ['text', { content: 'x' }, true],
  ['reasoning', { reasoning: 'x' }, true],
  ['a signature alone', { reasoning_details: [{ type: 'reasoning.text', signature: 's' }] }, true],
  ['a call', { tool_calls: [{ index: 0, id: 'c', function: { name: 'f' } }] }, true],
  ['no calls', { tool_calls: [] }, false],
  ['a refusal', { refusal: 'no' }, true],
])('%s is meaningful: %s', (_name, delta, expected) => {
  expect(isMeaningful(delta)).toBe(expected);
});
