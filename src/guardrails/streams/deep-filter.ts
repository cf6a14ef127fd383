import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { createJsonFilter } from './json-filter.ts';
import { createStreamFilter, edited, type Finder, TextScan } from './stream-filter.ts';

/** What is filtered, and whether it may not be shown at all. */
export interface Filtered<T> {
  value: T;
  has_ended: boolean;
}

/** Names and kinds, which are nobody's words. */
const NAMES = new Set(['id', 'type', 'status', 'role', 'object', 'model', 'format', 'obfuscation']);
/** What a model or a tool wrote by names of its own: in it nothing is a wire's. */
const WRITTEN = new Set(['input', 'args', 'arguments', 'parameters', 'structured_content', 'structuredContent']);
const DATA_URL = /^data:[\w.+/-]+[;,]/;
/** What only its maker can read, or what is no text. */
const OPAQUE = new Set([
  'encrypted_content',
  'encrypted_index',
  'signature',
  'thoughtSignature',
  'thought_signature',
  'data',
  'b64_json',
  'partial_image_b64',
  'result',
]);
const OPAQUE_TEXT = /^[\w+/=.:-]*$/;
/** As no sealed state is. */
const NUMBER_TEXT = /^[\d.:/+-]*$/;
/** Strings that are JSON themselves. */
const JSON_TEXT = new Set(['arguments', 'partial_json']);
/** Shorter numbers are nobody's secret. */
const NUMBER_CHARS_MIN = 7;

/** A whole text, filtered. */
export function filteredText(finder: Finder, text: string, isJson = false): Filtered<string> {
  const filter = isJson ? createJsonFilter(finder) : createStreamFilter(finder);
  const told = filter.push(text);
  const value = told + filter.end();
  return { value: value === text ? text : value, has_ended: filter.hasEnded() };
}

/** Texts that are read as one, filtered: what stands for a match that several tell is in the first of them. */
export function filteredTexts(finder: Finder, texts: readonly string[]): Filtered<string[]> {
  const scan = new TextScan(finder);
  for (const text of texts) scan.push(text);
  scan.flush();
  const until = scan.ended_at ?? scan.total;
  let at = 0;
  const value = texts.map((text) => {
    const told = edited(text.slice(0, Math.max(0, until - at)), at, scan.edits);
    at += text.length;
    return told;
  });
  return { value, has_ended: scan.ended_at !== undefined };
}

/**
 * A JSON value whose strings are filtered, keys included: itself where nothing is found. What stands in it by wires' names of ids,
 * kinds, sealed state and data of pictures stays, but not in what a model wrote.
 */
export function filteredJson<T extends JsonValue | undefined>(finder: Finder, given: T): Filtered<T> {
  let has_ended = false;

  function text(value: string, isJson = false): string {
    const filtered = filteredText(finder, value, isJson);
    has_ended ||= filtered.has_ended;
    return filtered.value;
  }

  function member(key: string, value: JsonValue, isWritten: boolean): JsonValue {
    if (typeof value !== 'string') return walk(value, isWritten || WRITTEN.has(key));
    if (!isWritten) {
      if (NAMES.has(key) || key.endsWith('_id')) return value;
      if (OPAQUE.has(key) && OPAQUE_TEXT.test(value) && !NUMBER_TEXT.test(value)) return value;
      if (DATA_URL.test(value)) return value;
    }
    return text(value, JSON_TEXT.has(key));
  }

  function walk(value: JsonValue, isWritten: boolean): JsonValue {
    if (typeof value === 'string') return text(value);
    if (typeof value === 'number') {
      const told = String(value);
      const shown = told.length < NUMBER_CHARS_MIN ? told : text(told);
      return shown === told ? value : shown;
    }
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) {
      const list = value.map((one) => walk(one, isWritten));
      return list.some((one, at) => one !== value[at]) ? list : value;
    }
    let changed: JsonObject | undefined;
    for (const [key, told] of Object.entries(value)) {
      if (told === undefined) continue;
      const shown = member(key, told, isWritten);
      const name = key.length < NUMBER_CHARS_MIN ? key : text(key);
      if (shown === told && name === key) continue;
      changed ??= { ...value };
      if (name !== key) delete changed[key];
      changed[name] = shown;
    }
    return changed ?? value;
  }

  const value = given === undefined ? given : (walk(given, false) as T);
  return { value, has_ended };
}
