import { append } from '../../schemas/append.ts';
import type { Annotation, ChatChunk, Delta, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { countCodePoints } from '../../schemas/text.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { type BlockSlot, createSlot } from '../shared/slot.ts';
import type { Counts, ItemReader } from './turn-context.ts';
import { extOf, type WireItem } from './wire.ts';

/** Fields that events contain, or that are not needed to restore the text. */
const PART_KNOWN = ['type', 'text', 'refusal', 'logprobs'];
const ITEM_KNOWN = ['type', 'role', 'content'];
/** Messages with more fields than this repeat only the required ones in further parts. */
const REPEATED_FIELDS_MAX = 16;

/** One part of a message while it is decoded. */
interface Part {
  kind: 'text' | 'refusal';
  slot: BlockSlot;
  /** The start of its text in the joined text, in code points. */
  start: number;
  hasText: boolean;
  hasLogprobs: boolean;
  annotations: number;
}

/**
 * Reads a message: each of its parts is a slot. Other fields of the message (`id`, `status`, `phase`) are in the remainder of every part,
 * and other fields of a part in its `part`, so that encoding can join parts of one id.
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
      part = { kind, slot, start: counts.codePoints, hasText: false, hasLogprobs: false, annotations: 0 };
      parts.set(index, part);
    }
    return part;
  }

  function emitText(part: Part, text: string, logprobs: JsonValue | undefined): ChatChunk[] {
    if (text === '') return [];
    part.hasText = true;
    if (part.kind === 'refusal') return [part.slot.emit({ refusal: text })];
    counts.codePoints += countCodePoints(text);
    const items = logprobsOf(logprobs);
    part.hasLogprobs ||= items.length > 0;
    const chunk = part.slot.emit({ content: text });
    return [items.length === 0 ? chunk : { ...chunk, logprobs: { content: items } }];
  }

  function annotate(part: Part, value: JsonValue): ChatChunk[] {
    const raw = asObject(value);
    part.annotations += 1;
    if (raw === undefined) return [];
    const annotation = annotationOf(raw, part.start);
    const delta: Delta = annotation === undefined ? {} : { annotations: [annotation] };
    return [part.slot.emit(delta, { raw: { type: 'response.output_text.annotation.added', annotation: raw } })];
  }

  function endPart(index: number, content: JsonObject, rest: JsonObject): ChatChunk[] {
    const part = partAt(index, content['type'] === 'refusal' ? 'refusal' : 'text');
    const chunks = part.hasText
      ? []
      : emitText(part, asText(content['text'] ?? content['refusal']), content['logprobs']);
    for (const value of asArray(content['annotations']).slice(part.annotations)) append(chunks, annotate(part, value));
    const remembered = remainder(content, PART_KNOWN);
    const ext = extOf(extOf(remembered) === undefined ? rest : { ...rest, part: remembered });
    // An empty text is a part as well.
    if (!part.slot.isOpen()) chunks.push(part.slot.emit({}));
    append(chunks, part.slot.close({}, ext === undefined ? {} : { ext }));
    return chunks;
  }

  return {
    begin: () => [],
    add(event) {
      switch (event['type']) {
        case 'response.output_text.delta':
          return emitText(partAt(event['content_index'], 'text'), asText(event['delta']), event['logprobs']);
        case 'response.refusal.delta':
          return emitText(partAt(event['content_index'], 'refusal'), asText(event['delta']), undefined);
        case 'response.output_text.annotation.added':
          return annotate(partAt(event['content_index'], 'text'), event['annotation'] ?? null);
        default:
          return [];
      }
    },
    end(finished) {
      const chunks: ChatChunk[] = [];
      const rest = finished === undefined ? known : remainder(finished, ITEM_KNOWN);
      const repeatedFields = repeated(rest);
      let isFirst = true;
      for (const [index, value] of contentOf(finished).entries()) {
        if (!isReadable(value)) continue;
        append(chunks, endPart(index, value, isFirst ? rest : repeatedFields));
        isFirst = false;
        parts.delete(index);
      }
      for (const part of parts.values()) append(chunks, part.slot.close());
      return chunks;
    },
  };
}

/** The fields of a message that each further part repeats. */
function repeated(rest: JsonObject): JsonObject {
  if (Object.keys(rest).length <= REPEATED_FIELDS_MAX) return rest;
  const { id, status, phase } = rest;
  return remainder({ id, status, phase }, []);
}

/** The parts of a message; a plain message has only text. */
function contentOf(item: WireItem | undefined): JsonObject[] {
  const content = item?.['content'];
  if (typeof content === 'string') return [{ type: 'output_text', text: content }];
  return objectsOf(content);
}

/** Whether a part is text or a refusal. Unknown kinds have no place in a chat, and as empty texts they would be sent back wrongly. */
function isReadable({ type, text }: JsonObject): boolean {
  return type === 'output_text' || type === 'refusal' || typeof text === 'string';
}

/**
 * A citation of an address as an annotation; citations of files have no public form. The wire's offsets start at the part, the
 * annotation's at the joined text (translation E7). Without offsets (xAI) both are 0.
 */
function annotationOf(raw: JsonObject, start: number): Annotation | undefined {
  const url = asText(raw['url']);
  if (raw['type'] !== 'url_citation' || url === '') return undefined;
  const from = offsetOf(raw['start_index']);
  const to = offsetOf(raw['end_index']);
  const hasOffsets = from !== undefined && to !== undefined && to > 0;
  const urlCitation: UrlCitation['url_citation'] = {
    url,
    start_index: hasOffsets ? start + from : 0,
    end_index: hasOffsets ? start + to : 0,
  };
  const title = asText(raw['title']);
  if (title !== '') urlCitation.title = title;
  return { type: 'url_citation', url_citation: urlCitation };
}

function offsetOf(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;
}

/** Log probabilities in the shape of the chat wire, whose clients read `bytes`. */
function logprobsOf(value: JsonValue | undefined): JsonObject[] {
  return objectsOf(value).map((entry) => ({
    bytes: null,
    ...entry,
    top_logprobs: objectsOf(entry['top_logprobs']).map((other) => ({ bytes: null, ...other })),
  }));
}

function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return asArray(value)
    .map(asObject)
    .filter((entry) => entry !== undefined);
}
