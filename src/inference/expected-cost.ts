import { pricesFor } from '../catalog/price-list.ts';
import { charge } from '../ledger/charge.ts';
import { limits } from '../limits.ts';
import type { Candidate } from '../routing/plan.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import { isPriced } from '../schemas/prices.ts';

/** What a call is expected to take, wherever it goes. */
export interface ExpectedTokens {
  prompt: number;
  completion: number;
}

/** How long an answer is expected to be: as long as the usual one, and not longer than the request allows. */
export function expectedCompletion({ max_completion_tokens, max_tokens }: ChatRequest): number {
  return Math.min(max_completion_tokens ?? max_tokens ?? Number.POSITIVE_INFINITY, limits.expected_completion_tokens);
}

/** What it would then cost there, in nano-USD, with nothing cached; undefined where a price is not known. */
export function expectedCost(
  { endpoint, tier }: Candidate,
  tokens: ExpectedTokens,
  service_tier: string | null | undefined,
): number | undefined {
  const prices = pricesFor(endpoint, { prompt_tokens: tokens.prompt, service_tier: tier ?? service_tier });
  if (!isPriced(prices)) return undefined;
  const completion = Math.min(tokens.completion, endpoint.max_completion_tokens ?? tokens.completion);
  return charge([{ usage: { in_uncached: tokens.prompt, out_text: completion }, prices }]).cost_nano;
}
