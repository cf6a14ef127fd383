import { pricesFor } from '../../catalog/price-list.ts';
import { charge } from '../../ledger/prices/charge.ts';
import { limits } from '../../limits.ts';
import type { Candidate } from '../../routing/plan.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { isPriced } from '../../schemas/prices.ts';
import { inputTokens } from '../../schemas/usage.ts';
import type { Call } from '../call.ts';
import { estimatePrompt } from '../money/meter.ts';

/** The expected tokens of a call, at any endpoint. */
export interface ExpectedTokens {
  prompt: number;
  completion: number;
  /** The number of answers that `completion` covers. */
  choices: number;
}

/**
 * The prompt by the upstream's count if `usage` has it, otherwise by our estimate, and an answer of the usual length within the output
 * bound. Undefined for calls that are not chat.
 */
export function expectedTokens(
  { request, api_type }: Pick<Call, 'request' | 'api_type'>,
  usage: TokenClasses | null = null,
): ExpectedTokens | undefined {
  if (api_type === 'embeddings' || api_type === 'stt') return undefined;
  const { max_completion_tokens, max_tokens } = request;
  const most = max_completion_tokens ?? max_tokens ?? limits.expected_completion_tokens;
  return {
    choices: choicesOf(request),
    prompt: usage === null ? estimatePrompt(request) : inputTokens(usage),
    completion: Math.min(most, limits.expected_completion_tokens) * choicesOf(request),
  };
}

/** The cost at an endpoint with nothing cached, in nano-USD; undefined if a price is not known. */
export function expectedCost(
  { endpoint, tier }: Candidate,
  tokens: ExpectedTokens,
  serviceTier: string | null | undefined,
): number | undefined {
  const prices = pricesFor(endpoint, { prompt_tokens: tokens.prompt, service_tier: tier ?? serviceTier });
  if (!isPriced(prices)) return undefined;
  const completion = Math.min(tokens.completion, (endpoint.max_completion_tokens ?? Infinity) * tokens.choices);
  return charge([{ usage: { in_uncached: tokens.prompt, out_text: completion }, prices }]).cost_nano;
}
