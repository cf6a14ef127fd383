import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asCount, asObject } from '../shared/json-shape.ts';

/** The counts of one `usageMetadata`; undefined if not reported. */
interface Counts {
  prompt: number | undefined;
  tool_prompt: number | undefined;
  cached: number | undefined;
  candidates: number | undefined;
  thoughts: number | undefined;
  modalities: Record<'promptTokensDetails' | 'cacheTokensDetails' | 'candidatesTokensDetails', Modalities>;
}
interface Modalities {
  audio: number;
  image: number;
}

const NONE: Counts = {
  prompt: undefined,
  tool_prompt: undefined,
  cached: undefined,
  candidates: undefined,
  thoughts: undefined,
  modalities: {
    promptTokensDetails: { audio: 0, image: 0 },
    cacheTokensDetails: { audio: 0, image: 0 },
    candidatesTokensDetails: { audio: 0, image: 0 },
  },
};

/** Tracks the usage of one answer: each event reports all of it, and it restarts with every step of Google's own tools. */
export interface UsageReader {
  take(usage: JsonObject): void;
  /** The classes so far: the sum of the steps, or, at the end of the answer, the last event's totals. */
  classes(isFinal: boolean): TokenClasses | undefined;
}

export function createUsageReader(): UsageReader {
  let last: Counts | undefined;
  let earlier: Counts = NONE;
  return {
    take(usage) {
      const counts = readCounts(usage);
      if (counts === undefined) return;
      if (last !== undefined && outOf(counts) < outOf(last)) earlier = sum(earlier, last);
      last = counts;
    },
    classes(isFinal) {
      if (last === undefined) return undefined;
      return toClasses(isFinal ? last : sum(earlier, last));
    },
  };
}

/** The classes with the number of searches; undefined without classes. */
export function withSearches(classes: TokenClasses | undefined, searches: number): TokenClasses | undefined {
  return classes === undefined || searches === 0 ? classes : { ...classes, counts: { web_search: searches } };
}

function outOf({ candidates = 0, thoughts = 0 }: Counts): number {
  return candidates + thoughts;
}

/**
 * https://ai.google.dev/api/generate-content#UsageMetadata. Zeros are omitted from the JSON (protocol buffers), and the total is the
 * sum of the four others: a missing count is the rest of the total, or undefined without a total.
 */
function readCounts(usage: JsonObject): Counts | undefined {
  const total = asCount(usage['totalTokenCount']);
  let {
    prompt,
    tool_prompt: toolPrompt,
    candidates,
    thoughts,
  } = {
    prompt: asCount(usage['promptTokenCount']),
    tool_prompt: asCount(usage['toolUsePromptTokenCount']),
    candidates: asCount(usage['candidatesTokenCount']),
    thoughts: asCount(usage['thoughtsTokenCount']),
  };
  if (prompt === undefined && candidates === undefined && thoughts === undefined && total === undefined)
    return undefined;
  if (total !== undefined) {
    const rest = Math.max(0, total - (prompt ?? 0) - (toolPrompt ?? 0) - (candidates ?? 0) - (thoughts ?? 0));
    if (prompt === undefined) prompt = rest;
    else candidates ??= rest;
    candidates ??= 0;
    toolPrompt ??= 0;
    thoughts ??= 0;
  }
  const cached = asCount(usage['cachedContentTokenCount']) ?? (prompt === undefined ? undefined : 0);
  const modalities = {
    promptTokensDetails: addModalities(usage['promptTokensDetails'], usage['toolUsePromptTokensDetails']),
    cacheTokensDetails: addModalities(usage['cacheTokensDetails']),
    candidatesTokensDetails: addModalities(usage['candidatesTokensDetails']),
  };
  return { prompt, tool_prompt: toolPrompt, cached, candidates, thoughts, modalities };
}

/** Video and documents are priced as text. */
function addModalities(...lists: (JsonValue | undefined)[]): Modalities {
  const modalities: Modalities = { audio: 0, image: 0 };
  for (const value of lists.flatMap(asArray)) {
    const { modality, tokenCount } = asObject(value) ?? {};
    if (modality === 'AUDIO') modalities.audio += asCount(tokenCount) ?? 0;
    if (modality === 'IMAGE') modalities.image += asCount(tokenCount) ?? 0;
  }
  return modalities;
}

/** The disjoint classes: the prompt includes the cached part; thoughts are additional to the candidates (translation rule 3.1). */
function toClasses({
  prompt,
  tool_prompt: toolPrompt,
  cached,
  candidates,
  thoughts,
  modalities,
}: Counts): TokenClasses {
  const classes: TokenClasses = {};
  if (prompt !== undefined) {
    const { promptTokensDetails: all, cacheTokensDetails: cachedModalities } = modalities;
    let rest = prompt + (toolPrompt ?? 0);
    const take = (tokens: number): number => {
      const taken = Math.min(Math.max(0, tokens), rest);
      rest -= taken;
      return taken;
    };
    classes.in_cache_read = take(cached ?? 0);
    // A modality has a class only if the provider reports it.
    if (all.audio > 0) classes.in_audio = take(all.audio - cachedModalities.audio);
    if (all.image > 0) classes.in_image = take(all.image - cachedModalities.image);
    classes.in_uncached = rest;
  }
  if (candidates !== undefined) {
    const { audio, image } = modalities.candidatesTokensDetails;
    const outAudio = Math.min(audio, candidates);
    const outImage = Math.min(image, candidates - outAudio);
    if (outAudio > 0) classes.out_audio = outAudio;
    if (outImage > 0) classes.out_image = outImage;
    classes.out_text = candidates - outAudio - outImage;
  }
  if (thoughts !== undefined) classes.out_reasoning = thoughts;
  return classes;
}

function sum(one: Counts, other: Counts): Counts {
  const add = (a: number | undefined, b: number | undefined) =>
    a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
  const join = (name: keyof Counts['modalities']): Modalities => ({
    audio: one.modalities[name].audio + other.modalities[name].audio,
    image: one.modalities[name].image + other.modalities[name].image,
  });
  return {
    prompt: add(one.prompt, other.prompt),
    tool_prompt: add(one.tool_prompt, other.tool_prompt),
    cached: add(one.cached, other.cached),
    candidates: add(one.candidates, other.candidates),
    thoughts: add(one.thoughts, other.thoughts),
    modalities: {
      promptTokensDetails: join('promptTokensDetails'),
      cacheTokensDetails: join('cacheTokensDetails'),
      candidatesTokensDetails: join('candidatesTokensDetails'),
    },
  };
}
