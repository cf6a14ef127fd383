import { createHash } from 'node:crypto';
import { limits } from '../limits.ts';
import { inTurns } from './in-turns.ts';

function* digested(bytes: Buffer): Generator<void, string, undefined> {
  const digest = createHash('sha256');
  for (let at = 0; at < bytes.length; at += limits.joined_slice_bytes) {
    digest.update(bytes.subarray(at, at + limits.joined_slice_bytes));
    yield;
  }
  return digest.digest('hex');
}

/** The SHA-256 of a long buffer as hexadecimal digits; yields to other requests in between. */
export async function digestInTurns(bytes: Buffer): Promise<string> {
  // Never undefined: no `isCancelled` is passed.
  return (await inTurns(digested(bytes)))!;
}
