import { append } from '../../schemas/append.ts';
import type { Annotation, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../json-shape.ts';
import { countCodePoints } from '../slot.ts';

/** How far from its told place a segment is looked for: the offsets of some answers run off by a few bytes. */
const DRIFT_CHARS = 200;

/**
 * What an answer rests on, as annotations: one for each support and page of the web that it names. The wire counts bytes
 * of UTF-8, an annotation code points (https://ai.google.dev/api/generate-content#Segment).
 */
export function annotationsOf(candidate: JsonObject, text: string): Annotation[] {
  const places = createPlaces(text);
  const grounding = asObject(candidate['groundingMetadata']) ?? {};
  const chunks = asArray(grounding['groundingChunks']);
  const annotations: Annotation[] = [];
  for (const value of asArray(grounding['groundingSupports'])) {
    const support = asObject(value) ?? {};
    const range = places.find(asObject(support['segment']) ?? {});
    for (const index of asArray(support['groundingChunkIndices'])) {
      const web = typeof index === 'number' ? asObject(asObject(chunks[index])?.['web']) : undefined;
      if (web !== undefined) append(annotations, annotate(asText(web['uri']), web['title'], range, support));
    }
  }
  // What the model recited, with its source.
  const recited = asObject(candidate['citationMetadata']) ?? {};
  for (const value of [...asArray(recited['citationSources']), ...asArray(recited['citations'])]) {
    const source = asObject(value) ?? {};
    append(annotations, annotate(asText(source['uri']), source['title'], places.find(source), {}));
  }
  return annotations;
}

/**
 * What several events of one answer tell of its grounds. The last one that names places counts, and with it the pages that
 * its places are numbered by; one that only repeats the searches, or is empty, takes nothing away. Searches are of all.
 */
export function mergeGrounding(
  former: JsonObject | undefined,
  told: JsonObject | undefined,
): { groundingMetadata?: JsonObject } {
  if (told === undefined) return {};
  if (former === undefined) return { groundingMetadata: told };
  const next = remainder(told, []);
  const hasPlaces = asArray(former['groundingSupports']).length > 0;
  if (hasPlaces && next['groundingSupports'] === undefined) delete next['groundingChunks'];
  const queries = [...asArray(former['webSearchQueries']), ...asArray(next['webSearchQueries'])];
  return {
    groundingMetadata: {
      ...former,
      ...next,
      ...(queries.length === 0 ? {} : { webSearchQueries: [...new Set(queries)] }),
    },
  };
}

type Range = Pick<UrlCitation['url_citation'], 'start_index' | 'end_index'>;

function annotate(url: string, title: JsonValue | undefined, range: Range, support: JsonObject): Annotation[] {
  if (!/^https?:\/\//i.test(url)) return [];
  const url_citation: UrlCitation['url_citation'] = { url, ...range };
  if (typeof title === 'string') url_citation.title = title;
  const content = asObject(support['segment'])?.['text'];
  if (typeof content === 'string') url_citation.content = content;
  return [{ type: 'url_citation', url_citation }];
}

/** Finds segments of a text. */
function createPlaces(text: string) {
  let bytes: Buffer | undefined;
  const pointsAt = (unit: number): number => countCodePoints(text.slice(0, unit));

  function find(segment: JsonObject): Range {
    const start = typeof segment['startIndex'] === 'number' ? segment['startIndex'] : 0;
    const end = segment['endIndex'];
    const told = segment['text'];
    if (typeof end !== 'number' || end <= start) return { start_index: 0, end_index: 0 };
    bytes ??= Buffer.from(text);
    const slice = bytes.subarray(start, end).toString();
    const isWhole = end <= bytes.length && !slice.includes('\uFFFD');
    if (isWhole && (typeof told !== 'string' || slice === told)) {
      const start_index = countCodePoints(bytes.subarray(0, start).toString());
      return { start_index, end_index: start_index + countCodePoints(slice) };
    }
    return typeof told === 'string'
      ? nearest(told, bytes.subarray(0, start).toString().length)
      : { start_index: 0, end_index: 0 };
  }

  function nearest(told: string, around: number): Range {
    const from = Math.max(0, around - DRIFT_CHARS);
    const found = told === '' ? -1 : text.indexOf(told, from);
    if (found === -1 || found > around + DRIFT_CHARS) return { start_index: 0, end_index: 0 };
    const start_index = pointsAt(found);
    return { start_index, end_index: start_index + countCodePoints(told) };
  }

  return { find };
}

/** The searches that were made: each is billed from Gemini 3 on, before that the grounded answer is (https://ai.google.dev/gemini-api/docs/pricing). */
export function searchesOf(candidate: JsonObject, generation: number | undefined): number {
  const queries = asArray(asObject(candidate['groundingMetadata'])?.['webSearchQueries']);
  const asked = new Set(queries.filter((query) => typeof query === 'string' && query !== '')).size;
  return generation !== undefined && generation >= 3 ? asked : Math.min(asked, 1);
}
