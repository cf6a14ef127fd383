import { limits } from '../../limits.ts';
import type { ChatRequest, ReasoningEffort } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { effortOf, planThinking } from '../anthropic-messages/thinking.ts';
import { NO_FIELD } from '../shared/reports.ts';
import type { Encoding } from './encoding.ts';

/** The reasoning settings: fields of the model, and for Claude the effort, which is a field of the wire. */
export interface ReasoningPlan {
  fields: JsonObject;
  effort?: string;
  /** Whether Claude thinks manually, which allows no forced call; any thinking allows no prefill. */
  isManual: boolean;
  isThinking: boolean;
  /** The output bound to be sent: the requested one, or the one that a thinking budget needs. */
  max_tokens: number | undefined;
}

/** Plans the reasoning of one request. `maxTokens` is the output bound to be sent, `most` the model's own. */
export function planReasoning(
  request: ChatRequest,
  maxTokens: number | undefined,
  modelMax: number | undefined,
  encoding: Encoding,
): ReasoningPlan {
  const { family, addReport } = encoding;
  const bound = maxTokens ?? modelMax ?? limits.output_tokens_default;
  if (family === 'claude') return planClaude(request, maxTokens, bound, encoding);
  if (request.verbosity != null) addReport('dropped', 'verbosity', NO_FIELD);
  const none: ReasoningPlan = { fields: {}, isManual: false, isThinking: false, max_tokens: maxTokens };
  const effort = requestedEffort(request, bound);
  if (effort === undefined) return none;
  switch (family) {
    case 'gpt-oss':
      return { ...none, fields: { reasoning_effort: threeLevels(effort, encoding) } };
    case 'openai':
      return { ...none, fields: { reasoning: { effort } } };
    case 'qwen':
    case 'deepseek':
      // DeepSeek R1 always thinks and refuses the field, and so do Qwen models that do not think.
      if (effort === 'none') return none;
      if (thinksAlways(encoding)) break;
      return { ...none, fields: { reasoning_config: threeLevels(effort, encoding) } };
    case 'nova-2':
      return effort === 'none' ? none : { ...none, ...planNova(effort, maxTokens, encoding) };
    default:
      break;
  }
  if (effort !== 'none') addReport('dropped', 'reasoning', 'the model has no reasoning setting');
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
    // A budget must be below a bound that both sides know.
    max_tokens: isManual ? bound : maxTokens,
  };
}

/** The highest effort allows neither an output bound nor sampling (https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html). */
function planNova(
  effort: ReasoningEffort,
  maxTokens: number | undefined,
  encoding: Encoding,
): Pick<ReasoningPlan, 'fields' | 'isThinking'> {
  let level = threeLevels(effort, encoding);
  if (level === 'high' && maxTokens !== undefined) {
    level = 'medium';
    encoding.addReport('clamped', 'reasoning', 'the model accepts no output bound with high effort: medium');
  }
  return {
    fields: { reasoningConfig: { type: 'enabled', maxReasoningEffort: level } },
    isThinking: level === 'high',
  };
}

/** The requested effort; a budget counts as the effort of its share of the bound. Undefined if not set. */
function requestedEffort(request: ChatRequest, bound: number): ReasoningEffort | undefined {
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

function threeLevels(effort: ReasoningEffort, { addReport }: Encoding): 'low' | 'medium' | 'high' {
  const level = LEVELS[effort];
  if (level !== effort) addReport('clamped', 'reasoning.effort', `the model's nearest effort is ${level}`);
  return level;
}
