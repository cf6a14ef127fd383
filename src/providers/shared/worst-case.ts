/** The worst case that wires share (`WorstCase` of `dialect.ts`). */
import { limits } from '../../limits.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { DialectEndpoint, ModelName, UnseenMedia, WorstCase } from '../dialect.ts';
import { noSpendBounds, toolUses, typedTools } from './provider-tools.ts';

/** A file on Google's platform that may be audio only: all except YouTube videos. */
const MAY_BE_SOUND = /"fileUri":"(?!https:\/\/(?:(?:www\.|m\.)?youtube\.com|youtu\.be)\/)/i;

/** `WorstCase.unseenMedia` of a wire whose videos and addresses match `pattern`. Quotes inside texts are escaped in JSON. */
export function unseenMediaBy(pattern: RegExp): UnseenMedia {
  return { pattern, sound: MAY_BE_SOUND };
}

const IMAGE_TYPES: ReadonlySet<unknown> = new Set(['image', 'input_image', 'computer_screenshot']);

/** The number of images that an object points at: uploaded ones and screenshots. Data inside the object counts as its text. */
function picturesIn(block: JsonObject): number {
  let pictures = 0;
  const left: JsonValue[] = [block];
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value) && IMAGE_TYPES.has(value['type'])) pictures += 1;
    for (const inner of Object.values(value)) if (inner !== undefined) left.push(inner);
  }
  return pictures;
}

/** The marks of a payload for the provider's prompt cache: any mark, and the duration of an hour. */
export interface CacheMarks {
  is_any: boolean;
  is_hour: boolean;
}

/** The cache marks in a payload or a piece of it, for all wires. */
export function cacheMarksOf(text: string): CacheMarks {
  return { is_any: text.includes('"cache_control"') || text.includes('"cachePoint"'), is_hour: text.includes('"1h"') };
}

/**
 * Alibaba's output bound excludes thinking (https://help.aliyun.com/zh/model-studio/deep-thinking), and so does that of Perplexity's
 * research models, whose thinking is billed separately (https://docs.perplexity.ai/getting-started/pricing).
 */
function tokensBesideBound(
  body: JsonObject,
  {
    upstream_model: upstreamModel,
    quirks,
    max_completion_tokens: maxCompletionTokens,
  }: ModelName & Pick<DialectEndpoint, 'max_completion_tokens'>,
): number {
  const predicted = (body['prediction'] as { content?: unknown } | undefined)?.content;
  // Rejected tokens of a prediction are billed as output (https://platform.openai.com/docs/guides/predicted-outputs).
  const rejected = predicted === undefined ? 0 : Buffer.byteLength(JSON.stringify(predicted));
  if (upstreamModel.includes('sonar-deep-research')) return rejected + limits.thinking_budget_tokens_max;
  if (quirks.reasoning_field !== 'enable_thinking' || body['enable_thinking'] === false) return rejected;
  const budget = body['thinking_budget'];
  return rejected + (typeof budget === 'number' ? budget : (maxCompletionTokens ?? 0));
}

/** Fields that multiply prices by factors that no price list has (https://platform.claude.com/docs/en/about-claude/pricing). */
export const unpricedFields: ReadonlySet<string> = new Set(['speed', 'inference_geo']);

/** The worst case that most wires share. It covers what any server of OpenAI's wire is known to bill. */
export const commonWorstCase: WorstCase = {
  unseenMedia: undefined,
  picturesIn,
  toolUses: (request) => toolUses(request, typedTools),
  billsOneSearch: () => false,
  // A price for cache writes may apply to every prompt.
  unmarkedCacheWrites: true,
  passes: () => 1,
  tokensBesideBound,
  unpricedFields,
  spendBounds: noSpendBounds,
};

/** The least output bound above a thinking budget that the client's options set in the body; 0 if the dialect set it or there is none. */
export function aboveThinking(body: JsonObject, { reasoning, reasoning_effort: reasoningEffort }: ChatRequest): number {
  return reasoning == null && reasoningEffort == null ? aboveBudget(body) : 0;
}

/** The least output bound above the thinking budget in the body, as upstreams require; 0 if there is no budget. */
export function aboveBudget(body: JsonObject): number {
  const { thinking } = body as { thinking?: { budget_tokens?: unknown } };
  return typeof thinking?.budget_tokens === 'number' ? thinking.budget_tokens + 1 : 0;
}
