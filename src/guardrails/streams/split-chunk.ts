import { deltasOf } from '../../schemas/chunks.ts';
import type { ChatChunk, Delta } from '../../schemas/inner.ts';

/** The chunk without its empty text. Undefined if nothing else is left in it. */
export function withText(
  chunk: ChatChunk,
  kind: 'content' | 'refusal' | 'reasoning',
  isBare: boolean,
): ChatChunk | undefined {
  if (!isBare) return chunk;
  const { [kind]: _, ...delta } = chunk.delta;
  const slot = chunk.ext?.slot;
  const hasNews =
    Object.keys(delta).length > 0 ||
    chunk.finish_reason != null ||
    chunk.error !== undefined ||
    chunk.ext?.response !== undefined ||
    (slot?.open ?? slot?.raw ?? slot?.close) !== undefined;
  return hasNews ? { ...chunk, delta } : undefined;
}

/** Splits a chunk: the first part opens its block, the second has everything beside the text. */
export function splitChunk(chunk: ChatChunk, head: Delta, rest: Delta): { head: ChatChunk; rest: ChatChunk } {
  const slot = chunk.ext?.slot;
  const { role, ...delta } = chunk.delta;
  const opening = slot?.open === undefined ? {} : { open: slot.open };
  const first: ChatChunk = { delta: role === undefined ? head : { role, ...head } };
  if (slot !== undefined) first.ext = { slot: { n: slot.n, ...opening } };
  const second: ChatChunk = { ...chunk, delta: { ...delta, ...rest } };
  if (slot?.open !== undefined) {
    const { open: _, ...others } = slot;
    second.ext = { ...chunk.ext, slot: others };
  }
  return { head: first, rest: second };
}

/** Splits a chunk with several kinds of content into one for each, in the order of their blocks. */
export function piecesOf(chunk: ChatChunk): readonly ChatChunk[] {
  const { images, ...delta } = chunk.delta;
  const { blocks: deltas, rest: others } = deltasOf(delta);
  // Images are not filtered and stay in the last chunk.
  if (images !== undefined) others.images = images;
  const ends = chunk.finish_reason != null && deltas.length > 0;
  if (deltas.length < 2 && !ends) return [chunk];
  const slot = chunk.ext?.slot;
  const made = deltas.map((one, at): ChatChunk => {
    const opening = at === 0 && slot?.open !== undefined ? { open: slot.open } : {};
    return { delta: one, ...(slot === undefined ? {} : { ext: { slot: { n: slot.n, ...opening } } }) };
  });
  const likely = made.find((one) => one.delta.content);
  const last: ChatChunk = { ...chunk, delta: others };
  if (likely !== undefined && chunk.logprobs !== undefined) {
    likely.logprobs = chunk.logprobs;
    delete last.logprobs;
  }
  if (slot?.open !== undefined) {
    const { open: _, ...rest } = slot;
    last.ext = { ...chunk.ext, slot: rest };
  }
  return [...made, last];
}
