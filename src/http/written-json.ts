import type { JsonValue } from '../schemas/json.ts';
import { jsonPieces } from '../schemas/json-pieces.ts';
import { inTurns } from './in-turns.ts';
import { joined } from './joined.ts';

function* written(value: JsonValue): Generator<void, Buffer, undefined> {
  const pieces: Buffer[] = [];
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
