import { isUtf8 } from 'node:buffer';
import type { JsonObject, JsonValue } from '../schemas/json.ts';
import {
  COLON,
  COMMA,
  END,
  endOfString,
  isEscaped,
  kinds,
  LIST,
  NOTHING,
  OBJECT,
  STRING,
} from '../schemas/json-structure.ts';
import { isWide } from './memory.ts';

/** The bytes that are parsed or scanned before other requests are served. */
export const SLICE_BYTES = 128 * 1024;
/** The most that one parse reads: a slice, and the number, key or space at its end. */
const PARSED_BYTES_MAX = 4 * SLICE_BYTES;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const LIST_END = 0x5d;
const OBJECT_END = 0x7d;

const BLANK = /^[ \t\n\r]*$/;
/** Characters that need no escape in a JSON string, each one byte long. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Parses a complete JSON text. Throws if it is invalid. */
export type ParseText = (text: string) => JsonValue;

/** Why a text cannot be read: it is no JSON, or cannot be read in slices. The message completes a sentence that begins with the text. */
export class UnreadableJson extends Error {
  override readonly name = 'UnreadableJson';
}

function invalid(at: number): UnreadableJson {
  return new UnreadableJson(`is not valid JSON (near byte ${at})`);
}

/** An open list or object. */
interface Frame {
  is_list: boolean;
  opened_at: number;
  /** Offset of the current element: behind the bracket or the last comma. */
  element_at: number;
  /** The key of the current element has been passed. */
  has_key: boolean;
  /** The part of the list or object that was read; undefined if none was. */
  value: JsonValue[] | JsonObject | undefined;
  /** If there is a value: offset of the first byte that is not in it yet. */
  unread_at: number;
  /** If there is a value: the current element is in it. */
  is_taken: boolean;
  /** If there is a value: its own key in its parent object. */
  key: string | undefined;
}

/** The end of a piece of a string: before an escape or a character that `to` would divide. */
function pieceEnd(bytes: Buffer, from: number, to: number): number {
  let end = to;
  while (end > from && (bytes[end]! & 0xc0) === 0x80) end -= 1;
  for (let at = end - 1; at >= Math.max(from, end - 5); at -= 1) {
    if (bytes[at] !== BACKSLASH) continue;
    let first = at;
    while (first > from && bytes[first - 1] === BACKSLASH) first -= 1;
    const beginsEscape = (at - first) % 2 === 0;
    const escapeEnd = at + (bytes[at + 1] === LETTER_U ? 6 : 2);
    return beginsEscape && escapeEnd > end ? at : end;
  }
  return end;
}

class SlicedReader {
  readonly #bytes: Buffer;
  readonly #parse: ParseText;
  readonly #stringBytesMax: number;
  readonly #frames: Frame[] = [];
  /** Offset of the first byte that was not parsed yet. */
  #unreadAt: number;
  #root: JsonValue | undefined;

  constructor(bytes: Buffer, parse: ParseText, stringBytesMax: number) {
    this.#bytes = bytes;
    this.#parse = parse;
    this.#stringBytesMax = stringBytesMax;
    const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    this.#unreadAt = hasMark ? 3 : 0;
  }

