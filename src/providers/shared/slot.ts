import type { ChatChunk, Delta, SlotEvent } from '../../schemas/inner.ts';

/** One block of a stream. */
export interface BlockSlot {
  /** A chunk of the block; the first one opens it. */
  say(delta: Delta, event?: Omit<SlotEvent, 'n' | 'open'>): ChatChunk;
  isOpen(): boolean;
  /** The block's last chunk; none where it was never opened. */
  close(delta?: Delta, told?: NonNullable<SlotEvent['close']>): ChatChunk[];
}

/** Makes a slot that opens with its first chunk: a block that says nothing is no slot. `counts` is shared by the turn. */
export function createSlot(counts: { slots: number }, opening: NonNullable<SlotEvent['open']>): BlockSlot {
  let n: number | undefined;
  const say: BlockSlot['say'] = (delta, event = {}) => {
    if (n !== undefined) return { delta, ext: { slot: { n, ...event } } };
    n = counts.slots;
    counts.slots += 1;
    return { delta, ext: { slot: { n, open: opening, ...event } } };
  };
  return {
    say,
    isOpen: () => n !== undefined,
    close: (delta = {}, told = {}) => (n === undefined ? [] : [say(delta, { close: told })]),
  };
}

/** Low surrogates are not counted, so a pair counts once, also when it is split over two deltas. */
export function countCodePoints(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0xdc00 || unit > 0xdfff) count += 1;
  }
  return count;
}
