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

/** How long answers of each endpoint are: a running mean, in this process alone. */
export class UsualOutput {
  readonly #means = new Map<string, { mean: number; answers: number }>();

  /** An endpoint gave a whole answer. */
  note(endpoint_id: string, usage: TokenClasses): void {
    const tokens = outputTokens(usage);
    const known = this.#means.get(endpoint_id);
    if (known !== undefined) {
      known.answers = Math.min(known.answers + 1, limits.usual_output_answers);
      known.mean += (tokens - known.mean) / known.answers;
    } else if (this.#means.size < limits.usual_output_endpoints_max) {
      this.#means.set(endpoint_id, { mean: tokens, answers: 1 });
    }
  }

  /** Tokens of a usual answer; of an endpoint that has not answered yet, a stated number. */
  of(endpoint_id: string): number {
    return Math.ceil(this.#means.get(endpoint_id)?.mean ?? limits.expected_completion_tokens);
  }
}

/** Whether an attempt whose end nobody knows costs what was seen of it alone. */
export function isMetered({ principal }: Call, rules: Pick<SpendingRules, 'budgets' | 'unknown_outcome'>): boolean {
  return rules.unknown_outcome === 'metered' && (principal.budget_mode ?? rules.budgets) === 'soft';
}

/** The output that an attempt is charged for where nobody saw its end and nothing was set aside: the usual answer, within its bound. */
export function presumedOutput(
  call: Call,
  { endpoint }: Candidate,
  { output_tokens }: Pick<Prepared, 'output_tokens'>,
  usual: Pick<UsualOutput, 'of'>,
): number {
  // What is no chat is counted whole by its estimate.
  if (call.estimate !== undefined || output_tokens === 0) return 0;
  const bound = output_tokens ?? endpoint.max_completion_tokens ?? Number.POSITIVE_INFINITY;
  return Math.min(bound, usual.of(endpoint.id)) * choicesOf(call.request);
}

/** The same with its prompt, in money: what the journal keeps of an attempt. Its tokens are those of the prompt, which alone are counted. */
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
