/** The usage and cost of an answer as its client sees them. */
import type { FeeRecord } from '../../ledger/records.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { toUsd } from '../../schemas/money.ts';
import { type PublicUsage, publicUsage, sumClasses } from '../../schemas/usage.ts';
import type { Attempt, CallState, ToolUse } from '../state.ts';

/** The public usage with what it cost, in USD. */
export interface AnswerUsage extends PublicUsage {
  /** Not set if a price, and so the cost, is unknown. */
  cost?: number;
  is_byok: boolean;
  cost_details?: {
    upstream_inference_cost: number | null;
    upstream_inference_prompt_cost: number;
    upstream_inference_completions_cost: number;
  };
  server_tool_use_details?: ToolUse;
}

/** The usage of an answer that used nothing. */
export const NO_USAGE: AnswerUsage = {
  ...publicUsage({}),
  cost: 0,
  is_byok: false,
  cost_details: {
    upstream_inference_cost: null,
    upstream_inference_prompt_cost: 0,
    upstream_inference_completions_cost: 0,
  },
};

/** The public usage of an answer over all its parts. The cost at the organization's own accounts is shown apart. */
export function answerUsage(
  { usage, parts }: { usage: TokenClasses | null; parts: readonly Attempt[] },
  { own }: Candidate,
  { fees, toolCalls }: CallState,
): AnswerUsage {
  const is_byok = own !== undefined;
  let cost_nano = 0;
  for (const fee of fees) cost_nano += fee.cost_nano;
  if (usage === null) return { ...NO_USAGE, cost: toUsd(cost_nano), is_byok };
  let their_nano = 0;
  let theirs = 0;
  let input_nano = 0;
  let output_nano = 0;
  let is_unpriced = false;
  for (const { candidate, charge } of parts) {
    if (charge === undefined) continue;
    if (candidate.own === undefined) cost_nano += charge.cost_nano;
    else {
      theirs += 1;
      their_nano += charge.cost_nano;
    }
    input_nano += charge.input_nano;
    output_nano += charge.output_nano;
    is_unpriced ||= charge.is_unpriced;
  }
  const shown = publicUsage(usage) as AnswerUsage;
  if (!is_unpriced || theirs === parts.length) shown.cost = toUsd(cost_nano);
  shown.is_byok = is_byok;
  if (!is_unpriced) {
    shown.cost_details = {
      upstream_inference_cost: theirs === 0 ? null : toUsd(their_nano),
      upstream_inference_prompt_cost: toUsd(input_nano),
      upstream_inference_completions_cost: toUsd(output_nano),
    };
  }
  if (toolCalls !== undefined) {
    shown.server_tool_use_details = {
      web_search_requests: usage.counts?.web_search ?? 0,
      tool_calls_requested: toolCalls.requested,
      tool_calls_executed: toolCalls.executed,
    };
  }
  return shown;
}

/** The usage of all parts of an answer and of paid work beside them. */
export function allUsed(parts: readonly Attempt[], fees: readonly FeeRecord[]): TokenClasses | null {
  const [only] = parts;
  if (parts.length === 1 && fees.length === 0 && only !== undefined) return only.usage;
  const used: TokenClasses[] = [];
  for (const { usage } of parts) if (usage !== null) used.push(usage);
  for (const { counts } of fees) if (counts !== undefined) used.push({ counts });
  return used.length > 1 ? sumClasses(used) : (used[0] ?? null);
}
