import type { ChatRequest } from '../../schemas/inner.ts';
import { shareOf } from '../shared/reasoning-effort.ts';
import type { Encoding } from './encoding.ts';
import type { WireThinkingConfig } from './wire.ts';

/**
 * Tokens that a thinking budget leaves for the answer (Cohere, documentation page "Reasoning"): a fifth of the output bound if
 * that is less.
 */
const ANSWER_TOKENS_MIN = 1_000;

/** The setting of thinking in a request: off, on or not set. */
export function thinkingSetting({
  reasoning,
  reasoning_effort: reasoningEffort,
}: ChatRequest): 'off' | 'on' | undefined {
  const effort = reasoning?.effort ?? reasoningEffort;
  if (effort === 'none' || reasoning?.enabled === false || reasoning?.max_tokens === 0) return 'off';
  return effort != null || reasoning?.max_tokens != null || reasoning?.enabled === true ? 'on' : undefined;
}

/** The thinking configuration (https://docs.cohere.com/docs/reasoning). Models that think do so unless it is turned off. */
export function planThinking(
  request: ChatRequest,
  bound: number | undefined,
  encoding: Encoding,
): { thinking?: WireThinkingConfig } {
  const setting = thinkingSetting(request);
  if (setting === undefined) return {};
  if (setting === 'off') return { thinking: { type: 'disabled' } };
  const requestedBudget = request.reasoning?.max_tokens ?? undefined;
  const effort = request.reasoning?.effort ?? request.reasoning_effort ?? undefined;
  const tokenBudget =
    requestedBudget ?? (effort === undefined || bound === undefined ? undefined : bound * shareOf(effort));
  if (tokenBudget === undefined) {
    if (effort !== undefined) {
      encoding.addReport(
        'changed',
        'reasoning.effort',
        'without an output bound thinking is on or off, without degrees',
      );
    }
    return { thinking: { type: 'enabled' } };
  }
  // The budget is part of the output bound; the rest is for the answer.
  const budgetMax = bound === undefined ? tokenBudget : bound - Math.min(ANSWER_TOKENS_MIN, Math.ceil(bound / 5));
  const budget = Math.max(1, Math.min(Math.floor(tokenBudget), budgetMax));
  if (requestedBudget !== undefined && budget !== requestedBudget) {
    encoding.addReport('clamped', 'reasoning.max_tokens', `${budget}: the rest of the output bound is for the answer`);
  }
  return { thinking: { type: 'enabled', token_budget: budget } };
}
