import { limits } from '../../limits.ts';
import type { ChatRequest, ReasoningEffort } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { effortOf, planThinking } from '../anthropic-messages/thinking.ts';
import { NO_FIELD } from '../shared/reports.ts';
import type { Encoding } from './encoding.ts';

/** How the model is asked to think: by fields of its own, and for Claude by the effort that the wire has a name for. */
export interface ReasoningPlan {
  fields: JsonObject;
  effort?: string;
  /** Claude's manual thinking, which takes no forced call, or any thinking, which takes no prefill. */
  isManual: boolean;
  isThinking: boolean;
  /** The output bound that is sent: what was asked for, or what a thinking budget needs beside it. */
  max_tokens: number | undefined;
}

/** Plans the reasoning of one request. `max_tokens` is the output bound that is sent, `most` what the model makes at most. */
export function planReasoning(
  request: ChatRequest,
  maxTokens: number | undefined,
  most: number | undefined,
  encoding: Encoding,
): ReasoningPlan {
  const { family, report } = encoding;
  const bound = maxTokens ?? most ?? limits.output_tokens_default;
  if (family === 'claude') return planClaude(request, maxTokens, bound, encoding);
  if (request.verbosity != null) report('dropped', 'verbosity', NO_FIELD);
  const none: ReasoningPlan = { fields: {}, isManual: false, isThinking: false, max_tokens: maxTokens };
  const wish = effortWish(request, bound);
  if (wish === undefined) return none;
  switch (family) {
    case 'gpt-oss':
      return { ...none, fields: { reasoning_effort: threeLevels(wish, encoding) } };
    case 'openai':
      return { ...none, fields: { reasoning: { effort: wish } } };
    case 'qwen':
    case 'deepseek':
      // DeepSeek R1 always thinks and refuses the field, as Qwen models do that do not think.
      if (wish === 'none') return none;
      if (thinksAlways(encoding)) break;
      return { ...none, fields: { reasoning_config: threeLevels(wish, encoding) } };
    case 'nova-2':
      return wish === 'none' ? none : { ...none, ...planNova(wish, maxTokens, encoding) };
    default:
      break;
  }
  if (wish !== 'none') report('dropped', 'reasoning', 'the model cannot be told how to think');
  return none;
}

function thinksAlways({ upstream_model: upstreamModel }: Encoding): boolean {
  return /r1/.test(upstreamModel);
}

function planClaude(
  request: ChatRequest,
  maxTokens: number | undefined,
  bound: number,
  encoding: Encoding,
): ReasoningPlan {
  const { thinking, effort } = planThinking(request, bound, encoding);
  const isManual = thinking?.type === 'enabled';
  return {
    fields: thinking === undefined ? {} : { thinking },
    ...(effort === undefined ? {} : { effort }),
    isManual,
    isThinking: isManual || thinking?.type === 'adaptive',
    // A budget must lie below a bound that both sides know.
    max_tokens: isManual ? bound : maxTokens,
  };
}

/** The highest effort allows neither an output bound nor sampling (https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html). */
function planNova(
  wish: ReasoningEffort,
  maxTokens: number | undefined,
  encoding: Encoding,
): Pick<ReasoningPlan, 'fields' | 'isThinking'> {
  let level = threeLevels(wish, encoding);
  if (level === 'high' && maxTokens !== undefined) {
    level = 'medium';
    encoding.report('clamped', 'reasoning', 'the model takes no output bound with high effort: medium');
  }
  return {
    fields: { reasoningConfig: { type: 'enabled', maxReasoningEffort: level } },
    isThinking: level === 'high',
  };
}

/** The effort that is asked for, a budget as the effort that its share of the bound stands for; undefined: nothing is said. */
function effortWish(request: ChatRequest, bound: number): ReasoningEffort | undefined {
  const reasoning = request.reasoning ?? {};
  const effort = reasoning.effort ?? request.reasoning_effort ?? undefined;
  const budget = reasoning.max_tokens ?? undefined;
  if (effort === 'none' || reasoning.enabled === false || budget === 0) return 'none';
  if (effort !== undefined) return effort;
  if (budget !== undefined) return effortOf(budget / bound);
  return reasoning.enabled === true ? 'medium' : undefined;
}

const LEVELS: Readonly<Record<ReasoningEffort, 'low' | 'medium' | 'high'>> = {
  none: 'low',
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

function threeLevels(wish: ReasoningEffort, { report }: Encoding): 'low' | 'medium' | 'high' {
  const level = LEVELS[wish];
  if (level !== wish) report('clamped', 'reasoning.effort', `the model's nearest effort is ${level}`);
  return level;
}
