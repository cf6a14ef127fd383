import { append } from '../../schemas/append.ts';
import type { Annotation, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { countCodePoints } from '../shared/slot.ts';

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

/** What several events of one answer tell of its grounds, gathered. */
export interface Grounding {
  take(told: JsonObject | undefined): void;
  /** Undefined: nothing was told. */
  metadata(): JsonObject | undefined;
  /** The searches that were made: each is billed from Gemini 3 on, before that the grounded answer is (https://ai.google.dev/gemini-api/docs/pricing). */
  searches(generation: number | undefined): number;
}

/**
 * Gathers the grounds of one answer. The last event that names places counts, and with it the pages that its places are numbered
 * by; one that only repeats the searches, or is empty, takes nothing away. Searches are of all.
 */
export function createGrounding(): Grounding {
  const queries = new Set<JsonValue>();
  let asked = 0;
  let events = 0;
  let gathered: JsonObject = {};

  return {
    take(told) {
      if (told === undefined) return;
      events += 1;
      for (const query of asArray(told['webSearchQueries'])) {
        if (queries.has(query)) continue;
        queries.add(query);
        if (typeof query === 'string' && query !== '') asked += 1;
      }
      if (events === 1) {
        gathered = { ...told };
        return;
      }
      const next = remainder(told, []);
      const hasPlaces = asArray(gathered['groundingSupports']).length > 0;
      if (hasPlaces && next['groundingSupports'] === undefined) delete next['groundingChunks'];
      Object.assign(gathered, next);
    },
    metadata() {
      if (events === 0) return undefined;
      return events === 1 || queries.size === 0 ? gathered : { ...gathered, webSearchQueries: [...queries] };
    },
    searches: (generation) => (generation !== undefined && generation >= 3 ? asked : Math.min(asked, 1)),
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

/** How far apart the places of a text are marked. */
const MARK_UNITS = 64;
/** A segment that is not where it is told to be is looked for by so much of its beginning, and so many such places are tried. */
const HEAD_CHARS = 64;
const TRIES_MAX = 4;

/** Where a text is by its units, its bytes and its code points. */
interface Mark {
  unit: number;
  byte: number;
  point: number;
}

/** The places of a text, marked once: what lies between two marks is counted when it is asked for. */
function marksOf(text: string): Mark[] {
  const marks: Mark[] = [{ unit: 0, byte: 0, point: 0 }];
  for (let unit = 0; unit < text.length; ) {
    let end = Math.min(unit + MARK_UNITS, text.length);
    // A pair stays together.
    if (end < text.length && isLow(text.charCodeAt(end))) end += 1;
    const { byte, point } = marks.at(-1)!;
    const piece = text.slice(unit, end);
    marks.push({ unit: end, byte: byte + Buffer.byteLength(piece), point: point + countCodePoints(piece) });
    unit = end;
  }
  return marks;
}

const isLow = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff;

/** The last mark that is not behind an offset. */
function markBefore(marks: readonly Mark[], by: 'unit' | 'byte', offset: number): Mark {
  let [low, high] = [0, marks.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (marks[middle]![by] <= offset) low = middle + 1;
    else high = middle;
  }
  return marks[Math.max(0, low - 1)]!;
}

/** Finds segments of a text. */
function createPlaces(text: string) {
  let bytes: Buffer | undefined;
  let marks: Mark[] | undefined;
  /** What a text before a byte has, which may be cut inside a character. */
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
    const told = segment['text'];
    if (typeof end !== 'number' || end <= start) return { start_index: 0, end_index: 0 };
    bytes ??= Buffer.from(text);
    if (isBorder(bytes, start) && isBorder(bytes, end) && (typeof told !== 'string' || isAt(bytes, start, end, told))) {
      return { start_index: beforeByte(bytes, start).point, end_index: beforeByte(bytes, end).point };
    }
    return typeof told === 'string'
      ? nearest(told, beforeByte(bytes, Math.min(Math.max(0, Math.trunc(start)), bytes.length)).unit)
      : { start_index: 0, end_index: 0 };
  }

  function nearest(told: string, around: number): Range {
    const from = Math.max(0, around - DRIFT_CHARS);
    const head = told.slice(0, HEAD_CHARS);
    const window = text.slice(from, around + DRIFT_CHARS + head.length);
    let at = told === '' ? -1 : window.indexOf(head);
    for (let tries = 0; at !== -1 && tries < TRIES_MAX; tries += 1) {
      if (text.startsWith(told, from + at)) {
        const startIndex = pointsAt(from + at);
        return { start_index: startIndex, end_index: startIndex + countCodePoints(told) };
      }
      at = window.indexOf(head, at + 1);
    }
    return { start_index: 0, end_index: 0 };
  }

  return { find };
}

/** Whether a place is between two characters of a text in UTF-8. */
function isBorder(bytes: Buffer, at: number): boolean {
  if (!Number.isInteger(at) || at < 0 || at > bytes.length) return false;
  return at === bytes.length || (bytes[at]! & 0xc0) !== 0x80;
}

/** Whether a text stands there, of which no more is read than of the text. */
function isAt(bytes: Buffer, start: number, end: number, text: string): boolean {
  return end - start <= 3 * text.length && bytes.toString('utf8', start, end) === text;
}
