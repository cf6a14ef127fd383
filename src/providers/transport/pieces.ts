import { setImmediate as nextTurn } from 'node:timers/promises';
import { limits } from '../../limits.ts';

/**
 * How much of an answer undici holds for a reader, in bytes: a piece has one at least, and a read of the socket may have 10,000 pieces, all
 * of which it would take in one turn of the loop.
 */
export const slowly = { highWaterMark: limits.upstream_turn_pieces_max };

/** The reads of such an answer, with others served after those that may have had so many pieces. */
export async function* inTurns(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  for await (const read of body) {
    yield read;
    if (read.length <= limits.upstream_turn_pieces_max) await nextTurn();
  }
}
