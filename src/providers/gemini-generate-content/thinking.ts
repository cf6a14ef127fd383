import type { ChatRequest, ReasoningEffort } from '../../schemas/inner.ts';
import { effortOf, nearestOf } from '../shared/reasoning-effort.ts';
import type { Encoding } from './encoding.ts';
import type { WireThinkingConfig, WireThinkingLevel } from './wire.ts';

type ModelVariant = Exclude<ReasoningEffort, 'none'>;

/** The share of the output bound that an effort stands for (the public API's rule for budgets). */
const RATIOS: Readonly<Record<ModelVariant, number>> = {
  max: 0.95,
  xhigh: 0.95,
  high: 0.8,
  medium: 0.5,
  low: 0.2,
  minimal: 0.1,
};

/** Google's own translation of efforts, where no output bound is known (https://ai.google.dev/gemini-api/docs/openai#thinking). */
const BUDGETS: Readonly<Record<ModelVariant, number>> = {
  max: 24_576,
  xhigh: 24_576,
  high: 24_576,
  medium: 8_192,
  low: 1_024,
  minimal: 1_024,
};

/** Plans the thinking of one request; undefined where nothing is to be said of it. Thoughts count against the output bound. */
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
    if (isOn) encoding.report('dropped', 'reasoning', 'the model has no reasoning');
    return undefined;
  }
  // These models think, and bill it, unasked: what they think is then shown.
  const isShown = !isOff && reasoning.exclude !== true && request.include_reasoning !== false;
  const shown = { includeThoughts: isShown };
  if (isOff) return { ...shown, ...least(encoding) };
  if (facts.thinking === 'level') return { ...shown, ...levelFor(request, bound, encoding) };
  return { ...shown, ...budgetFor(effort, budget, bound, reasoning.enabled === true, encoding) };
}

function least({ facts, report }: Encoding): WireThinkingConfig {
  const tell = (to: string) => report('clamped', 'reasoning', `the model always reasons: ${to} was used`);
  if (facts.thinking === 'level') {
    const thinkingLevel = facts.levels[0]!;
    tell(`level ${thinkingLevel}`);
    return { thinkingLevel };
  }
  const { least, can_rest: canRest } = facts.budget;
  if (canRest) return { thinkingBudget: 0 };
  tell(`${least} tokens`);
  return { thinkingBudget: least };
}

function levelFor(request: ChatRequest, bound: number | undefined, encoding: Encoding): WireThinkingConfig {
  const { effort, max_tokens: maxTokens } = request.reasoning ?? {};
  if (effort == null && request.reasoning_effort == null && maxTokens == null) return {};
  const wish = effortOf(request, bound) ?? 'medium';
  const level = nearestOf(
    encoding.facts.levels.map((known) => known.toLowerCase()),
    wish,
  );
  if (maxTokens != null)
    encoding.report('changed', 'reasoning.max_tokens', `the model accepts no budget: level ${level}`);
  else if (level !== wish) encoding.report('clamped', 'reasoning.effort', `the model's nearest level is ${level}`);
  return { thinkingLevel: level.toUpperCase() as WireThinkingLevel };
}

function budgetFor(
  effort: ReasoningEffort | undefined,
  wanted: number | undefined,
  bound: number | undefined,
  isEnabled: boolean,
  encoding: Encoding,
): WireThinkingConfig {
  const told = effort === 'none' ? undefined : effort;
  // -1 leaves the budget to the model.
  if (wanted === undefined && told === undefined) return isEnabled ? { thinkingBudget: -1 } : {};
  const { least, most } = encoding.facts.budget;
  const asked = wanted ?? (bound === undefined ? BUDGETS[told!] : Math.floor(bound * RATIOS[told!]));
  const thinkingBudget = Math.min(Math.max(Math.floor(asked), least), most);
  if (wanted !== undefined && thinkingBudget !== wanted) {
    encoding.report('clamped', 'reasoning.max_tokens', `${thinkingBudget}: from ${least} to ${most}`);
  }
  return { thinkingBudget };
}
