import { append } from '../../schemas/append.ts';
import type { Annotation, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { countCodePoints } from '../../schemas/text.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';

/** The range around its stated position in which a segment is searched: the offsets of some answers are off by a few bytes. */
const DRIFT_CHARS = 200;

/**
 * The sources of an answer as annotations: one for each support and web page that it names. The wire counts bytes of UTF-8, an
 * annotation code points (https://ai.google.dev/api/generate-content#Segment).
 */
export function annotationsOf(candidate: JsonObject, text: string): Annotation[] {
  const segments = createSegments(text);
  const grounding = asObject(candidate['groundingMetadata']) ?? {};
  const chunks = asArray(grounding['groundingChunks']);
  const annotations: Annotation[] = [];
  for (const value of asArray(grounding['groundingSupports'])) {
    const support = asObject(value) ?? {};
    const range = segments.find(asObject(support['segment']) ?? {});
    for (const index of asArray(support['groundingChunkIndices'])) {
      const web = typeof index === 'number' ? asObject(asObject(chunks[index])?.['web']) : undefined;
      if (web !== undefined) append(annotations, annotate(asText(web['uri']), web['title'], range, support));
    }
  }
  // Recited text, with its source.
  const recited = asObject(candidate['citationMetadata']) ?? {};
  for (const value of [...asArray(recited['citationSources']), ...asArray(recited['citations'])]) {
    const source = asObject(value) ?? {};
    append(annotations, annotate(asText(source['uri']), source['title'], segments.find(source), {}));
  }
  return annotations;
}

/** Collects the grounding metadata of an answer's events. */
export interface Grounding {
  take(metadata: JsonObject | undefined): void;
  /** Undefined if there was none. */
  metadata(): JsonObject | undefined;
  /** The number of billed searches: each from Gemini 3 on, at most one per grounded answer before (https://ai.google.dev/gemini-api/docs/pricing). */
  searches(generation: number | undefined): number;
}

/**
 * The collector of one answer. The last event with supports counts, together with its list of chunks; later events that only repeat
 * searches, or are empty, remove nothing. Searches of all events are counted.
 */
export function createGrounding(): Grounding {
  const queries = new Set<JsonValue>();
  let searchCount = 0;
  let events = 0;
  let collected: JsonObject = {};

  return {
    take(metadata) {
      if (metadata === undefined) return;
      events += 1;
      for (const query of asArray(metadata['webSearchQueries'])) {
        if (queries.has(query)) continue;
        queries.add(query);
        if (typeof query === 'string' && query !== '') searchCount += 1;
      }
      if (events === 1) {
        collected = { ...metadata };
        return;
      }
      const next = remainder(metadata, []);
      const hasPlaces = asArray(collected['groundingSupports']).length > 0;
      if (hasPlaces && next['groundingSupports'] === undefined) delete next['groundingChunks'];
      Object.assign(collected, next);
    },
    metadata() {
      if (events === 0) return undefined;
      return events === 1 || queries.size === 0 ? collected : { ...collected, webSearchQueries: [...queries] };
    },
    searches: (generation) => (generation !== undefined && generation >= 3 ? searchCount : Math.min(searchCount, 1)),
  };
}

type Range = Pick<UrlCitation['url_citation'], 'start_index' | 'end_index'>;

function annotate(url: string, title: JsonValue | undefined, range: Range, support: JsonObject): Annotation[] {
  if (!/^https?:\/\//i.test(url)) return [];
  const urlCitation: UrlCitation['url_citation'] = { url, ...range };
  if (typeof title === 'string') urlCitation.title = title;
  const content = asObject(support['segment'])?.['text'];
  if (typeof content === 'string') urlCitation.content = content;
  return [{ type: 'url_citation', url_citation: urlCitation }];
}

/** The distance between marks in a text, in UTF-16 units. */
const MARK_UNITS = 64;
/** A segment that is not at its stated position is searched by this much of its beginning, at most at this many positions. */
const HEAD_CHARS = 64;
const TRIES_MAX = 4;

/** A position in a text in units, bytes and code points. */
interface Mark {
  unit: number;
  byte: number;
  point: number;
}

/** Marks at regular distances in a text: positions between two marks are counted on demand. */
function marksOf(text: string): Mark[] {
  const marks: Mark[] = [{ unit: 0, byte: 0, point: 0 }];
  for (let unit = 0; unit < text.length; ) {
    let end = Math.min(unit + MARK_UNITS, text.length);
    // Surrogate pairs are not split.
    if (end < text.length && isLow(text.charCodeAt(end))) end += 1;
    const { byte, point } = marks.at(-1)!;
    const piece = text.slice(unit, end);
    marks.push({ unit: end, byte: byte + Buffer.byteLength(piece), point: point + countCodePoints(piece) });
    unit = end;
  }
  return marks;
}

const isLow = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff;

/** The last mark at or before an offset. */
function markBefore(marks: readonly Mark[], by: 'unit' | 'byte', offset: number): Mark {
  let [low, high] = [0, marks.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (marks[middle]![by] <= offset) low = middle + 1;
    else high = middle;
  }
  return marks[Math.max(0, low - 1)]!;
}

/** A finder of segments in a text. */
function createSegments(text: string) {
  let bytes: Buffer | undefined;
  let marks: Mark[] | undefined;
  /** The units and code points of the text before a byte, which may split a character. */
  const beforeByte = (all: Buffer, byte: number): { unit: number; point: number } => {
    marks ??= marksOf(text);
    const mark = markBefore(marks, 'byte', byte);
    const piece = all.subarray(mark.byte, byte).toString();
    return { unit: mark.unit + piece.length, point: mark.point + countCodePoints(piece) };
  };
  const pointsAt = (unit: number): number => {
    marks ??= marksOf(text);
    const mark = markBefore(marks, 'unit', unit);
    return mark.point + countCodePoints(text.slice(mark.unit, unit));
  };

  function find(segment: JsonObject): Range {
    const start = typeof segment['startIndex'] === 'number' ? segment['startIndex'] : 0;
    const end = segment['endIndex'];
    const segmentText = segment['text'];
    if (typeof end !== 'number' || end <= start) return { start_index: 0, end_index: 0 };
    bytes ??= Buffer.from(text);
    if (
      isBorder(bytes, start) &&
      isBorder(bytes, end) &&
      (typeof segmentText !== 'string' || isAt(bytes, start, end, segmentText))
    ) {
      return { start_index: beforeByte(bytes, start).point, end_index: beforeByte(bytes, end).point };
    }
    return typeof segmentText === 'string'
      ? nearest(segmentText, beforeByte(bytes, Math.min(Math.max(0, Math.trunc(start)), bytes.length)).unit)
      : { start_index: 0, end_index: 0 };
  }

  function nearest(segmentText: string, around: number): Range {
    const from = Math.max(0, around - DRIFT_CHARS);
    const head = segmentText.slice(0, HEAD_CHARS);
    const window = text.slice(from, around + DRIFT_CHARS + head.length);
    let at = segmentText === '' ? -1 : window.indexOf(head);
    for (let tries = 0; at !== -1 && tries < TRIES_MAX; tries += 1) {
      if (text.startsWith(segmentText, from + at)) {
        const startIndex = pointsAt(from + at);
        return { start_index: startIndex, end_index: startIndex + countCodePoints(segmentText) };
      }
      at = window.indexOf(head, at + 1);
    }
    return { start_index: 0, end_index: 0 };
  }

  return { find };
}

/** Whether a byte offset is between two characters in UTF-8. */
function isBorder(bytes: Buffer, at: number): boolean {
  if (!Number.isInteger(at) || at < 0 || at > bytes.length) return false;
  return at === bytes.length || (bytes[at]! & 0xc0) !== 0x80;
}

/** Whether a text is at this range, without reading more bytes than it can have. */
function isAt(bytes: Buffer, start: number, end: number, text: string): boolean {
  return end - start <= 3 * text.length && bytes.toString('utf8', start, end) === text;
}
