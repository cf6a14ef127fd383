import { createHash, hash } from 'node:crypto';
import { TurnWork } from '../../http/turn-work.ts';
import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { isWalked, pieceEnd } from '../../schemas/json-pieces.ts';

/** What looking at a value costs, in characters that are hashed meanwhile. */
const VALUE_CHARS = 64;

/** Work that yields where others may be served. */
type Planner<T> = Generator<void, T, undefined>;

/** Data that a body holds, as strings of their own or behind the comma of a data URL. */
export interface SentData {
  /** What data are known by below. */
  markOf(data: string): Planner<string>;
  has(mark: string): boolean;
  /** Once for each time that the body holds it. */
  take(mark: string): boolean;
}

/** The same for equal texts alone. A search for the text would take the square of its length, where a client wants that. */
class Marks {
  readonly #work: TurnWork;
  #last_text = '';
  #last_mark = '';

  constructor(work: TurnWork) {
    this.#work = work;
  }

  *of(text: string): Planner<string> {
    if (this.#work.isDone(text.length)) yield;
    if (text.length <= limits.hashed_once_chars_min) return hash('sha256', text, 'base64');
    // The same data are asked for several times in a row, and comparing them costs far less.
    if (text === this.#last_text) return this.#last_mark;
    const digest = createHash('sha256');
    for (let at = 0; at < text.length; ) {
      const end = pieceEnd(text, at + limits.joined_slice_bytes);
      digest.update(text.slice(at, end));
      at = end;
      yield;
    }
    this.#last_text = text;
    this.#last_mark = digest.digest('base64');
    return this.#last_mark;
  }
}

/** The data of a data URL, any other text as it is. */
function bareData(text: string): string {
  return /^data:/i.test(text) ? text.slice(text.indexOf(',') + 1) : text;
}

/**
 * How long data are in a JSON text, at least: line ends of MIME (RFC 2045) and the like are escaped there. Very long ones are not written
 * to find out.
 */
export function writtenChars(data: string): number {
  if (data.length > limits.hashed_once_chars_min) return data.length;
  return JSON.stringify(data).length - 2;
}

/** Looks through a body once, for data among `wanted`. */
export function* sentDataOf(body: JsonValue, wanted: Iterable<string>): Planner<SentData> {
  const work = new TurnWork();
  const known = new Marks(work);
  const lengths = new Set<number>();
  for (const data of wanted) lengths.add(data.length);
  const counts = new Map<string, number>();
  const left: JsonValue[] = lengths.size === 0 ? [] : [body];
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (work.isDone(VALUE_CHARS)) yield;
    if (typeof value === 'string') {
      const data = bareData(value);
      if (!lengths.has(data.length)) continue;
      const mark = yield* known.of(data);
      counts.set(mark, (counts.get(mark) ?? 0) + 1);
    } else if (typeof value === 'object' && value !== null) {
      for (const inner of Object.values(value)) if (inner !== undefined) left.push(inner);
    }
  }
  const marks = new Set(counts.keys());
  return {
    *markOf(data) {
      return marks.size === 0 ? '' : yield* known.of(data);
    },
    has: (mark) => marks.has(mark),
    take(mark) {
      const count = counts.get(mark) ?? 0;
      counts.set(mark, count - 1);
      return count > 0;
    },
  };
}

/** A body's JSON without data, each as often as it is named. */
export function* jsonWithout(body: JsonValue, data: readonly string[]): Planner<string> {
  const work = new TurnWork();
  const lengths = new Set(data.map(({ length }) => length));
  const named = yield* sentDataOf([...data], data);
  const copy: { body: JsonValue } = { body: null };
  const left: { from: unknown; to: JsonObject | JsonValue[]; name: string | number }[] = [
    { from: body, to: copy, name: 'body' },
  ];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (work.isDone(VALUE_CHARS)) yield;
    const { from, to, name } = next;
    let made = from as JsonValue;
    if (typeof from === 'string') {
      const bare = bareData(from);
      if (lengths.has(bare.length) && named.take(yield* named.markOf(bare))) {
        made = from.slice(0, from.length - bare.length);
      }
    } else if (isWalked(from)) {
      const inside: JsonObject | JsonValue[] = Array.isArray(from) ? [] : {};
      made = inside;
      // Names stand in their order before their values are known.
      for (const [inner, value] of Object.entries(from)) {
        (inside as JsonObject)[inner] = null;
        left.push({ from: value, to: inside, name: inner });
      }
    }
    (to as JsonObject)[name] = made;
  }
  return JSON.stringify(copy.body);
}
