import { limits } from '../limits.ts';
import type { JsonValue } from './json.ts';

/** Whether a JSON value is nested deeper than `levelsMax` lists and objects. A text or a number has no level. */
export function isDeeperThan(value: unknown, levelsMax: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levelsMax <= 0) return true;
  // The recursion is at most `levelsMax` deep, however deep the value is.
  for (const name in value) {
    if (isDeeperThan((value as Record<string, unknown>)[name], levelsMax - 1)) return true;
  }
  return false;
}

/** Bounds of a JSON text besides its length. */
export interface StructureBounds {
  values_max: number;
  levels_max: number;
  /** Keys of one object. */
  keys_max: number;
}

/** Bounds of a request body, and of JSON texts inside it. */
const bodyBounds: StructureBounds = {
  values_max: limits.json_values_max,
  levels_max: limits.json_levels_max,
  keys_max: limits.json_keys_max,
};

/** Bounds of answers of upstreams, whose number of values is bounded by their bytes alone. */
export const answerLevels: StructureBounds = {
  values_max: Number.POSITIVE_INFINITY,
  levels_max: limits.answer_levels_max,
  keys_max: Number.POSITIVE_INFINITY,
};

const BACKSLASH = 0x5c;

export const NOTHING = 0;
export const STRING = 1;
export const COMMA = 2;
export const COLON = 3;
export const LIST = 4;
export const OBJECT = 5;
export const END = 6;

/** The meaning of a character of JSON outside strings, by its code. */
export const kinds = new Uint8Array(128);
for (const [chars, kind] of [
  ['"', STRING],
  [',', COMMA],
  [':', COLON],
  ['[', LIST],
  ['{', OBJECT],
  ['}]', END],
] as const)
  for (const char of chars) kinds[char.charCodeAt(0)] = kind;

/** Memory that reading and writing a JSON text takes besides its strings: per object, list, member and text. */
const OBJECT_BYTES = 128;
const LIST_BYTES = 96;
const ENTRY_BYTES = 32;
const TEXT_BYTES = 48;

/** Whether a character is escaped by the backslashes before it. `from` is the first possible offset of one. */
export function isEscaped(text: string, at: number, from: number): boolean {
  let first = at;
  while (first > from && text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** The offset behind the closing quote of a string that is open at `from`; undefined if the text ends first. */
export function endOfString(text: string, from: number): number | undefined {
  for (let end = text.indexOf('"', from); end !== -1; end = text.indexOf('"', end + 1)) {
    if (text.charCodeAt(end - 1) !== BACKSLASH || !isEscaped(text, end, from)) return end + 1;
  }
  return undefined;
}

/**
 * Counts the structure of a JSON text before it is parsed, at once or piece by piece as it arrives. Pieces may be cut anywhere, and may be
 * bytes read as Latin-1. It does not validate: it counts something in invalid JSON as well, within the same bounds.
 */
export class JsonStructure {
  readonly #bounds: StructureBounds;
  /** Number of keys of the open objects, by level. */
  readonly #keys: number[] = [0];
  #entries = 1;
  /** An upper bound, in bytes, of what reading and writing the text takes besides copies of its length. */
  memory_bytes = 0;
  #isInString = false;
  /** The last piece ended inside a string, after a backslash that escapes the next character. */
  #isEscaped = false;
  /** The rule that the text breaks, which completes a sentence; undefined if none so far. Counting stops there. */
  breach: string | undefined;

  constructor(bounds: StructureBounds = bodyBounds) {
    this.#bounds = bounds;
  }

  /** Number of values so far, including lists and objects. An empty one counts twice; keys do not count. */
  get values(): number {
    return this.#entries;
  }

  /** Counts a piece, up to the first breach. */
  write(text: string): void {
    if (this.breach !== undefined || text === '') return;
    const { values_max, levels_max, keys_max } = this.#bounds;
    const keys = this.#keys;
    const { length } = text;
    let level = keys.length - 1;
    let entries = this.#entries;
    let memoryBytes = this.memory_bytes;
    let mostKeys = 0;
    let at = this.#isInString ? this.#endString(text, this.#isEscaped ? 1 : 0) : 0;
    for (; at < length; at += 1) {
      const code = text.charCodeAt(at);
      const kind = code < 128 ? kinds[code]! : NOTHING;
      if (kind === NOTHING) continue;
      if (kind === STRING) {
        memoryBytes += TEXT_BYTES;
        at = (endOfString(text, at + 1) ?? this.#endString(text, at + 1)) - 1;
      } else if (kind <= COLON) {
        memoryBytes += ENTRY_BYTES;
        if (kind === COMMA) {
          entries += 1;
          if (entries > values_max) break;
        } else {
          const count = keys[level]! + 1;
          keys[level] = count;
          if (count > mostKeys) mostKeys = count;
        }
      } else if (kind === END) {
        if (level > 0) {
          keys.pop();
          level -= 1;
        }
      } else {
        entries += 1;
        if (entries > values_max) break;
        memoryBytes += kind === OBJECT ? OBJECT_BYTES : LIST_BYTES;
        keys.push(0);
        level += 1;
        if (level > levels_max) {
          this.breach = `must not be nested deeper than ${levels_max} levels`;
          return;
        }
      }
    }
    this.#entries = entries;
    this.memory_bytes = memoryBytes;
    if (entries > values_max) this.breach = `must not have more than ${values_max} values`;
    else if (mostKeys > keys_max) this.breach = `must not have an object with more than ${keys_max} keys`;
  }

  /** The end of an open string, or of the piece. */
  #endString(text: string, from: number): number {
    const end = endOfString(text, from);
    this.#isInString = end === undefined;
    this.#isEscaped = end === undefined && isEscaped(text, text.length, from);
    return end ?? text.length;
  }
}

/** Whether a text has more than `count` opening brackets anywhere. If not, it has no more levels than that. */
function hasOpenings(text: string, count: number): boolean {
  let openings = 0;
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      openings += 1;
      if (openings > count) return true;
    }
  }
  return false;
}

/**
 * The rule that a JSON text breaks, which completes a sentence; undefined if none. A text that is too short to break a bound is not
 * scanned.
 */
export function structureBreach(text: string, bounds: StructureBounds = bodyBounds): string | undefined {
  const { levels_max, keys_max, values_max } = bounds;
  // A key takes at least four characters, a level two.
  const isShort = text.length <= 4 * keys_max && text.length <= values_max;
  if (isShort && (text.length <= 2 * levels_max || !hasOpenings(text, levels_max))) return undefined;
  const structure = new JsonStructure(bounds);
  structure.write(text);
  return structure.breach;
}

/** Parses the answer of a service that is no model, within the bounds of requests. Throws `SyntaxError` for a text beyond them, or invalid JSON. */
export function parseServiceJson(text: string): JsonValue {
  const breach = structureBreach(text);
  if (breach !== undefined) throw new SyntaxError(`JSON ${breach}`);
  return JSON.parse(text) as JsonValue;
}
