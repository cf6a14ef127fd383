import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { createJsonFilter } from './json-filter.ts';
import { createStreamFilter, edited, type Finder, TextScan } from './stream-filter.ts';

/** A filtered value, and whether a blocking match ended it. */
export interface Filtered<T> {
  value: T;
  has_ended: boolean;
}

/** Fields with ids and kinds of a wire, which are not text. */
const NAMES = new Set(['id', 'type', 'status', 'role', 'object', 'model', 'format', 'obfuscation']);
/** Fields with data of a model or tool: field names in them have no meaning for the wire. */
const MODEL_DATA = new Set(['input', 'args', 'arguments', 'parameters', 'structured_content', 'structuredContent']);
const DATA_URL = /^data:[\w.+/-]+[;,]/;
/** Fields with sealed or binary data. */
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
/** Digits and separators: never sealed data. */
const NUMBER_TEXT = /^[\d.:/+-]*$/;
/** Strings that are JSON themselves. */
const JSON_TEXT = new Set(['arguments', 'partial_json']);
/** Shorter numbers cannot match a filter. */
const NUMBER_CHARS_MIN = 7;

/** A whole text, filtered. */
export function filteredText(finder: Finder, text: string, isJson = false): Filtered<string> {
  const filter = isJson ? createJsonFilter(finder) : createStreamFilter(finder);
  const head = filter.push(text);
  const value = head + filter.end();
  return { value: value === text ? text : value, has_ended: filter.hasEnded() };
}

/** Filters texts that are read as one. The replacement of a match over several texts is in the first of them. */
export function filteredTexts(finder: Finder, texts: readonly string[]): Filtered<string[]> {
  const scan = new TextScan(finder);
  for (const text of texts) scan.push(text);
  scan.flush();
  const until = scan.ended_at ?? scan.total;
  let at = 0;
  const value = texts.map((text) => {
    const replaced = edited(text.slice(0, Math.max(0, until - at)), at, scan.edits);
    at += text.length;
    return replaced;
  });
  return { value, has_ended: scan.ended_at !== undefined };
}

/**
 * Filters the strings of a JSON value, keys included. Returns the same value if nothing changes. Ids,
 * kinds, sealed data and image data are kept, except in data of a model.
 */
export function filteredJson<T extends JsonValue | undefined>(finder: Finder, input: T): Filtered<T> {
  let hasEnded = false;

  function text(value: string, isJson = false): string {
    const filtered = filteredText(finder, value, isJson);
    hasEnded ||= filtered.has_ended;
    return filtered.value;
  }

  function member(key: string, value: JsonValue, isModelData: boolean): JsonValue {
    if (typeof value !== 'string') return walk(value, isModelData || MODEL_DATA.has(key));
    if (!isModelData) {
      if (NAMES.has(key) || key.endsWith('_id')) return value;
      if (OPAQUE.has(key) && OPAQUE_TEXT.test(value) && !NUMBER_TEXT.test(value)) return value;
      if (DATA_URL.test(value)) return value;
    }
    return text(value, JSON_TEXT.has(key));
  }

  function walk(value: JsonValue, isModelData: boolean): JsonValue {
    if (typeof value === 'string') return text(value);
    if (typeof value === 'number') {
      const number = String(value);
      const shown = number.length < NUMBER_CHARS_MIN ? number : text(number);
      return shown === number ? value : shown;
    }
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) {
      const list = value.map((one) => walk(one, isModelData));
      return list.some((one, at) => one !== value[at]) ? list : value;
    }
    let changed: JsonObject | undefined;
    for (const [key, original] of Object.entries(value)) {
      if (original === undefined) continue;
      const shown = member(key, original, isModelData);
      const name = key.length < NUMBER_CHARS_MIN ? key : text(key);
      if (shown === original && name === key) continue;
      changed ??= { ...value };
      if (name !== key) delete changed[key];
      changed[name] = shown;
    }
    return changed ?? value;
  }

  const value = input === undefined ? input : (walk(input, false) as T);
  return { value, has_ended: hasEnded };
}
