import type { ChatChunk, Delta, SlotEvent } from '../../schemas/inner.ts';

/** One block of a stream. */
export interface BlockSlot {
  /** A chunk of the block; the first one opens it. */
  emit(delta: Delta, event?: Omit<SlotEvent, 'n' | 'open'>): ChatChunk;
  isOpen(): boolean;
  /** The block's last chunk; none if the block was never opened. */
  close(delta?: Delta, event?: NonNullable<SlotEvent['close']>): ChatChunk[];
}

/** A slot that opens with its first chunk: an empty block is no slot. `counts` is shared by the turn. */
export function createSlot(counts: { slots: number }, opening: NonNullable<SlotEvent['open']>): BlockSlot {
  let n: number | undefined;
  const emit: BlockSlot['emit'] = (delta, event = {}) => {
    if (n !== undefined) return { delta, ext: { slot: { n, ...event } } };
    n = counts.slots;
    counts.slots += 1;
    return { delta, ext: { slot: { n, open: opening, ...event } } };
  };
  return {
    emit,
    isOpen: () => n !== undefined,
    close: (delta = {}, event = {}) => (n === undefined ? [] : [emit(delta, { close: event })]),
  };
}
