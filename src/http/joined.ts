import { limits } from '../limits.ts';

/** Concatenates buffers in steps of bounded size: `Buffer.concat` of a large body blocks for long. Releases each piece after it is copied. */
export function* joined(pieces: Buffer[]): Generator<void, Buffer, undefined> {
  if (pieces.length === 1) return pieces[0]!;
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const whole = Buffer.allocUnsafeSlow(length);
  let at = 0;
  let copied = 0;
  for (let index = 0; index < pieces.length; index += 1) {
    const piece = pieces[index]!;
    pieces[index] = NONE;
    piece.copy(whole, at);
    at += piece.length;
    copied += piece.length + PIECE_BYTES;
    if (copied < limits.joined_slice_bytes) continue;
    copied = 0;
    yield;
  }
  return whole;
}

const NONE = Buffer.alloc(0);
/** Overhead of a piece, as a number of copied bytes. */
const PIECE_BYTES = 1024;
