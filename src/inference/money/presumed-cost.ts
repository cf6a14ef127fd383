import type { Metered } from '../../ledger/records.ts';
import { limits } from '../../limits.ts';
import type { Candidate } from '../../routing/plan.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { outputTokens } from '../../schemas/usage.ts';
import type { Call } from '../call.ts';
import type { Prepared, SpendingRules } from './admission.ts';
import { priceAttempt } from './generation.ts';
import { roughPrompt } from './meter.ts';

/** Over so many answers the usual length is found, and of so many endpoints it is known. */
const USUAL_OUTPUT_ANSWERS = 64;
const USUAL_OUTPUT_ENDPOINTS_MAX = 10_000;

/** The usual length of each endpoint's answers: a running mean in the memory of this process. */
export class UsualOutput {
  readonly #means = new Map<string, { mean: number; answers: number }>();

  /** Adds a completed answer. */
  note(endpointId: string, usage: TokenClasses): void {
    const tokens = outputTokens(usage);
    const entry = this.#means.get(endpointId);
    if (entry !== undefined) {
      entry.answers = Math.min(entry.answers + 1, USUAL_OUTPUT_ANSWERS);
      entry.mean += (tokens - entry.mean) / entry.answers;
    } else if (this.#means.size < USUAL_OUTPUT_ENDPOINTS_MAX) {
      this.#means.set(endpointId, { mean: tokens, answers: 1 });
    }
  }

  /** Tokens of a usual answer; a fixed number for an endpoint without answers. */
  of(endpointId: string): number {
    return Math.ceil(this.#means.get(endpointId)?.mean ?? limits.expected_completion_tokens);
  }
}

/**
 * The presumed cost of an attempt without a hold, which is charged if its end stays unknown: its prompt, and the usual answer within
 * the output bound. No answer for calls that are not chat, whose estimate is their whole usage, and for limits that charge only what
 * was received. `least`: as the journal keeps it; its usage has the prompt's tokens only.
 */
export function presumedCost(
  call: Call,
  candidate: Candidate,
  { output_tokens, service_tier }: Pick<Prepared, 'output_tokens' | 'service_tier'>,
  { rules, usual }: { rules: Pick<SpendingRules, 'budgets' | 'unknown_outcome'>; usual: Pick<UsualOutput, 'of'> },
): { outputTokens: number; least: Metered } {
  const { request, estimate, principal } = call;
  const { endpoint } = candidate;
  const isMetered = rules.unknown_outcome === 'metered' && (principal.budget_mode ?? rules.budgets) === 'soft';
  let outputTokens = 0;
  if (!isMetered && estimate === undefined && output_tokens !== 0) {
    const bound = output_tokens ?? endpoint.max_completion_tokens ?? Number.POSITIVE_INFINITY;
    outputTokens = Math.min(bound, usual.of(endpoint.id)) * choicesOf(request);
  }
  const usage = estimate?.() ?? { in_uncached: roughPrompt(request) };
  const whole = outputTokens === 0 ? usage : { ...usage, out_text: outputTokens };
  const { cost_nano } = priceAttempt(whole, request, candidate, () => undefined, service_tier);
  return { outputTokens, least: { usage, cost_nano } };
}