  *read(): Generator<void, JsonValue, undefined> {
    const bytes = this.#bytes;
    /** Start of the string that continues in this window. */
    let stringAt: number | undefined;
    let escaped = false;
    for (let windowAt = this.#unreadAt; windowAt < bytes.length; windowAt += SLICE_BYTES) {
      const window = bytes.toString('latin1', windowAt, windowAt + SLICE_BYTES);
      let at = 0;
      if (stringAt !== undefined) {
        const from = escaped ? 1 : 0;
        const end = endOfString(window, from);
        if (end === undefined) escaped = isEscaped(window, window.length, from);
        else {
          if (windowAt + end - stringAt > SLICE_BYTES) yield* this.#longString(stringAt, windowAt + end);
          stringAt = undefined;
        }
        at = end ?? window.length;
      }
      for (; at < window.length; at += 1) {
        const code = window.charCodeAt(at);
        const kind = code < 128 ? kinds[code]! : NOTHING;
        if (kind === NOTHING) continue;
        if (kind !== STRING) {
          this.#sign(kind, windowAt + at);
          continue;
        }
        const end = endOfString(window, at + 1);
        if (end === undefined) {
          stringAt = windowAt + at;
          escaped = isEscaped(window, window.length, at + 1);
          break;
        }
        at = end - 1;
      }
      yield;
    }
    if (this.#root === undefined || this.#frames.length > 0) throw invalid(bytes.length);
    this.#refuseText(this.#unreadAt, bytes.length);
    return this.#root;
  }

  #sign(kind: number, at: number): void {
    const frame = this.#frames.at(-1);
    if (kind === LIST || kind === OBJECT) {
      if (frame === undefined) {
        if (this.#root !== undefined) throw invalid(at);
        this.#refuseText(this.#unreadAt, at);
      }
      this.#frames.push({
        is_list: kind === LIST,
        opened_at: at,
        element_at: at + 1,
        has_key: false,
        value: undefined,
        unread_at: at + 1,
        is_taken: false,
        key: undefined,
      });
      return;
    }
    if (frame === undefined) throw invalid(at);
    if (kind === COLON) frame.has_key = true;
    else if (kind === COMMA) this.#comma(frame, at);
    else if (kind === END) this.#close(frame, at);
  }

  #comma(frame: Frame, at: number): void {
    if (frame.is_taken) this.#refuseText(frame.unread_at, at);
    else if (at - this.#unreadAt >= SLICE_BYTES) {
      this.#begin();
      this.#takeElements(frame, at);
    } else {
      frame.element_at = at + 1;
      frame.has_key = false;
      return;
    }
    frame.is_taken = false;
    frame.has_key = false;
    frame.element_at = at + 1;
    frame.unread_at = at + 1;
    this.#unreadAt = at + 1;
  }

  #close(frame: Frame, at: number): void {
    if (this.#frames.length === 1) this.#begin();
    if (frame.value !== undefined) {
      if (this.#bytes[at] !== (frame.is_list ? LIST_END : OBJECT_END)) throw invalid(at);
      if (frame.is_taken) this.#refuseText(frame.unread_at, at);
      // An empty list or object may contain only space; after a comma, space alone is an error.
      else if (frame.unread_at !== frame.opened_at + 1 || !this.#isBlank(frame.unread_at, at))
        this.#takeElements(frame, at);
      this.#unreadAt = at + 1;
    }
    this.#frames.pop();
    const parent = this.#frames.at(-1);
    if (parent !== undefined && frame.value !== undefined) parent.unread_at = at + 1;
  }

  /** Creates the values of all open frames, with the elements that were passed. */
  #begin(): void {
    let parent: Frame | undefined;
    for (const frame of this.#frames) {
      if (frame.value === undefined) {
        frame.value = frame.is_list ? [] : {};
        if (parent === undefined) this.#root = frame.value;
        else frame.key = this.#takeElement(parent, frame.opened_at, frame.value);
      }
      parent = frame;
    }
  }

  /** Adds a value that was already made to its frame, after the elements before it. Returns its key, which is the text before `to`. */
  #takeElement(frame: Frame, to: number, value: JsonValue): string | undefined {
    if (frame.is_taken) throw invalid(to);
    if (frame.element_at > frame.unread_at) this.#takeElements(frame, frame.element_at - 1);
    frame.is_taken = true;
    if (Array.isArray(frame.value)) {
      this.#refuseText(frame.element_at, to);
      frame.value.push(value);
      return undefined;
    }
    const keyed = this.#parsed(`{${this.#text(frame.element_at, to)}0}`, frame.element_at) as JsonObject;
    const [key] = Object.keys(keyed);
    if (key === undefined) throw invalid(to);
    frame.value![key] = value;
    this.#refusePrototype(frame);
    return key;
  }

  /** Parses and adds all complete elements between what was read and the offset `to`. */
  #takeElements(frame: Frame, to: number): void {
    const from = frame.unread_at;
    const text = this.#text(from, to);
    if (BLANK.test(text)) throw invalid(to);
    const { value } = frame;
    if (Array.isArray(value)) {
      for (const one of this.#parsed(`[${text}]`, from) as JsonValue[]) value.push(one);
      return;
    }
    Object.assign(value!, this.#parsed(`{${text}}`, from));
    this.#refusePrototype(frame);
  }

  /** Refuses a prototype that the parser, which sees only slices, could not. */
  #refusePrototype({ key, value, opened_at }: Frame): void {
    if (key === 'constructor' && Object.hasOwn(value!, 'prototype')) throw invalid(opened_at);
  }

  *#longString(from: number, to: number): Generator<void, void, undefined> {
    const frame = this.#frames.at(-1);
    if (frame === undefined) {
      if (this.#root !== undefined) throw invalid(from);
      this.#refuseText(this.#unreadAt, from);
    } else if (!frame.is_list && !frame.has_key) {
      throw new UnreadableJson(`must not have a key of more than ${SLICE_BYTES} bytes`);
    }
    const isPlain = yield* this.#isPlain(from + 1, to - 1);
    if (isPlain) this.#requireShort(to - from - 2);
    const text = isPlain ? this.#bytes.toString('latin1', from + 1, to - 1) : yield* this.#decoded(from + 1, to - 1);
    this.#unreadAt = to;
    if (frame === undefined) {
      this.#root = text;
      return;
    }
    this.#begin();
    this.#takeElement(frame, from, text);
    frame.unread_at = to;
  }

  /** Whether a string's bytes are its characters, as in base64: then it is made at once, which is much faster than joining pieces. */
  *#isPlain(from: number, to: number): Generator<void, boolean, undefined> {
    for (let at = from; at < to; at += SLICE_BYTES) {
      if (!PLAIN.test(this.#bytes.toString('latin1', at, Math.min(to, at + SLICE_BYTES)))) return false;
      yield;
    }
    return true;
  }

  *#decoded(from: number, to: number): Generator<void, string, undefined> {
    const pieces: string[] = [];
    let length = 0;
    let charBytes = 1;
    for (let at = from; at < to; ) {
      const end = to - at > SLICE_BYTES ? pieceEnd(this.#bytes, at, at + SLICE_BYTES) : to;
      const piece = this.#parsed(`"${this.#text(at, end)}"`, at) as string;
      pieces.push(piece);
      length += piece.length;
      if (charBytes === 1 && isWide(piece)) charBytes = 2;
      this.#requireShort(length * charBytes);
      at = end;
      yield;
    }
    return pieces.join('');
  }

  /** Refuses a string whose memory would take long to write: it is made in one turn of the event loop. */
  #requireShort(bytes: number): void {
    if (bytes <= this.#stringBytesMax) return;
    const wide = 'two bytes for each character if one of them is above U+00FF';
    throw new UnreadableJson(`must not have a string of more than ${this.#stringBytesMax} bytes in memory (${wide})`);
  }

  #text(from: number, to: number): string {
    if (to - from > PARSED_BYTES_MAX) {
      throw new UnreadableJson(`must not have space, a number or a key of more than ${SLICE_BYTES} bytes`);
    }
    const text = this.#bytes.toString('utf8', from, to);
    if (text.includes('\uFFFD') && !isUtf8(this.#bytes.subarray(from, to))) {
      throw new UnreadableJson('is not valid UTF-8');
    }
    return text;
  }

  #parsed(text: string, at: number): JsonValue {
    try {
      return this.#parse(text);
    } catch (error) {
      throw error instanceof UnreadableJson ? error : invalid(at);
    }
  }

  #isBlank(from: number, to: number): boolean {
    return BLANK.test(this.#text(from, to));
  }

  #refuseText(from: number, to: number): void {
    if (!this.#isBlank(from, to)) throw invalid(from);
  }
}

/**
 * Reads a long JSON body slice by slice: each text that `parse` gets is short. Yields between slices. Returns what `parse` of the
 * whole text would return. Throws `UnreadableJson`, also for a string that would take more than `stringBytesMax` bytes of memory.
 */
export function readSlices(
  bytes: Buffer,
  parse: ParseText,
  stringBytesMax = Number.POSITIVE_INFINITY,
): Generator<void, JsonValue, undefined> {
  return new SlicedReader(bytes, parse, stringBytesMax).read();
}
