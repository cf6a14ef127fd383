import { inTurns } from '../../http/in-turns.ts';
import { joined } from '../../http/joined.ts';
import { readSlices } from '../../http/sliced-json.ts';
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { jsonChars, jsonPieces, pieceEnd } from '../../schemas/json-pieces.ts';
import { JsonStructure, type StructureBounds } from '../../schemas/json-structure.ts';

/**
 * A part of a JSON text: text that is already JSON, a value, the arguments of a call as the model wrote them, which should be an object, or
 * text that is made when it is written.
 */
export type JsonPart = string | { value: JsonValue } | { object: string } | { write(): string };

/** Arguments as JSON text of an object. Anything else is wrapped, as for a provider. */
function objectText(text: string, isObject: boolean): string {
  if (text.trim() === '') return '{}';
  return isObject ? text : JSON.stringify({ _raw: text });
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isObjectText(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/** What is within arguments that are written as an object: requests with more could not send them back. */
const argumentBounds: StructureBounds = {
  values_max: limits.answer_values_max,
  levels_max: limits.json_levels_max,
  keys_max: limits.json_keys_max,
};

/** The same check for a long text. Yields to other requests. A text with too many values or levels is no object. */
function* isLongObjectText(text: string): Generator<void, boolean, undefined> {
  const structure = new JsonStructure(argumentBounds);
  for (let at = 0; at < text.length && structure.breach === undefined; at += limits.json_piece_chars) {
    structure.write(text.slice(at, at + limits.json_piece_chars));
    yield;
  }
  if (structure.breach !== undefined) return false;
  try {
    return isObject(yield* readSlices(yield* encoded(text), JSON.parse));
  } catch {
    return false;
  }
}

function textOf(part: JsonPart): string {
  if (typeof part === 'string') return part;
  if ('write' in part) return part.write();
  return 'value' in part ? JSON.stringify(part.value) : objectText(part.object, isObjectText(part.object));
}

/** Approximate length of a part; `most` if it is longer. One that is made when it is written counts as a piece. */
function charsOf(part: JsonPart, most: number): number {
  if (typeof part === 'string') return part.length;
  if ('write' in part) return limits.json_piece_chars;
  return 'object' in part ? part.object.length : jsonChars(part.value, most);
}

const isLongPart = (part: JsonPart) => charsOf(part, limits.json_piece_chars) >= limits.json_piece_chars;

function* encodedPieces(text: string): Generator<Buffer, void, undefined> {
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at + limits.json_piece_chars);
    yield Buffer.from(text.slice(at, end));
    at = end;
  }
}

function* encoded(text: string): Generator<void, Buffer, undefined> {
  const pieces: Buffer[] = [];
  for (const piece of encodedPieces(text)) {
    pieces.push(piece);
    yield;
  }
  return yield* joined(pieces);
}

function* written(parts: readonly JsonPart[]): Generator<void, Buffer, undefined> {
  const pieces: Buffer[] = [];
  let short = '';
  for (const part of parts) {
    if (!isLongPart(part)) {
      short += textOf(part);
      if (short.length < limits.json_piece_chars) continue;
      pieces.push(Buffer.from(short));
      short = '';
      yield;
      continue;
    }
    pieces.push(Buffer.from(short));
    short = '';
    if (typeof part !== 'string' && 'value' in part) {
      for (const piece of jsonPieces(part.value)) {
        pieces.push(piece);
        yield;
      }
      continue;
    }
    const text =
      typeof part === 'string' || 'write' in part
        ? textOf(part)
        : objectText(part.object, yield* isLongObjectText(part.object));
    for (const piece of encodedPieces(text)) {
      pieces.push(piece);
      yield;
    }
  }
  pieces.push(Buffer.from(short));
  return yield* joined(pieces);
}

/** Joins the parts into one text. */
export function joinParts(parts: readonly JsonPart[]): string {
  let text = '';
  for (const part of parts) text += textOf(part);
  return text;
}

/** Joins the parts; a long text is written as bytes, and yields to other requests in between. */
export function writeParts(parts: readonly JsonPart[]): string | Promise<Buffer> {
  if (!isLong(parts)) return joinParts(parts);
  // Never undefined: no `isCancelled` is passed.
  return inTurns(written(parts)).then((bytes) => bytes!);
}

/** Makes the parts, one step a turn of the event loop, and joins them like `writeParts`. */
export function writeSteps(making: Generator<void, JsonPart[], undefined>): string | Promise<string | Buffer> {
  const { done, value } = making.next();
  if (done === true) return writeParts(value);
  // Never undefined: no `isCancelled` is passed.
  return nextTurn().then(async () => writeParts((await inTurns(making))!));
}

/** Approximate length of all parts; at least `most` if they are longer. */
export function partsChars(parts: readonly JsonPart[], most: number): number {
  let chars = 0;
  for (const part of parts) {
    chars += charsOf(part, most - chars);
    if (chars >= most) break;
  }
  return chars;
}

/** The texts of the parts, one by one. */
export function partTexts(parts: readonly JsonPart[]): string[] {
  return parts.map(textOf);
}

/** Whether writing all parts at once would take long. */
function isLong(parts: readonly JsonPart[]): boolean {
  return partsChars(parts, limits.answer_turn_bytes_min) >= limits.answer_turn_bytes_min;
}
