import { deltasOf } from '../../schemas/chunks.ts';
import type { ChatChunk, Delta } from '../../schemas/inner.ts';

/** The chunk, unless it has nothing to tell any more. */
export function withText(
  chunk: ChatChunk,
  kind: 'content' | 'refusal' | 'reasoning',
  isBare: boolean,
): ChatChunk | undefined {
  if (!isBare) return chunk;
  const { [kind]: _, ...delta } = chunk.delta;
  const slot = chunk.ext?.slot;
  const isNews =
    Object.keys(delta).length > 0 ||
    chunk.finish_reason != null ||
    chunk.error !== undefined ||
    chunk.ext?.response !== undefined ||
    (slot?.open ?? slot?.raw ?? slot?.close) !== undefined;
  return isNews ? { ...chunk, delta } : undefined;
}

/** A chunk in two: the first opens its block, the second has all that stands beside its text. */
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

/** A chunk that says several things, as one for each, in the order in which blocks stand. */
export function piecesOf(chunk: ChatChunk): readonly ChatChunk[] {
  const { images, ...delta } = chunk.delta;
  const { told: deltas, rest: others } = deltasOf(delta);
  // Nothing is looked for in pictures: they stay where they are.
  if (images !== undefined) others.images = images;
  const ends = chunk.finish_reason != null && deltas.length > 0;
  if (deltas.length < 2 && !ends) return [chunk];
  const slot = chunk.ext?.slot;
  const made = deltas.map((told, at): ChatChunk => {
    const opening = at === 0 && slot?.open !== undefined ? { open: slot.open } : {};
    return { delta: told, ...(slot === undefined ? {} : { ext: { slot: { n: slot.n, ...opening } } }) };
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
