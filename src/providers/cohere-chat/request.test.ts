import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkCohereChat } from '../../../sandbox/cohere-chat-checks.ts';
import { inTier } from '../../../test/tier.ts';
import { type PreparedAttempt, prepareAttempt } from '../../inference/attempt/prepare-attempt.ts';
import { mediaOf, promptTokens, textBytes } from '../../inference/money/worst-case.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, Message } from '../../schemas/inner.ts';
import type { DialectEndpoint } from '../dialect.ts';
import { cohereChat } from './index.ts';

const base64 = 'QUJD'.repeat(5_000);

/** The most that a request can count, in text and in images. */
function worstPrompt(request: ChatRequest) {
  const candidate = {
    model: { id: 'cohere/a', tokenizer: 'Cohere', output_modalities: ['text'] },
    endpoint: { upstream_model: 'a', model: 'cohere/a', quirks: {}, pricing: {}, input_modalities: ['text', 'image'] },
    provider: { slug: 'cohere', name: 'Cohere', dialect: 'cohere-chat' },
  } as unknown as Candidate;
  const attempt = prepareAttempt(request, candidate) as PreparedAttempt;
  const media = mediaOf(attempt);
  return promptTokens(attempt, textBytes(attempt, media), media);
}

test('the worst case counts text files as text, and images in tool results as images', () => {
  const text = worstPrompt({
    messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: `data:text/plain;base64,${base64}` } }] }],
  });
  expect(text.text).toBeGreaterThanOrEqual(Buffer.from(base64, 'base64').length);
  const image = worstPrompt({
    messages: [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'b', arguments: '{}' } }],
      },
      {
        role: 'tool',
        tool_call_id: 'a',
        content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }],
      },
    ],
  });
  expect(image.image).toBe(16_384);
  expect(image.text).toBeLessThan(1_000);
});

test('any conversation becomes a request that the wire accepts, and is not modified', () => {
  const text = fc.constantFrom('', ' ', 'Hello', '😀');
  const id = fc.constantFrom('a', 'b', '');
  const call = fc.record({
    id,
    type: fc.constant('function' as const),
    function: fc.record({
      name: fc.constantFrom('look', 'two words', 'ü'),
      arguments: fc.constantFrom('', '{}', 'no JSON'),
    }),
  });
  const part = fc.oneof(
    text.map((content) => ({ type: 'text' as const, text: content })),
    fc.constant({ type: 'image_url' as const, image_url: { url: 'https://a.example/b.png' } }),
    fc.constant({ type: 'file' as const, file: { file_data: 'data:text/plain,hello', filename: 'a.txt' } }),
  );
  const content = fc.oneof(text, fc.array(part, { maxLength: 3 }), fc.constant(null));
  const reasoning = fc.option(fc.constantFrom('', 'Hm'), { nil: null });
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.record({ role: fc.constantFrom('system' as const, 'developer' as const, 'user' as const), content }),
    fc.record({
      role: fc.constant('assistant' as const),
      content,
      reasoning,
      tool_calls: fc.array(call, { maxLength: 3 }),
    }),
    fc.record({ role: fc.constant('tool' as const), content, tool_call_id: id }),
  );
  const property = fc.property(fc.array(message, { minLength: 1, maxLength: 8 }), fc.boolean(), (messages, thinks) => {
    // The wire refuses an empty conversation whatever it contains.
    fc.pre(messages.some(({ role }) => role === 'user' || role === 'tool'));
    const before = JSON.stringify(messages);
    const endpoint = {
      model: 'cohere/a',
      provider: 'cohere',
      upstream_model: 'a',
      max_completion_tokens: undefined,
      context_length: undefined,
      input_modalities: ['text', 'image'],
      quirks: thinks ? { replay_reasoning: 'thinking_part' as const } : {},
    };
    const { body } = cohereChat.encodeRequest({ messages }, endpoint, { media: new Map(), strip_state: false });
    checkCohereChat(body);
    expect(JSON.stringify(messages)).toBe(before);
  });
  fc.assert(property, { seed: 20_261_121, numRuns: inTier(100, 1_000) });
});

test.each([
  ['in its own form', { allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'b' } }] } }],
  ['flat', { mode: 'required', tools: [{ type: 'function', name: 'b' }] }],
])('of a choice of several tools, %s, only those tools are sent', (_form, choice) => {
  const tool = (name: string) => ({ type: 'function' as const, function: { name, parameters: { type: 'object' } } });
  const { body } = cohereChat.encodeRequest(
    {
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [tool('a'), tool('b')],
      tool_choice: { type: 'allowed_tools', ...choice },
    },
    { model: 'cohere/a', provider: 'cohere', upstream_model: 'a', quirks: {} } as unknown as DialectEndpoint,
    { media: new Map(), strip_state: false },
  );
  expect(body).toMatchObject({ tool_choice: 'REQUIRED', tools: [{ function: { name: 'b' } }] });
});
