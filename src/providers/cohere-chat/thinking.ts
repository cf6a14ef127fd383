import { limits } from '../../limits.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { shareOf } from '../shared/reasoning-effort.ts';
import type { Encoding } from './encoding.ts';
import type { WireThinkingConfig } from './wire.ts';

/** Whether the request turns thinking off, on, or says nothing of it. */
export function thinkingWish({ reasoning, reasoning_effort: reasoningEffort }: ChatRequest): 'off' | 'on' | undefined {
  const effort = reasoning?.effort ?? reasoningEffort;
  if (effort === 'none' || reasoning?.enabled === false || reasoning?.max_tokens === 0) return 'off';
  return effort != null || reasoning?.max_tokens != null || reasoning?.enabled === true ? 'on' : undefined;
}

/** How the model is to think (https://docs.cohere.com/docs/reasoning): models that think do so unless it is turned off. */
export function planThinking(
  request: ChatRequest,
  bound: number | undefined,
  encoding: Encoding,
): { thinking?: WireThinkingConfig } {
  const wish = thinkingWish(request);
  if (wish === undefined) return {};
  if (wish === 'off') return { thinking: { type: 'disabled' } };
  const asked = request.reasoning?.max_tokens ?? undefined;
  const effort = request.reasoning?.effort ?? request.reasoning_effort ?? undefined;
  const tokenBudget = asked ?? (effort === undefined || bound === undefined ? undefined : bound * shareOf(effort));
  if (tokenBudget === undefined) {
    if (effort !== undefined) {
      encoding.tell('changed', 'reasoning.effort', 'without an output bound thinking is on or off, without degrees');
    }
    return { thinking: { type: 'enabled' } };
  }
  // The budget is of the same tokens as the bound, and what it leaves is the answer's.
  const room = bound === undefined ? tokenBudget : bound - Math.min(limits.answer_tokens_min, Math.ceil(bound / 5));
  const budget = Math.max(1, Math.min(Math.floor(tokenBudget), room));
  if (asked !== undefined && budget !== asked) {
    encoding.tell('clamped', 'reasoning.max_tokens', `${budget}: the rest of the output bound is for the answer`);
  }
  return { thinking: { type: 'enabled', token_budget: budget } };
}
