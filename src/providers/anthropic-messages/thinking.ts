import { limits } from '../../limits.ts';
import type { ChatRequest, ReasoningEffort } from '../../schemas/inner.ts';
import type { Quirks } from '../quirks.ts';
import type { Encoding } from './to-wire.ts';
import { WIRE, type WireDisplay, type WireEffort, type WireThinkingConfig } from './wire.ts';

/** How the model is asked to think, and how hard it is asked to work. */
export interface ThinkingPlan {
  thinking?: WireThinkingConfig;
  effort?: WireEffort;
}

/** The share of the output bound that an effort stands for (the public API's rule for budgets). */
const RATIOS: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  max: 0.95,
  xhigh: 0.95,
  high: 0.8,
  medium: 0.5,
  low: 0.2,
  minimal: 0.1,
};

/** Plans the thinking of one request. `max_tokens` is the output bound that is sent; it is never raised for thinking's sake. */
export function planThinking(asked: ChatRequest, maxTokens: number, encoding: Encoding): ThinkingPlan {
  const { quirks } = encoding;
  const request = withoutUnasked(asked);
  const reasoning = request.reasoning ?? {};
  const effort = reasoning.effort ?? request.reasoning_effort ?? undefined;
  const budget = reasoning.max_tokens ?? undefined;
  const isOff = effort === 'none' || reasoning.enabled === false || budget === 0;
  const isOn = !isOff && (effort !== undefined || budget !== undefined || reasoning.enabled === true);
  const spoken = verbosityEffort(request.verbosity, quirks, encoding);
  if (isOff) {
    const plan = { ...turnOff(quirks, encoding), ...spoken };
    // Without thinking the two highest efforts are refused (documentation page "Effort").
    if (plan.thinking !== undefined && (plan.effort === 'xhigh' || plan.effort === 'max')) plan.effort = 'high';
    return plan;
  }
  if (!isOn) return spoken;
  if (quirks.thinking === 'none') {
    encoding.report('dropped', 'reasoning', 'the model has no reasoning');
    return spoken;
  }
  const display = displayOf(request, quirks);
  if (quirks.thinking === 'adaptive') {
    const plan: ThinkingPlan = { thinking: { type: 'adaptive', ...display } };
    if (effort !== undefined) plan.effort = fitEffort(effort, 'reasoning.effort', quirks, encoding);
    else if (budget !== undefined) {
      plan.effort = fitEffort(effortOf(budget / maxTokens), 'reasoning.max_tokens', quirks, encoding);
      encoding.report('changed', 'reasoning.max_tokens', `the model accepts no budget: effort ${plan.effort}`);
    }
    return plan.effort === undefined ? { ...spoken, ...plan } : plan;
  }
  const budgetTokens = planBudget(budget, effort, maxTokens, encoding);
  if (budgetTokens === undefined) return spoken;
  return { ...spoken, thinking: { type: 'enabled', budget_tokens: budgetTokens, ...display } };
}

/** A client of the Messages API that says nothing of thinking asks for none: its effort is how hard to work. */
function withoutUnasked(request: ChatRequest): ChatRequest {
  const { reasoning, ext } = request;
  if (ext?.wire !== WIRE || ext.rest['thinking'] != null || reasoning?.effort == null) return request;
  if (reasoning.enabled === true || reasoning.effort === 'none') return request;
  const { effort, ...others } = reasoning;
  return { ...request, reasoning: others, verbosity: effort };
}

function turnOff(quirks: Quirks, encoding: Encoding): ThinkingPlan {
  if (quirks.thinking_default === 'always') {
    encoding.report('clamped', 'reasoning', 'the model always reasons: the lowest effort was used');
    return { effort: 'low' };
  }
  return quirks.thinking_default === 'on' ? { thinking: { type: 'disabled' } } : {};
}

function displayOf(request: ChatRequest, quirks: Quirks): { display?: WireDisplay } {
  const isExcluded = request.reasoning?.exclude === true || request.include_reasoning === false;
  if (quirks.thinking_hidden === true) return { display: isExcluded ? 'omitted' : 'summarized' };
  return isExcluded && quirks.thinking === 'adaptive' ? { display: 'omitted' } : {};
}

/** At least 1,024 and below `max_tokens`; undefined where that leaves no room. */
function planBudget(
  wanted: number | undefined,
  effort: ReasoningEffort | undefined,
  maxTokens: number,
  encoding: Encoding,
): number | undefined {
  const { thinking_budget_tokens_min: least, thinking_budget_tokens_max: most } = limits;
  if (maxTokens <= least) {
    encoding.report('dropped', 'reasoning', `thinking needs an output bound above ${least} tokens`);
    return undefined;
  }
  const ratio = RATIOS[effort === undefined || effort === 'none' ? 'medium' : effort];
  const asked = wanted ?? Math.floor(maxTokens * ratio);
  // A budget that leaves nothing to answer with is the client's slip: four fifths of the bound, as for high effort.
  const room = asked < maxTokens ? asked : Math.floor(maxTokens * RATIOS.high);
  const budget = Math.max(Math.min(room, most), least);
  if (wanted !== undefined && budget !== wanted) {
    encoding.report('clamped', 'reasoning.max_tokens', `${budget}: at least ${least} and below max_tokens`);
  }
  return budget;
}

/** The effort that a share of the output bound stands for. */
export function effortOf(ratio: number): ReasoningEffort {
  if (ratio >= RATIOS.xhigh) return 'xhigh';
  if (ratio >= RATIOS.high) return 'high';
  return ratio >= RATIOS.medium ? 'medium' : 'low';
}

const RANKS: readonly WireEffort[] = ['low', 'medium', 'high', 'xhigh', 'max'];

/** The highest effort the model takes that is not above the wish. */
function fitEffort(wish: ReasoningEffort, field: string, quirks: Quirks, encoding: Encoding): WireEffort {
  const asked: WireEffort = wish === 'minimal' || wish === 'none' ? 'low' : wish;
  const highest = RANKS.indexOf(quirks.effort_max ?? 'max');
  let rank = Math.min(RANKS.indexOf(asked), highest);
  if (RANKS[rank] === 'xhigh' && quirks.no_xhigh === true) rank -= 1;
  const effort = RANKS[rank]!;
  if (effort !== wish) encoding.report('clamped', field, `the model's nearest effort is ${effort}`);
  return effort;
}

/** `verbosity` is the only wish for effort that a request without reasoning can have. */
function verbosityEffort(verbosity: string | null | undefined, quirks: Quirks, encoding: Encoding): ThinkingPlan {
  if (verbosity == null) return {};
  if (quirks.effort_max === undefined || !RANKS.some((rank) => rank === verbosity)) {
    encoding.report('dropped', 'verbosity', 'the model does not support this effort');
    return {};
  }
  return { effort: fitEffort(verbosity as WireEffort, 'verbosity', quirks, encoding) };
}
