/** What wires share of their worst case (`WorstCase` of `dialect.ts`). */
import { limits } from '../../limits.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { DialectEndpoint, ModelName, UnseenMedia, WorstCase } from '../dialect.ts';
import { noSpendBounds, toolUses, typedTools } from './provider-tools.ts';

/** A file of Google's, which may be sound alone: all but films of YouTube. */
const MAY_BE_SOUND = /"fileUri":"(?!https:\/\/(?:(?:www\.|m\.)?youtube\.com|youtu\.be)\/)/i;

/** `WorstCase.unseenMedia` of a wire that writes films and addresses as `pattern` matches. Quotes inside of texts are escaped in JSON. */
export function unseenMediaBy(pattern: RegExp): UnseenMedia {
  return { pattern, sound: MAY_BE_SOUND };
}

const PICTURES: ReadonlySet<unknown> = new Set(['image', 'input_image', 'computer_screenshot']);

/** Pictures that an object points at: uploaded ones, and those of a screen. What the object holds itself counts as its text. */
function picturesIn(block: JsonObject): number {
  let pictures = 0;
  const left: JsonValue[] = [block];
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value) && PICTURES.has(value['type'])) pictures += 1;
    for (const inner of Object.values(value)) if (inner !== undefined) left.push(inner);
  }
  return pictures;
}

/** What a payload has that may mark its prompt for the provider's cache: a mark, and the duration of an hour. */
export interface CacheMarks {
  is_any: boolean;
  is_hour: boolean;
}

/** The marks in a payload, or in a piece of it, in the words of every wire. */
export function cacheMarksOf(text: string): CacheMarks {
  return { is_any: text.includes('"cache_control"') || text.includes('"cachePoint"'), is_hour: text.includes('"1h"') };
}

/**
 * Alibaba's output bound is of the answer alone (https://help.aliyun.com/zh/model-studio/deep-thinking), and so is that of Perplexity's
 * research, whose thoughts are billed apart (https://docs.perplexity.ai/getting-started/pricing).
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

/** Multiply prices by factors that no price list has (https://platform.claude.com/docs/en/about-claude/pricing). */
export const unpricedFields: ReadonlySet<string> = new Set(['speed', 'inference_geo']);

/** What most wires have in common: servers of OpenAI's wire are many, so that it holds for whatever any of them is known to bill. */
export const commonWorstCase: WorstCase = {
  unseenMedia: undefined,
  picturesIn,
  toolUses: (request) => toolUses(request, typedTools),
  billsOneSearch: () => false,
  // A price for cache writes may hold for every prompt.
  unmarkedCacheWrites: true,
  passes: () => 1,
  tokensBesideBound,
  unpricedFields,
  spendBounds: noSpendBounds,
};

/** Above the thinking budget that the client's options wrote into the body; 0 if the dialect wrote it, or none is there. */
export function aboveThinking(body: JsonObject, { reasoning, reasoning_effort: reasoningEffort }: ChatRequest): number {
  return reasoning == null && reasoningEffort == null ? aboveBudget(body) : 0;
}

/** Above the thinking budget in the body, as upstreams demand; 0 if it has none. */
export function aboveBudget(body: JsonObject): number {
  const { thinking } = body as { thinking?: { budget_tokens?: unknown } };
  return typeof thinking?.budget_tokens === 'number' ? thinking.budget_tokens + 1 : 0;
}
