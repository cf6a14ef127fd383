import type { TokenClasses } from './inner.ts';

/** The public `usage` object without its costs (specification, "Usage object"). */
export interface PublicUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: {
    cached_tokens: number;
    cache_write_tokens: number;
    audio_tokens: number;
    video_tokens: number;
  };
  completion_tokens_details: { reasoning_tokens: number; audio_tokens: number; image_tokens: number };
  server_tool_use?: { web_search_requests: number };
}

/** The sum of all classes of input tokens. */
export function inputTokens(classes: TokenClasses): number {
  return (
    (classes.in_uncached ?? 0) +
    (classes.in_cache_read ?? 0) +
    (classes.in_cache_write_5m ?? 0) +
    (classes.in_cache_write_1h ?? 0) +
    (classes.in_audio ?? 0) +
    (classes.in_image ?? 0)
  );
}

/** The sum of all classes of output tokens. */
export function outputTokens(classes: TokenClasses): number {
  return (classes.out_text ?? 0) + (classes.out_reasoning ?? 0) + (classes.out_audio ?? 0) + (classes.out_image ?? 0);
}

type Count = Exclude<keyof TokenClasses, 'counts' | 'extra' | 'estimated'>;

/** The sum of the usage of several attempts. */
export function sumClasses(all: readonly TokenClasses[]): TokenClasses {
  const sum: TokenClasses = {};
  for (const { counts, extra, estimated, ...classes } of all) {
    for (const [name, count] of Object.entries(classes) as [Count, number][]) sum[name] = (sum[name] ?? 0) + count;
    for (const [name, count] of Object.entries(counts ?? {}) as ['web_search', number][]) {
      sum.counts = { ...sum.counts, [name]: (sum.counts?.[name] ?? 0) + count };
    }
    if (extra !== undefined) sum.extra = [...(sum.extra ?? []), ...extra];
    if (estimated) sum.estimated = true;
  }
  return sum;
}

/** The public token counts, derived from the disjoint classes only here. */
export function publicUsage(classes: TokenClasses): PublicUsage {
  const promptTokens = inputTokens(classes);
  const completionTokens = outputTokens(classes);
  const searches = classes.counts?.web_search;
  const usage: PublicUsage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: {
      cached_tokens: classes.in_cache_read ?? 0,
      cache_write_tokens: (classes.in_cache_write_5m ?? 0) + (classes.in_cache_write_1h ?? 0),
      audio_tokens: classes.in_audio ?? 0,
      video_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: classes.out_reasoning ?? 0,
      audio_tokens: classes.out_audio ?? 0,
      image_tokens: classes.out_image ?? 0,
    },
  };
  if (searches !== undefined) usage.server_tool_use = { web_search_requests: searches };
  return usage;
}
