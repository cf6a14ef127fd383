import { append } from '../../schemas/append.ts';
import type { Annotation, ChatChunk, Delta, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { type BlockSlot, countCodePoints, createSlot } from '../shared/slot.ts';
import type { Counts, ItemReader } from './turn-context.ts';
import { extOf, type WireItem } from './wire.ts';

/** Told by the events, or of no use when the text goes back. */
const PART_KNOWN = ['type', 'text', 'refusal', 'logprobs'];
const ITEM_KNOWN = ['type', 'role', 'content'];
/** Of a message with more fields of its own than these its further parts repeat those that the way back must know. */
const REPEATED_FIELDS_MAX = 16;

/** One part of a message while it grows. */
interface Part {
  kind: 'text' | 'refusal';
  slot: BlockSlot;
  /** Where its text begins in the joined text, in code points. */
  start: number;
  isSaid: boolean;
  hasLogprobs: boolean;
  annotations: number;
}

/**
 * A message: each of its parts is a slot. What else the message carries (`id`, `status`, `phase`) stands in the remainder
 * of every one of them, what else a part carries in it as `part`: the way back joins parts of one id.
 */
export function createMessageReader(item: WireItem, counts: Counts): ItemReader {
  const parts = new Map<JsonValue | undefined, Part>();
  const { status: _unfinished, ...known } = remainder(item, ITEM_KNOWN);
  const knownAgain = repeated(known);
  let hasParts = false;

  function partAt(index: JsonValue | undefined, kind: Part['kind']): Part {
    let part = parts.get(index);
    if (part === undefined) {
      const ext = extOf(hasParts ? knownAgain : known);
      hasParts = true;
      const slot = createSlot(counts, ext === undefined ? { kind } : { kind, ext });
      part = { kind, slot, start: counts.codePoints, isSaid: false, hasLogprobs: false, annotations: 0 };
      parts.set(index, part);
    }
    return part;
  }

  function say(part: Part, text: string, logprobs: JsonValue | undefined): ChatChunk[] {
    if (text === '') return [];
    part.isSaid = true;
    if (part.kind === 'refusal') return [part.slot.emit({ refusal: text })];
    counts.codePoints += countCodePoints(text);
    const told = logprobsOf(logprobs);
    part.hasLogprobs ||= told.length > 0;
    const chunk = part.slot.emit({ content: text });
    return [told.length === 0 ? chunk : { ...chunk, logprobs: { content: told } }];
  }

  function annotate(part: Part, value: JsonValue): ChatChunk[] {
    const raw = asObject(value);
    part.annotations += 1;
    if (raw === undefined) return [];
    const annotation = annotationOf(raw, part.start);
    const delta: Delta = annotation === undefined ? {} : { annotations: [annotation] };
    return [part.slot.emit(delta, { raw: { type: 'response.output_text.annotation.added', annotation: raw } })];
  }

  function endPart(index: number, told: JsonObject, rest: JsonObject): ChatChunk[] {
    const part = partAt(index, told['type'] === 'refusal' ? 'refusal' : 'text');
    const chunks = part.isSaid ? [] : say(part, asText(told['text'] ?? told['refusal']), told['logprobs']);
    for (const value of asArray(told['annotations']).slice(part.annotations)) append(chunks, annotate(part, value));
    const remembered = remainder(told, PART_KNOWN);
    const ext = extOf(extOf(remembered) === undefined ? rest : { ...rest, part: remembered });
    // An empty text is one all the same: it stands on the wire.
    if (!part.slot.isOpen()) chunks.push(part.slot.emit({}));
    append(chunks, part.slot.close({}, ext === undefined ? {} : { ext }));
    return chunks;
  }

  return {
    begin: () => [],
    add(event) {
      switch (event['type']) {
        case 'response.output_text.delta':
          return say(partAt(event['content_index'], 'text'), asText(event['delta']), event['logprobs']);
        case 'response.refusal.delta':
          return say(partAt(event['content_index'], 'refusal'), asText(event['delta']), undefined);
        case 'response.output_text.annotation.added':
          return annotate(partAt(event['content_index'], 'text'), event['annotation'] ?? null);
        default:
          return [];
      }
    },
    end(finished) {
      const chunks: ChatChunk[] = [];
      const rest = finished === undefined ? known : remainder(finished, ITEM_KNOWN);
      const again = repeated(rest);
      let isFirst = true;
      for (const [index, value] of contentOf(finished).entries()) {
        if (!isSpoken(value)) continue;
        append(chunks, endPart(index, value, isFirst ? rest : again));
        isFirst = false;
        parts.delete(index);
      }
      for (const part of parts.values()) append(chunks, part.slot.close());
      return chunks;
    },
  };
}

/** What each further part of a message says of it again. */
function repeated(rest: JsonObject): JsonObject {
  if (Object.keys(rest).length <= REPEATED_FIELDS_MAX) return rest;
  const { id, status, phase } = rest;
  return remainder({ id, status, phase }, []);
}

/** The parts of a message; a message that is easy to write has its text alone. */
function contentOf(item: WireItem | undefined): JsonObject[] {
  const content = item?.['content'];
  if (typeof content === 'string') return [{ type: 'output_text', text: content }];
  return objectsOf(content);
}

/** A part of a kind that is still to come has no place in a chat: as an empty text it would go back as what it never was. */
function isSpoken({ type, text }: JsonObject): boolean {
  return type === 'output_text' || type === 'refusal' || typeof text === 'string';
}

/**
 * A citation of an address as an annotation; those of files have no public form. The wire counts from the part's start,
 * the annotation from the start of the joined text (translation E7). Without places (xAI) both are 0.
 */
function annotationOf(raw: JsonObject, start: number): Annotation | undefined {
  const url = asText(raw['url']);
  if (raw['type'] !== 'url_citation' || url === '') return undefined;
  const from = placeOf(raw['start_index']);
  const to = placeOf(raw['end_index']);
  const isPlaced = from !== undefined && to !== undefined && to > 0;
  const urlCitation: UrlCitation['url_citation'] = {
    url,
    start_index: isPlaced ? start + from : 0,
    end_index: isPlaced ? start + to : 0,
  };
  const title = asText(raw['title']);
  if (title !== '') urlCitation.title = title;
  return { type: 'url_citation', url_citation: urlCitation };
}

function placeOf(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;
}

/** In the shape of the chat wire, whose clients read `bytes`. */
function logprobsOf(value: JsonValue | undefined): JsonObject[] {
  return objectsOf(value).map((told) => ({
    bytes: null,
    ...told,
    top_logprobs: objectsOf(told['top_logprobs']).map((other) => ({ bytes: null, ...other })),
  }));
}

function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return asArray(value)
    .map(asObject)
    .filter((entry) => entry !== undefined);
}
