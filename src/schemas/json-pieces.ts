import { limits } from '../limits.ts';
import type { JsonObject, JsonValue } from './json.ts';

/** What a value takes in JSON beside its text, about. */
const VALUE_CHARS = 4;

/** A list or an object of which a part is written. */
interface Frame {
  of: readonly unknown[] | JsonObject;
  /** Of an object. */
  keys: readonly string[] | undefined;
  next: number;
  is_empty: boolean;
}

/** Lists and objects that JSON writes as such: no integer kept as a text, nothing that writes itself. */
export function isWalked(value: unknown): value is unknown[] | JsonObject {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  return typeof (value as { toJSON?: unknown }).toJSON !== 'function' && !isRaw(value);
}

const { isRawJSON: isRaw } = JSON as unknown as { isRawJSON(value: unknown): boolean };

/** Whether writing a value in one piece would take long. Looks at no more of it than decides that. */
export function isLongJson(value: unknown, chars_max: number = limits.json_long_chars_min): boolean {
  return charsLeft(value, chars_max) <= 0;
}

/** How long JSON is, about; `most` where it is longer. Looks at no more of it than decides that. */
export function jsonChars(value: unknown, most: number = Number.MAX_SAFE_INTEGER): number {
  return most - Math.max(0, charsLeft(value, most));
}

/** Recursive: most bodies are short, and bodies have few levels. */
function charsLeft(value: unknown, room: number): number {
  if (typeof value === 'string') return room - value.length - VALUE_CHARS;
  let left = room - VALUE_CHARS;
  if (typeof value !== 'object' || value === null) return left;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && left > 0; at += 1) left = charsLeft(value[at], left);
    return left;
  }
  for (const key in value) {
    left = charsLeft((value as JsonObject)[key], left - key.length);
    if (left <= 0) return left;
  }
  return left;
}

/** Where a piece of a text may end: not inside of a surrogate pair. */
export function pieceEnd(text: string, to: number): number {
  if (to >= text.length) return text.length;
  const is_inside = (text.charCodeAt(to - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(to) & 0xfc00) === 0xdc00;
  return is_inside ? to + 1 : to;
}

/**
 * What `JSON.stringify` writes, byte for byte, as pieces of some `chars` characters: long strings are divided, too. For long values only:
 * short ones are written faster in one piece.
 */
export function* jsonPieces(
  root: JsonValue,
  chars: number = limits.json_piece_chars,
): Generator<Buffer, void, undefined> {
  const stack: Frame[] = [];
  let text = '';
  let value: unknown = root;
  for (;;) {
    if (typeof value === 'string' && value.length > chars) {
      text += '"';
      for (let at = 0; at < value.length; ) {
        const end = pieceEnd(value, at + chars);
        text += JSON.stringify(value.slice(at, end)).slice(1, -1);
        at = end;
        yield Buffer.from(text);
        text = '';
      }
      text += '"';
    } else if (isWalked(value)) {
      const keys = Array.isArray(value) ? undefined : Object.keys(value);
      text += keys === undefined ? '[' : '{';
      stack.push({ of: value, keys, next: 0, is_empty: true });
    } else {
      text += JSON.stringify(value) ?? 'null';
    }
    if (text.length >= chars) {
      yield Buffer.from(text);
      text = '';
    }
    for (;;) {
      const frame = stack.at(-1);
      if (frame === undefined) {
        if (text !== '') yield Buffer.from(text);
        return;
      }
      const { of, keys } = frame;
      if (frame.next === (keys ?? (of as readonly unknown[])).length) {
        text += keys === undefined ? ']' : '}';
        stack.pop();
        continue;
      }
      const key = keys?.[frame.next];
      value = key === undefined ? (of as readonly unknown[])[frame.next] : (of as JsonObject)[key];
      frame.next += 1;
      if (key !== undefined && isLeftOut(value)) continue;
      if (frame.is_empty) frame.is_empty = false;
      else text += ',';
      if (key !== undefined) text += `${JSON.stringify(key)}:`;
      break;
    }
  }
}

/** What JSON has no value for: in a list it is null. */
function isLeftOut(value: unknown): boolean {
  return value === undefined || typeof value === 'function' || typeof value === 'symbol';
}
