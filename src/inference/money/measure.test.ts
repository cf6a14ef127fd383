import { describe, expect, test } from 'vitest';
import { dialects } from '../../providers/dialects.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, Wire } from '../../schemas/inner.ts';
import { type PreparedAttempt, prepareAttempt } from '../attempt/prepare-attempt.ts';
import type { Measured } from './admission.ts';
import { createMeasure } from './measure.ts';

const measure = createMeasure({ count: async () => undefined, stop: async () => undefined });

const MODELS = [
  'gpt-5',
  'claude-sonnet-4-5',
  'gemini-2.5-pro',
  'gemini-3-pro-preview',
  'anthropic.claude-3-7-sonnet-20250219-v1:0',
  'amazon.nova-2-lite-v1:0',
  'command-a-reasoning-08-2025',
];
const REASONING = [undefined, { effort: 'high' }, { max_tokens: 2_000 }, { effort: 'none' }];

function candidateOf(wire: Wire, upstreamModel: string): Candidate {
  const endpoint = {
    model: 'b/c',
    provider: 'a',
    upstream_model: upstreamModel,
    pricing: {},
    input_modalities: [],
    quirks: {},
  };
  const model = { id: 'b/c', tokenizer: 'Other', output_modalities: ['text'] };
  return { model, endpoint, provider: { slug: 'a', name: 'A', dialect: wire } as Provider } as unknown as Candidate;
}

describe.each([...dialects.keys()])('%s', (wire) => {
  test.each(MODELS)(
    '%s: the output bound of an attempt is at most the paid tokens, and these are never below its minimum',
    (upstreamModel) => {
      for (const reasoning of REASONING) {
        const request = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5_000, reasoning } as ChatRequest;
        const whole = prepareAttempt(request, candidateOf(wire, upstreamModel)) as PreparedAttempt;
        const { least_tokens } = measure(whole, 5_000, 'strict') as Measured;
        for (const wanted of [1, 10, 100, 1_500]) {
          const paidTokens = Math.max(wanted, least_tokens);
          const spend = { default_tokens: 4_096, paid_tokens: paidTokens };
          const lowered = prepareAttempt(request, candidateOf(wire, upstreamModel), { spend }) as PreparedAttempt;
          expect(lowered.output_tokens).toBeLessThanOrEqual(paidTokens);
        }
      }
    },
  );
});
