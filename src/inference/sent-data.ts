import { hash } from 'node:crypto';
import { limits } from '../limits.ts';
import type { JsonValue } from '../schemas/json.ts';

/** Data that a body holds, as strings of their own or behind the comma of a data URL. */
export interface SentData {
  has(data: string): boolean;
  /** Once for each time that the body holds it. */
  take(data: string): boolean;
}

/** The same for equal texts alone. A search for the text would take the square of its length, where a client wants that. */
class Marks {
  #last_text = '';
  #last_mark = '';

  of(text: string): string {
    if (text.length <= limits.hashed_once_chars_min) return hash('sha256', text, 'base64');
    // The same data are asked for several times in a row, and comparing them costs far less.
    if (text !== this.#last_text) {
      this.#last_text = text;
      this.#last_mark = hash('sha256', text, 'base64');
    }
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
export function sentDataOf(body: JsonValue, wanted: Iterable<string>): SentData {
  const lengths = new Set<number>();
  const known = new Marks();
  const markOf = (text: string) => known.of(text);
  for (const data of wanted) lengths.add(data.length);
  const counts = new Map<string, number>();
  const left: JsonValue[] = lengths.size === 0 ? [] : [body];
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (typeof value === 'string') {
      const data = bareData(value);
      if (!lengths.has(data.length)) continue;
      const mark = markOf(data);
      counts.set(mark, (counts.get(mark) ?? 0) + 1);
    } else if (typeof value === 'object' && value !== null) {
      for (const inner of Object.values(value)) if (inner !== undefined) left.push(inner);
    }
  }
  const marks = new Set(counts.keys());
  return {
    has: (data) => marks.size > 0 && marks.has(markOf(data)),
    take(data) {
      const mark = markOf(data);
      const count = counts.get(mark) ?? 0;
      counts.set(mark, count - 1);
      return count > 0;
    },
  };
}

/** A body's JSON without data, each as often as it is named. */
export function jsonWithout(body: JsonValue, data: readonly string[]): string {
  const lengths = new Set(data.map(({ length }) => length));
  const named = sentDataOf([...data], data);
  return JSON.stringify(body, (_, value: unknown) => {
    if (typeof value !== 'string') return value;
    const bare = bareData(value);
    return lengths.has(bare.length) && named.take(bare) ? value.slice(0, value.length - bare.length) : value;
  });
}
