import { limits } from '../limits.ts';
import type { JsonValue } from '../schemas/json.ts';
import { jsonPieces, pieceEnd } from '../schemas/json-pieces.ts';
import { inTurns } from './in-turns.ts';
import { joined } from './joined.ts';

function* written(value: JsonValue): Generator<void, Buffer, undefined> {
  const pieces: Buffer[] = [];
  // The value was made just now, which took its time as well.
  yield;
  for (const piece of jsonPieces(value)) {
    pieces.push(piece);
    yield;
  }
  return yield* joined(pieces);
}

/** The bytes of what `JSON.stringify` writes of a long value, with others served in between. */
export async function writeInTurns(value: JsonValue): Promise<Buffer> {
  // It is always wanted.
  return (await inTurns(written(value)))!;
}

function* encoded(text: string): Generator<void, Buffer, undefined> {
  const pieces: Buffer[] = [];
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at + limits.json_piece_chars);
    pieces.push(Buffer.from(text.slice(at, end)));
    at = end;
    yield;
  }
  return yield* joined(pieces);
}

/** The bytes of a long text in UTF-8, with others served in between. */
export async function encodeInTurns(text: string): Promise<Buffer> {
  // It is always wanted.
  return (await inTurns(encoded(text)))!;
}
