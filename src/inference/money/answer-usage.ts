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
  { usage, parts, fees, toolCalls }: Pick<CallState, 'usage' | 'parts' | 'fees' | 'toolCalls'>,
  { own }: Candidate,
): AnswerUsage {
  const isByok = own !== undefined;
  let costNano = 0;
  for (const fee of fees) costNano += fee.cost_nano;
  if (usage === null) return { ...NO_USAGE, cost: toUsd(costNano), is_byok: isByok };
  let theirNano = 0;
  let theirs = 0;
  let inputNano = 0;
  let outputNano = 0;
  let isUnpriced = false;
  for (const { candidate, charge } of parts) {
    if (charge === undefined) continue;
    if (candidate.own === undefined) costNano += charge.cost_nano;
    else {
      theirs += 1;
      theirNano += charge.cost_nano;
    }
    inputNano += charge.input_nano;
    outputNano += charge.output_nano;
    isUnpriced ||= charge.is_unpriced;
  }
  const shown = publicUsage(usage) as AnswerUsage;
  if (!isUnpriced || theirs === parts.length) shown.cost = toUsd(costNano);
  shown.is_byok = isByok;
  if (!isUnpriced) {
    shown.cost_details = {
      upstream_inference_cost: theirs === 0 ? null : toUsd(theirNano),
      upstream_inference_prompt_cost: toUsd(inputNano),
      upstream_inference_completions_cost: toUsd(outputNano),
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
  const used: TokenClasses[] = [];
  for (const { usage } of parts) if (usage !== null) used.push(usage);
  for (const { counts } of fees) if (counts !== undefined) used.push({ counts });
  return used.length > 1 ? sumClasses(used) : (used[0] ?? null);
}
