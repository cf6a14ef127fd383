import { limits } from '../limits.ts';
import type { JsonValue } from '../schemas/json.ts';
import { jsonPieces, pieceEnd } from '../schemas/json-pieces.ts';
import { inTurns } from './in-turns.ts';
import { joined } from './joined.ts';

function* written(value: JsonValue): Generator<void, Buffer, undefined> {
  const pieces: Buffer[] = [];
  // Making the value took a turn already.
  yield;
  for (const piece of jsonPieces(value)) {
    pieces.push(piece);
    yield;
  }
  return yield* joined(pieces);
}

/** The bytes that `JSON.stringify` writes for a long value; yields to other requests in between. */
export async function writeInTurns(value: JsonValue): Promise<Buffer> {
  // Never undefined: no `isCancelled` is passed.
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

/** The bytes of a long text in UTF-8; yields to other requests in between. */
export async function encodeInTurns(text: string): Promise<Buffer> {
  // Never undefined: no `isCancelled` is passed.
  return (await inTurns(encoded(text)))!;
}
