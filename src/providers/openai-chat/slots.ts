import type { ChatChunk, Delta, Ext, Native, Slot } from '../../schemas/inner.ts';

/**
 * Numbers the blocks of one turn and adds the block's number to each chunk. A class instead of closures, for speed, like all objects of a stream.
 */
export class SlotWriter {
  /** Called for every reasoning block that ends. */
  onReasoningEnd: (() => void) | undefined = undefined;
  /** The number of blocks that were opened. */
  opened = 0;
  #open: { kind: Slot['kind']; n: number } | undefined = undefined;

  /** Adds to the open block of this kind, or closes the open one and opens another: one is open at a time. */
  emit(kind: Slot['kind'], delta: Delta, chunks: ChatChunk[]): void {
    if (this.#open?.kind === kind) {
      chunks.push({ delta, ext: { slot: { n: this.#open.n } } });
      return;
    }
    this.close(chunks);
    const n = this.opened;
    this.#open = { kind, n };
    this.opened += 1;
    chunks.push({ delta, ext: { slot: { n, open: { kind } } } });
  }

  /** Opens a block that may interleave with others (a call, a native object). It is closed by its number only. */
  openBeside(opening: { kind: Slot['kind']; ext?: Ext; native?: Native }, delta: Delta, chunks: ChatChunk[]): number {
    this.close(chunks);
    const n = this.opened;
    this.opened += 1;
    chunks.push({ delta, ext: { slot: { n, open: opening } } });
    return n;
  }

  close(chunks: ChatChunk[]): void {
    if (this.#open === undefined) return;
    const { kind, n } = this.#open;
    this.#open = undefined;
    chunks.push({ delta: {}, ext: { slot: { n, close: {} } } });
    if (kind === 'reasoning') this.onReasoningEnd?.();
  }

  closeBeside(n: number, native: Native | undefined, chunks: ChatChunk[]): void {
    chunks.push({ delta: {}, ext: { slot: { n, close: native === undefined ? {} : { native } } } });
  }
}
