import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';

/**
 * The bytes of an answer that undici buffers for a reader. A chunk has at least one byte, and a socket read may contain 10,000 chunks, all
 * of which undici would otherwise read in one turn of the event loop.
 */
export const boundedReads = { highWaterMark: limits.upstream_turn_pieces_max };

/** The reads of such an answer. Yields to the event loop after each read that may consist of many chunks. */
export async function* yieldingReads(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  for await (const read of body) {
    yield read;
    if (read.length <= limits.upstream_turn_pieces_max) await nextTurn();
  }
}
