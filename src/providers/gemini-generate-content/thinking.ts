import type { ChatRequest, ReasoningEffort } from '../../schemas/inner.ts';
import { effortOf, nearestOf } from '../shared/reasoning-effort.ts';
import type { Encoding } from './encoding.ts';
import type { WireThinkingConfig, WireThinkingLevel } from './wire.ts';

type ActiveEffort = Exclude<ReasoningEffort, 'none'>;

/** The share of the output bound for each effort (the public API's rule for budgets). */
const RATIOS: Readonly<Record<ActiveEffort, number>> = {
  max: 0.95,
  xhigh: 0.95,
  high: 0.8,
  medium: 0.5,
  low: 0.2,
  minimal: 0.1,
};

/** Google's own budgets for efforts, used if no output bound is known (https://ai.google.dev/gemini-api/docs/openai#thinking). */
const BUDGETS: Readonly<Record<ActiveEffort, number>> = {
  max: 24_576,
  xhigh: 24_576,
  high: 24_576,
  medium: 8_192,
  low: 1_024,
  minimal: 1_024,
};

/** Plans the thinking of one request; undefined if no setting is needed. Thoughts count against the output bound. */
export function planThinking(
  request: ChatRequest,
  bound: number | undefined,
  encoding: Encoding,
): WireThinkingConfig | undefined {
  const reasoning = request.reasoning ?? {};
  const effort = reasoning.effort ?? request.reasoning_effort ?? undefined;
  const budget = reasoning.max_tokens ?? undefined;
  const isOff = effort === 'none' || reasoning.enabled === false || budget === 0;
  const isOn = !isOff && (effort !== undefined || budget !== undefined || reasoning.enabled === true);
  const { facts } = encoding;
  if (facts.thinking === 'none') {
    if (isOn) encoding.addReport('dropped', 'reasoning', 'the model has no reasoning');
    return undefined;
  }
  // These models think, and bill it, by default: the thoughts are requested as well.
  const isShown = !isOff && reasoning.exclude !== true && request.include_reasoning !== false;
  const visibility = { includeThoughts: isShown };
  if (isOff) return { ...visibility, ...leastThinking(encoding) };
  if (facts.thinking === 'level') return { ...visibility, ...levelFor(request, bound, encoding) };
  return { ...visibility, ...budgetFor(effort, budget, bound, reasoning.enabled === true, encoding) };
}

function leastThinking({ facts, addReport }: Encoding): WireThinkingConfig {
  const reportClamped = (to: string) => addReport('clamped', 'reasoning', `the model always reasons: ${to} was used`);
  if (facts.thinking === 'level') {
    const thinkingLevel = facts.levels[0]!;
    reportClamped(`level ${thinkingLevel}`);
    return { thinkingLevel };
  }
  const { least, can_rest: canRest } = facts.budget;
  if (canRest) return { thinkingBudget: 0 };
  reportClamped(`${least} tokens`);
  return { thinkingBudget: least };
}

function levelFor(request: ChatRequest, bound: number | undefined, encoding: Encoding): WireThinkingConfig {
  const { effort, max_tokens: maxTokens } = request.reasoning ?? {};
  if (effort == null && request.reasoning_effort == null && maxTokens == null) return {};
  const requested = effortOf(request, bound) ?? 'medium';
  const level = nearestOf(
    encoding.facts.levels.map((known) => known.toLowerCase()),
    requested,
  );
  if (maxTokens != null)
    encoding.addReport('changed', 'reasoning.max_tokens', `the model accepts no budget: level ${level}`);
  else if (level !== requested)
    encoding.addReport('clamped', 'reasoning.effort', `the model's nearest level is ${level}`);
  return { thinkingLevel: level.toUpperCase() as WireThinkingLevel };
}

function budgetFor(
  effort: ReasoningEffort | undefined,
  requested: number | undefined,
  bound: number | undefined,
  isEnabled: boolean,
  encoding: Encoding,
): WireThinkingConfig {
  const activeEffort = effort === 'none' ? undefined : effort;
  // -1 leaves the budget to the model.
  if (requested === undefined && activeEffort === undefined) return isEnabled ? { thinkingBudget: -1 } : {};
  const { least, most } = encoding.facts.budget;
  const target =
    requested ?? (bound === undefined ? BUDGETS[activeEffort!] : Math.floor(bound * RATIOS[activeEffort!]));
  const thinkingBudget = Math.min(Math.max(Math.floor(target), least), most);
  if (requested !== undefined && thinkingBudget !== requested) {
    encoding.addReport('clamped', 'reasoning.max_tokens', `${thinkingBudget}: from ${least} to ${most}`);
  }
  return { thinkingBudget };
}
