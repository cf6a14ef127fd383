import type { ChatChunk, Delta, Ext, Native, Slot } from '../../schemas/inner.ts';

/** Numbers the blocks of one turn and says in each chunk which block it belongs to. */
export interface SlotWriter {
  /** Whether any block was opened. */
  hasOpened(): boolean;
  /** One block of prose is open at a time: a delta of its kind goes on, one of another kind closes it. */
  emit(kind: Slot['kind'], delta: Delta, chunks: ChatChunk[]): void;
  /** Opens a block that others may interleave with (a call, a native object); closed by its number only. */
  openBeside(opening: { kind: Slot['kind']; ext?: Ext; native?: Native }, delta: Delta, chunks: ChatChunk[]): number;
  close(chunks: ChatChunk[]): void;
  closeBeside(n: number, native: Native | undefined, chunks: ChatChunk[]): void;
}

/** Makes the writer of one answer. `onClose` hears of every block of prose that ends. */
export function createSlotWriter(onClose: (kind: Slot['kind']) => void): SlotWriter {
  let opened = 0;
  let open: { kind: Slot['kind']; n: number } | undefined;

  function close(chunks: ChatChunk[]): void {
    if (open === undefined) return;
    const { kind, n } = open;
    open = undefined;
    chunks.push({ delta: {}, ext: { slot: { n, close: {} } } });
    onClose(kind);
  }

  return {
    hasOpened: () => opened > 0,
    emit(kind, delta, chunks) {
      if (open?.kind === kind) {
        chunks.push({ delta, ext: { slot: { n: open.n } } });
        return;
      }
      close(chunks);
      open = { kind, n: opened };
      opened += 1;
      chunks.push({ delta, ext: { slot: { n: open.n, open: { kind } } } });
    },
    openBeside(opening, delta, chunks) {
      close(chunks);
      const n = opened;
      opened += 1;
      chunks.push({ delta, ext: { slot: { n, open: opening } } });
      return n;
    },
    close,
    closeBeside(n, native, chunks) {
      chunks.push({ delta: {}, ext: { slot: { n, close: native === undefined ? {} : { native } } } });
    },
  };
}
