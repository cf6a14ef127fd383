import { createHash, hash } from 'node:crypto';
import { TurnWork } from '../../http/turn-work.ts';
import { limits } from '../../limits.ts';
import type { InnerPart } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { isWalked, pieceEnd } from '../../schemas/json-pieces.ts';
import type { SlicedWork } from './payload-search.ts';

/** Longer data of a request are hashed once, even if they are needed several times. */
const HASHED_ONCE_CHARS_MIN = 256 * 1024;

/** The cost of visiting a value, in hashed characters. */
const VALUE_CHARS = 64;

/** The member of a content part that holds its data or address. */
export const DATA_MEMBERS: Readonly<Partial<Record<InnerPart['type'], string>>> = {
  image_url: 'image_url.url',
  input_audio: 'input_audio.data',
  video_url: 'video_url.url',
  file: 'file.file_data',
};

/** The value of that member: base64, a data URL or an address; undefined if the part has none. */
export function dataOf(part: InnerPart): string | undefined {
  switch (part.type) {
    case 'image_url':
      return part.image_url.url;
    case 'input_audio':
      return part.input_audio.data;
    case 'video_url':
      return part.video_url.url;
    case 'file':
      // Clients may send null.
      return part.file.file_data ?? undefined;
    default:
      return undefined;
  }
}

/** Data in a body: whole strings, or the part of a data URL after the comma. */
export interface SentData {
  /** The key of data for the methods below. */
  markOf(data: string): SlicedWork<string>;
  has(mark: string): boolean;
  /** True once for each occurrence in the body. */
  take(mark: string): boolean;
}

/** Hashes of texts. Searching for the texts themselves would let a client cause quadratic work. */
class Marks {
  readonly #work: TurnWork;
  #lastText = '';
  #lastMark = '';

  constructor(work: TurnWork) {
    this.#work = work;
  }

  *of(text: string): SlicedWork<string> {
    if (this.#work.isDone(text.length)) yield;
    if (text.length <= HASHED_ONCE_CHARS_MIN) return hash('sha256', text, 'base64');
    // The same data is looked up several times in a row, and a comparison costs far less.
    if (text === this.#lastText) return this.#lastMark;
    const digest = createHash('sha256');
    for (let at = 0; at < text.length; ) {
      const end = pieceEnd(text, at + limits.joined_slice_bytes);
      digest.update(text.slice(at, end));
      at = end;
      yield;
    }
    this.#lastText = text;
    this.#lastMark = digest.digest('base64');
    return this.#lastMark;
  }
}

/** The data of a data URL; any other text unchanged. */
function bareData(text: string): string {
  return /^data:/i.test(text) ? text.slice(text.indexOf(',') + 1) : text;
}

/** The least length of data in JSON, where MIME line ends (RFC 2045) are escaped. Very long data is not serialized to measure it. */
export function writtenChars(data: string): number {
  if (data.length > HASHED_ONCE_CHARS_MIN) return data.length;
  return JSON.stringify(data).length - 2;
}

/** Searches a body once for the data of `candidates`. */
export function* sentDataOf(body: JsonValue, candidates: Iterable<string>): SlicedWork<SentData> {
  const work = new TurnWork();
  const texts = new Marks(work);
  const lengths = new Set<number>();
  for (const data of candidates) lengths.add(data.length);
  const counts = new Map<string, number>();
  const pending: JsonValue[] = lengths.size === 0 ? [] : [body];
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (work.isDone(VALUE_CHARS)) yield;
    if (typeof value === 'string') {
      const data = bareData(value);
      if (!lengths.has(data.length)) continue;
      const mark = yield* texts.of(data);
      counts.set(mark, (counts.get(mark) ?? 0) + 1);
    } else if (typeof value === 'object' && value !== null) {
      for (const inner of Object.values(value)) if (inner !== undefined) pending.push(inner);
    }
  }
  const marks = new Set(counts.keys());
  return {
    *markOf(data) {
      return marks.size === 0 ? '' : yield* texts.of(data);
    },
    has: (mark) => marks.has(mark),
    take(mark) {
      const count = counts.get(mark) ?? 0;
      counts.set(mark, count - 1);
      return count > 0;
    },
  };
}

/** A body's JSON without the data; each entry of `data` removes one occurrence. */
export function* jsonWithout(body: JsonValue, data: readonly string[]): SlicedWork<string> {
  const work = new TurnWork();
  const lengths = new Set(data.map(({ length }) => length));
  const named = yield* sentDataOf([...data], data);
  const copy: { body: JsonValue } = { body: null };
  const pending: { from: unknown; to: JsonObject | JsonValue[]; name: string | number }[] = [
    { from: body, to: copy, name: 'body' },
  ];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (work.isDone(VALUE_CHARS)) yield;
    const { from, to, name } = next;
    let copied = from as JsonValue;
    if (typeof from === 'string') {
      const bare = bareData(from);
      if (lengths.has(bare.length) && named.take(yield* named.markOf(bare))) {
        copied = from.slice(0, from.length - bare.length);
      }
    } else if (isWalked(from)) {
      const inside: JsonObject | JsonValue[] = Array.isArray(from) ? [] : {};
      copied = inside;
      // Sets the names first, to keep their order.
      for (const [inner, value] of Object.entries(from)) {
        (inside as JsonObject)[inner] = null;
        pending.push({ from: value, to: inside, name: inner });
      }
    }
    (to as JsonObject)[name] = copied;
  }
  return JSON.stringify(copy.body);
}
