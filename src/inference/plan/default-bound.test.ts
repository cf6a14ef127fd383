import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { defaultBound, OUTPUT_TOKENS_UNKNOWN } from './default-bound.ts';

const ask = (chars: number, more: Partial<ChatRequest> = {}): ChatRequest => ({
  messages: [{ role: 'user', content: 'x'.repeat(chars) }],
  ...more,
});
const own = "the model's maximum";
const context = "the rest of the model's context";

test.each<[string, ChatRequest, number | undefined, number | undefined, number, string]>([
  ['the bound of the model', ask(10), 128_000, 400_000, 128_000, own],
  ['the bound of the model, if its context is unknown', ask(10), 64_000, undefined, 64_000, own],
  ['what the context leaves, if the bound fills it', ask(10_000), 131_072, 131_072, 119_792, context],
  ['the stated default, if no bound is known', ask(10_000), undefined, 131_072, 16_384, 'the default, because'],
  ['what the context leaves of that default', ask(10_000), undefined, 24_000, 12_720, context],
  [
    'half of the context beside what is not counted',
    ask(10, { tools: [{ type: 'web' }] }),
    90_000,
    100_000,
    50_000,
    context,
  ],
  ['the smallest default, if the prompt seems to fill the context', ask(130_000), 32_000, 131_072, 8_192, context],
  ['what a small context leaves', ask(10), undefined, 4_096, 2_806, context],
  ['at least half of a small context', ask(4_000), undefined, 4_096, 2_048, context],
  ['a stated default, if nothing is known', ask(10), undefined, undefined, 16_384, 'the default, because'],
])('a request without an output bound gets %s', (_, request, maxCompletionTokens, contextLength, tokens, source) => {
  const bound = defaultBound(request, { max_completion_tokens: maxCompletionTokens, context_length: contextLength });
  expect(bound).toEqual({ tokens, source: expect.stringContaining(source) });
});

test('an unknown maximum or context length does not lower the bound to the smallest default', () => {
  expect(OUTPUT_TOKENS_UNKNOWN).toBeGreaterThan(limits.output_tokens_default);
});
