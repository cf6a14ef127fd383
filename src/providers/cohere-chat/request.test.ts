import { expect, test } from 'vitest';
import { prepareAttempt } from '../../inference/attempt.ts';
import { mediaOf, promptTokens, textBytes } from '../../inference/worst-case.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { cohereChat } from './index.ts';

const base64 = 'QUJD'.repeat(5_000);

/** What a request may count at most, in text and in images. */
function worstPrompt(request: ChatRequest) {
  const candidate = {
    model: { id: 'cohere/a', tokenizer: 'Cohere', output_modalities: ['text'] },
    endpoint: { upstream_model: 'a', model: 'cohere/a', quirks: {}, pricing: {}, input_modalities: ['text', 'image'] },
    provider: { slug: 'cohere', name: 'Cohere', dialect: 'cohere-chat' },
  } as unknown as Candidate;
  const attempt = prepareAttempt(request, candidate, cohereChat, false);
  const media = mediaOf(attempt);
  return promptTokens(attempt, textBytes(attempt, media), media);
}

test('what a request may cost covers text files, which go as text, and images of tools’ results, which move', () => {
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
