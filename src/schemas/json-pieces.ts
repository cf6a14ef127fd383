import { limits } from '../limits.ts';
import type { JsonObject, JsonValue } from './json.ts';

/** Approximate length in JSON of a value besides its text. */
const VALUE_CHARS = 4;

/** A list or an object that is partly written. */
interface Frame {
  of: readonly unknown[] | JsonObject;
  /** The keys, if it is an object. */
  keys: readonly string[] | undefined;
  next: number;
  is_empty: boolean;
}

/** Whether a value is a list or an object that JSON writes member by member: not an integer kept as text, nor an object with `toJSON`. */
export function isWalked(value: unknown): value is unknown[] | JsonObject {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  return typeof (value as { toJSON?: unknown }).toJSON !== 'function' && !isRaw(value);
}

const { isRawJSON: isRaw } = JSON as unknown as { isRawJSON(value: unknown): boolean };

/** A value has at least the approximate length divided by this in JSON: short values count more than they have. */
export const JSON_CHARS_FACTOR = 4;

/** Whether writing a value in one piece would take long. Stops reading as soon as that is decided. */
export function isLongJson(value: unknown, charsMax: number = limits.json_long_chars_min): boolean {
  return remainingChars(value, charsMax) <= 0;
}

/** Approximate length of a value as JSON; `most` if it is longer. Stops reading there. */
export function jsonChars(value: unknown, most: number = Number.MAX_SAFE_INTEGER): number {
  return most - Math.max(0, remainingChars(value, most));
}

/** Recursive, since bodies are short and have few levels. */
function remainingChars(value: unknown, room: number): number {
  if (typeof value === 'string') return room - value.length - VALUE_CHARS;
  let remaining = room - VALUE_CHARS;
  if (typeof value !== 'object' || value === null) return remaining;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && remaining > 0; at += 1) remaining = remainingChars(value[at], remaining);
    return remaining;
  }
  for (const key in value) {
    remaining = remainingChars((value as JsonObject)[key], remaining - key.length);
    if (remaining <= 0) return remaining;
  }
  return remaining;
}

/** The end of a piece of text that begins before `to`: `to`, or one less if that would split a surrogate pair. */
export function pieceEnd(text: string, to: number): number {
  if (to >= text.length) return text.length;
  const isInside = (text.charCodeAt(to - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(to) & 0xfc00) === 0xdc00;
  return isInside ? to + 1 : to;
}

/**
 * What `JSON.stringify` writes, byte for byte, in pieces of about `chars` characters; long strings are divided too. For long values only:
 * a short value is written faster at once.
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

/** Whether JSON omits a value (in a list it is null). */
function isLeftOut(value: unknown): boolean {
  return value === undefined || typeof value === 'function' || typeof value === 'symbol';
}
