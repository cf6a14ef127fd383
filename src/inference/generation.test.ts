import { expect, test } from 'vitest';
import type { Candidate } from '../routing/plan.ts';
import type { ChatRequest, TokenClasses } from '../schemas/inner.ts';
import { priceAttempt } from './generation.ts';

const request: ChatRequest = { messages: [{ role: 'user', content: 'x' }] };
const candidate = {
  provider: { slug: 'acme' },
  endpoint: {
    pricing: { prompt: 1_000_000, completion: 2_000_000 },
    price_tiers: [
      { prompt_tokens_over: 200, price: { prompt: 2_000_000, completion: 4_000_000 } },
      { prompt_tokens_over: 400, price: { prompt: 3_000_000, completion: 6_000_000 } },
    ],
  },
} as unknown as Candidate;
const price = (usage: TokenClasses) =>
  priceAttempt(usage, request, candidate, (_provider, model) =>
    model === 'side' ? { prompt: 10_000_000, completion: 0 } : undefined,
  ).cost_nano;

test.each<[string, TokenClasses, number]>([
  ['up to the first tier', { in_uncached: 200, out_text: 1 }, 200_000 + 2_000],
  ['beyond the first tier', { in_uncached: 201, out_text: 1 }, 402_000 + 4_000],
  ['cached input counts toward the tier', { in_uncached: 1, in_cache_read: 400, out_text: 0 }, 1_203_000],
  [
    'another model’s work at its own price',
    { in_uncached: 1, out_text: 1, extra: [{ model: 'side', classes: { in_uncached: 5 } }] },
    1_000 + 2_000 + 50_000,
  ],
  [
    'another model without a price at the endpoint’s',
    { in_uncached: 1, extra: [{ model: 'unknown', classes: { in_uncached: 5 } }] },
    6_000,
  ],
])('%s', (_title, usage, nano) => {
  expect(price(usage)).toBe(nano);
});
