import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { isObject, numberOf, type WireUsage } from './wire.ts';

/**
 * The disjoint token classes of a `usage` object; undefined if it has no counts. `cachedTokens` is the count of a header.
 *
 * Cached, written, audio and image tokens are parts of `prompt_tokens`, reasoning and audio parts of
 * `completion_tokens` (https://platform.openai.com/docs/api-reference/chat/object). If `total_tokens` is more than both,
 * the gap is reasoning that the provider counts separately (xAI, Google's compatible endpoint). If there are `citation_tokens`
 * (Perplexity's research), they are billed as prompt, and `reasoning_tokens` as output in addition to the other counts
 * (https://docs.perplexity.ai/getting-started/pricing).
 */
export function readUsage(usage: WireUsage, cachedTokens?: number): TokenClasses | undefined {
  let prompt = count(usage['prompt_tokens']);
  let completion = count(usage['completion_tokens']);
  const total = count(usage['total_tokens']);
  if (prompt === undefined && total !== undefined && completion !== undefined) prompt = Math.max(0, total - completion);
  if (completion === undefined && total !== undefined && prompt !== undefined) completion = Math.max(0, total - prompt);
  if (prompt === undefined && completion === undefined) return undefined;
  const cited = count(usage['citation_tokens']);
  const additional =
    cited === undefined ? (total ?? 0) - (prompt ?? 0) - (completion ?? 0) : count(usage['reasoning_tokens']);
  const gap = Math.max(0, additional ?? 0);
  const classes: TokenClasses = {};
  readPrompt(usage, prompt === undefined ? undefined : prompt + (cited ?? 0), cachedTokens, classes);
  readCompletion(usage, completion, gap, classes);
  const searches = count(usage['num_search_queries']);
  if (searches) classes.counts = { web_search: searches };
  return classes;
}

/** Whether all counts are zero: Go servers send such an object on chunks without usage. */
export function isZeroUsage(usage: WireUsage): boolean {
  return !count(usage['total_tokens']) && !count(usage['prompt_tokens']) && !count(usage['completion_tokens']);
}

const NO_DETAILS: WireUsage = {};

function readPrompt(
  usage: WireUsage,
  prompt: number | undefined,
  cachedTokens: number | undefined,
  classes: TokenClasses,
): void {
  // Mistral sometimes sends the singular name.
  const parts = usage['prompt_tokens_details'] ?? usage['prompt_token_details'];
  const details = isObject(parts) ? parts : NO_DETAILS;
  // Providers use several names, one provider even more than one. DeepSeek's cache *miss* is not a write and has no class.
  const read =
    count(details['cached_tokens']) ??
    count(usage['cached_tokens']) ??
    count(usage['num_cached_tokens']) ??
    count(usage['prompt_cache_hit_tokens']) ??
    cachedTokens;
  // The second name is Alibaba's (explicit context cache).
  const written = count(details['cache_write_tokens']) ?? count(details['cache_creation_input_tokens']);
  const rest = { tokens: prompt ?? Number.POSITIVE_INFINITY };
  const audio = count(details['audio_tokens']);
  const image = count(details['image_tokens']);
  if (read !== undefined) classes.in_cache_read = take(rest, read);
  if (written !== undefined) classes.in_cache_write_5m = take(rest, written);
  if (audio !== undefined) classes.in_audio = take(rest, audio);
  if (image !== undefined) classes.in_image = take(rest, image);
  if (prompt !== undefined) classes.in_uncached = rest.tokens;
}

function readCompletion(usage: WireUsage, completion: number | undefined, gap: number, classes: TokenClasses): void {
  const parts = usage['completion_tokens_details'];
  const details = isObject(parts) ? parts : NO_DETAILS;
  const reasoning = count(details['reasoning_tokens']) ?? count(usage['reasoning_tokens']);
  const rest = { tokens: completion ?? Number.POSITIVE_INFINITY };
  // The gap is not part of completion_tokens; only the remaining reasoning is subtracted from them.
  const inside = reasoning === undefined ? 0 : take(rest, Math.max(0, reasoning - gap));
  if (reasoning !== undefined || gap > 0) classes.out_reasoning = inside + gap;
  const audio = count(details['audio_tokens']);
  if (audio !== undefined) classes.out_audio = take(rest, audio);
  const image = count(details['image_tokens']);
  if (image !== undefined) classes.out_image = take(rest, image);
  if (completion !== undefined) classes.out_text = rest.tokens;
}

/** Takes the tokens of one class from the rest of their side: the classes are disjoint. Returns how many there were. */
function take(rest: { tokens: number }, tokens: number): number {
  const taken = Math.min(tokens, rest.tokens);
  rest.tokens -= taken;
  return taken;
}

function count(value: JsonValue | undefined): number | undefined {
  const number = value === undefined ? undefined : numberOf(value);
  return number === undefined ? undefined : Math.floor(number);
}
