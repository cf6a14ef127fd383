import { limits } from '../limits.ts';
import type { JsonValue } from './json.ts';

/** Whether a value of parsed JSON has more than so many levels of lists and objects inside each other; a text or a number has none. */
export function isDeeperThan(value: unknown, levels_max: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels_max <= 0) return true;
  // At most `levels_max` calls inside each other, however deep the value is.
  for (const name in value) {
    if (isDeeperThan((value as Record<string, unknown>)[name], levels_max - 1)) return true;
  }
  return false;
}

/** What bounds a text of JSON apart from its length. */
export interface StructureBounds {
  values_max: number;
  levels_max: number;
  /** Of one object. */
  keys_max: number;
}

/** The bounds of a request's body, and of each text in it that is read as JSON. */
const bodyBounds: StructureBounds = {
  values_max: limits.json_values_max,
  levels_max: limits.json_levels_max,
  keys_max: limits.json_keys_max,
};

/** The bounds of what an upstream sends, where its values are bounded by nothing but their bytes. */
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

/** What a character of JSON outside of strings means, by its code. */
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

/** What reading and writing again make of a JSON text beside its strings: an object, a list, what stands in either, a text. */
const OBJECT_BYTES = 128;
const LIST_BYTES = 96;
const ENTRY_BYTES = 32;
const TEXT_BYTES = 48;

/** Whether a character is escaped by the backslashes before it, of which the first may stand at `from`. */
export function isEscaped(text: string, at: number, from: number): boolean {
  let first = at;
  while (first > from && text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** Where a string ends that is open at `from`: behind its quote; undefined where the text ends before. */
export function endOfString(text: string, from: number): number | undefined {
  for (let end = text.indexOf('"', from); end !== -1; end = text.indexOf('"', end + 1)) {
    if (text.charCodeAt(end - 1) !== BACKSLASH || !isEscaped(text, end, from)) return end + 1;
  }
  return undefined;
}

/**
 * Counts the structure of a text of JSON before it is parsed: whole, or piece by piece as it comes. Pieces may be cut anywhere and may
 * be bytes read as Latin-1. It is no parser: of what is no JSON it counts something, within the same bounds.
 */
export class JsonStructure {
  readonly #bounds: StructureBounds;
  /** How many keys the objects have that are open, by level. */
  readonly #keys: number[] = [0];
  #entries = 1;
  #memory_bytes = 0;
  #is_in_string = false;
  /** A piece ended inside a string, after a backslash that escapes what comes. */
  #is_escaped = false;
  /** The rule that the text breaks, as the end of a sentence; undefined: none so far. Nothing is counted after it. */
  breach: string | undefined;

  constructor(bounds: StructureBounds = bodyBounds) {
    this.#bounds = bounds;
  }

  /** Values so far, lists and objects among them; an empty one counts twice, and keys are none. */
  get values(): number {
    return this.#entries;
  }

  /** An upper bound of what reading the text and writing it again take beside copies of its length. */
  get memory_bytes(): number {
    return this.#memory_bytes;
  }

  /** Counts the next piece, up to the first breach. */
  write(text: string): void {
    if (this.breach !== undefined || text === '') return;
    const { values_max, levels_max, keys_max } = this.#bounds;
    const keys = this.#keys;
    const { length } = text;
    let level = keys.length - 1;
    let entries = this.#entries;
    let memory_bytes = this.#memory_bytes;
    let most_keys = 0;
    let at = this.#is_in_string ? this.#endString(text, this.#is_escaped ? 1 : 0) : 0;
    for (; at < length; at += 1) {
      const code = text.charCodeAt(at);
      const kind = code < 128 ? kinds[code]! : NOTHING;
      if (kind === NOTHING) continue;
      if (kind === STRING) {
        memory_bytes += TEXT_BYTES;
        at = (endOfString(text, at + 1) ?? this.#endString(text, at + 1)) - 1;
      } else if (kind <= COLON) {
        memory_bytes += ENTRY_BYTES;
        if (kind === COMMA) {
          entries += 1;
          if (entries > values_max) break;
        } else {
          const count = keys[level]! + 1;
          keys[level] = count;
          if (count > most_keys) most_keys = count;
        }
      } else if (kind === END) {
        if (level > 0) {
          keys.pop();
          level -= 1;
        }
      } else {
        entries += 1;
        if (entries > values_max) break;
        memory_bytes += kind === OBJECT ? OBJECT_BYTES : LIST_BYTES;
        keys.push(0);
        level += 1;
        if (level > levels_max) {
          this.breach = `must not be nested deeper than ${levels_max} levels`;
          return;
        }
      }
    }
    this.#entries = entries;
    this.#memory_bytes = memory_bytes;
    if (entries > values_max) this.breach = `must not have more than ${values_max} values`;
    else if (most_keys > keys_max) this.breach = `must not have an object with more than ${keys_max} keys`;
  }

  /** Where an open string ends, or the piece does. */
  #endString(text: string, from: number): number {
    const end = endOfString(text, from);
    this.#is_in_string = end === undefined;
    this.#is_escaped = end === undefined && isEscaped(text, text.length, from);
    return end ?? text.length;
  }
}

/** Whether a text has more opening brackets than this, wherever they stand: fewer are no more levels. */
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
 * The rule that a text breaks which is to be read as JSON, as the end of a sentence; undefined: none. A text of a few levels that is too short
 * for too many values and keys is not scanned.
 */
export function structureBreach(text: string, bounds: StructureBounds = bodyBounds): string | undefined {
  const { levels_max, keys_max, values_max } = bounds;
  // A key takes four characters at least, and a level two.
  const is_short = text.length <= 4 * keys_max && text.length <= values_max;
  if (is_short && (text.length <= 2 * levels_max || !hasOpenings(text, levels_max))) return undefined;
  const structure = new JsonStructure(bounds);
  structure.write(text);
  return structure.breach;
}

/** What a service that is no model says, within the bounds of requests. Throws `SyntaxError` for what is beyond them or no JSON. */
export function parseServiceJson(text: string): JsonValue {
  const breach = structureBreach(text);
  if (breach !== undefined) throw new SyntaxError(`JSON ${breach}`);
  return JSON.parse(text) as JsonValue;
}
