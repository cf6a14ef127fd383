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

/** The usual length of each endpoint's answers: a running mean in the memory of this process. */
export class UsualOutput {
  readonly #means = new Map<string, { mean: number; answers: number }>();

  /** Adds a completed answer. */
  note(endpoint_id: string, usage: TokenClasses): void {
    const tokens = outputTokens(usage);
    const entry = this.#means.get(endpoint_id);
    if (entry !== undefined) {
      entry.answers = Math.min(entry.answers + 1, limits.usual_output_answers);
      entry.mean += (tokens - entry.mean) / entry.answers;
    } else if (this.#means.size < limits.usual_output_endpoints_max) {
      this.#means.set(endpoint_id, { mean: tokens, answers: 1 });
    }
  }

  /** Tokens of a usual answer; a fixed number for an endpoint without answers. */
  of(endpoint_id: string): number {
    return Math.ceil(this.#means.get(endpoint_id)?.mean ?? limits.expected_completion_tokens);
  }
}

/** Whether an attempt with an unknown end is charged only what was received of it. */
export function isMetered({ principal }: Call, rules: Pick<SpendingRules, 'budgets' | 'unknown_outcome'>): boolean {
  return rules.unknown_outcome === 'metered' && (principal.budget_mode ?? rules.budgets) === 'soft';
}

/** The output tokens charged for an attempt with an unknown end and without a hold: the usual answer, within the output bound. */
export function presumedOutput(
  call: Call,
  { endpoint }: Candidate,
  { output_tokens }: Pick<Prepared, 'output_tokens'>,
  usual: Pick<UsualOutput, 'of'>,
): number {
  // Calls that are not chat are charged their estimate.
  if (call.estimate !== undefined || output_tokens === 0) return 0;
  const bound = output_tokens ?? endpoint.max_completion_tokens ?? Number.POSITIVE_INFINITY;
  return Math.min(bound, usual.of(endpoint.id)) * choicesOf(call.request);
}

/** The cost of that output and the prompt, as the journal keeps it for an attempt. `usage` has the prompt's tokens only. */
export function presumedCost(
  { estimate, request }: Call,
  candidate: Candidate,
  service_tier: string | undefined,
  output_tokens: number,
): Metered {
  const usage = estimate?.() ?? { in_uncached: roughPrompt(request) };
  const whole = output_tokens === 0 ? usage : { ...usage, out_text: output_tokens };
  return { usage, cost_nano: priceAttempt(whole, request, candidate, () => undefined, service_tier).cost_nano };
}
