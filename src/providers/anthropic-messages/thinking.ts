import { limits } from '../../limits.ts';
import type { ChatRequest, ReasoningEffort } from '../../schemas/inner.ts';
import type { Quirks } from '../quirks.ts';
import type { Encoding } from './to-wire.ts';
import { WIRE, type WireDisplay, type WireEffort, type WireThinkingConfig } from './wire.ts';

/** The thinking configuration, and the effort. */
export interface ThinkingPlan {
  thinking?: WireThinkingConfig;
  effort?: WireEffort;
}

/** The share of the output bound for each effort (the public API's rule for budgets). */
const RATIOS: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  max: 0.95,
  xhigh: 0.95,
  high: 0.8,
  medium: 0.5,
  low: 0.2,
  minimal: 0.1,
};

/** Plans the thinking of one request. `maxTokens` is the output bound to be sent; it is never raised for thinking. */
export function planThinking(original: ChatRequest, maxTokens: number, encoding: Encoding): ThinkingPlan {
  const { quirks } = encoding;
  const request = effortWithoutThinking(original);
  const reasoning = request.reasoning ?? {};
  const effort = reasoning.effort ?? request.reasoning_effort ?? undefined;
  const budget = reasoning.max_tokens ?? undefined;
  const isOff = effort === 'none' || reasoning.enabled === false || budget === 0;
  const isOn = !isOff && (effort !== undefined || budget !== undefined || reasoning.enabled === true);
  const verbosityPlan = verbosityEffort(request.verbosity, quirks, encoding);
  if (isOff) {
    const plan = { ...turnOff(quirks, encoding), ...verbosityPlan };
    // Without thinking the two highest efforts are refused (documentation page "Effort").
    if (plan.thinking !== undefined && (plan.effort === 'xhigh' || plan.effort === 'max')) plan.effort = 'high';
    return plan;
  }
  if (!isOn) return verbosityPlan;
  if (quirks.thinking === 'none') {
    encoding.addReport('dropped', 'reasoning', 'the model has no reasoning');
    return verbosityPlan;
  }
  const display = displayOf(request, quirks);
  if (quirks.thinking === 'adaptive') {
    const plan: ThinkingPlan = { thinking: { type: 'adaptive', ...display } };
    if (effort !== undefined) plan.effort = fitEffort(effort, 'reasoning.effort', quirks, encoding);
    else if (budget !== undefined) {
      plan.effort = fitEffort(effortOf(budget / maxTokens), 'reasoning.max_tokens', quirks, encoding);
      encoding.addReport('changed', 'reasoning.max_tokens', `the model accepts no budget: effort ${plan.effort}`);
    }
    return plan.effort === undefined ? { ...verbosityPlan, ...plan } : plan;
  }
  const budgetTokens = planBudget(budget, effort, maxTokens, encoding);
  if (budgetTokens === undefined) return verbosityPlan;
  return { ...verbosityPlan, thinking: { type: 'enabled', budget_tokens: budgetTokens, ...display } };
}

/** A client of the Messages API without a thinking field requests none: its effort is the work's, not the thinking's. */
function effortWithoutThinking(request: ChatRequest): ChatRequest {
  const { reasoning, ext } = request;
  if (ext?.wire !== WIRE || ext.rest['thinking'] != null || reasoning?.effort == null) return request;
  if (reasoning.enabled === true || reasoning.effort === 'none') return request;
  const { effort, ...others } = reasoning;
  return { ...request, reasoning: others, verbosity: effort };
}

function turnOff(quirks: Quirks, encoding: Encoding): ThinkingPlan {
  if (quirks.thinking_default === 'always') {
    encoding.addReport('clamped', 'reasoning', 'the model always reasons: the lowest effort was used');
    return { effort: 'low' };
  }
  return quirks.thinking_default === 'on' ? { thinking: { type: 'disabled' } } : {};
}

function displayOf(request: ChatRequest, quirks: Quirks): { display?: WireDisplay } {
  const isExcluded = request.reasoning?.exclude === true || request.include_reasoning === false;
  if (quirks.thinking_hidden === true) return { display: isExcluded ? 'omitted' : 'summarized' };
  return isExcluded && quirks.thinking === 'adaptive' ? { display: 'omitted' } : {};
}

/** At least 1,024 and below `max_tokens`; undefined if that is not possible. */
function planBudget(
  requested: number | undefined,
  effort: ReasoningEffort | undefined,
  maxTokens: number,
  encoding: Encoding,
): number | undefined {
  const { thinking_budget_tokens_min: min, thinking_budget_tokens_max: max } = limits;
  if (maxTokens <= min) {
    encoding.addReport('dropped', 'reasoning', `thinking needs an output bound above ${min} tokens`);
    return undefined;
  }
  const ratio = RATIOS[effort === undefined || effort === 'none' ? 'medium' : effort];
  const target = requested ?? Math.floor(maxTokens * ratio);
  // A budget without room for an answer is an error of the client: it becomes four fifths of the bound, as for high effort.
  const bounded = target < maxTokens ? target : Math.floor(maxTokens * RATIOS.high);
  const budget = Math.max(Math.min(bounded, max), min);
  if (requested !== undefined && budget !== requested) {
    encoding.addReport('clamped', 'reasoning.max_tokens', `${budget}: at least ${min} and below max_tokens`);
  }
  return budget;
}

/** The effort whose share of the output bound a budget reaches. */
export function effortOf(ratio: number): ReasoningEffort {
  if (ratio >= RATIOS.xhigh) return 'xhigh';
  if (ratio >= RATIOS.high) return 'high';
  return ratio >= RATIOS.medium ? 'medium' : 'low';
}

const RANKS: readonly WireEffort[] = ['low', 'medium', 'high', 'xhigh', 'max'];

/** The highest effort that the model accepts and that is not above the requested one. */
function fitEffort(requested: ReasoningEffort, field: string, quirks: Quirks, encoding: Encoding): WireEffort {
  const known: WireEffort = requested === 'minimal' || requested === 'none' ? 'low' : requested;
  const highest = RANKS.indexOf(quirks.effort_max ?? 'max');
  let rank = Math.min(RANKS.indexOf(known), highest);
  if (RANKS[rank] === 'xhigh' && quirks.no_xhigh === true) rank -= 1;
  const effort = RANKS[rank]!;
  if (effort !== requested) encoding.addReport('clamped', field, `the model's nearest effort is ${effort}`);
  return effort;
}

/** The effort of `verbosity`, the only field for it in a request without reasoning. */
function verbosityEffort(verbosity: string | null | undefined, quirks: Quirks, encoding: Encoding): ThinkingPlan {
  if (verbosity == null) return {};
  if (quirks.effort_max === undefined || !RANKS.some((rank) => rank === verbosity)) {
    encoding.addReport('dropped', 'verbosity', 'the model does not support this effort');
    return {};
  }
  return { effort: fitEffort(verbosity as WireEffort, 'verbosity', quirks, encoding) };
}
