import type { ChatChunk, Delta, Ext, Native, Slot } from '../../schemas/inner.ts';

/**
 * Numbers the blocks of one turn and says in each chunk which block it belongs to. `onClose` hears of every block of prose that
 * ends. A class and not closures, as all that there is of one for every stream.
 */
export class SlotWriter {
  readonly #onClose: (kind: Slot['kind']) => void;
  #opened = 0;
  #open: { kind: Slot['kind']; n: number } | undefined = undefined;

  constructor(onClose: (kind: Slot['kind']) => void) {
    this.#onClose = onClose;
  }

  /** Whether any block was opened. */
  hasOpened(): boolean {
    return this.#opened > 0;
  }

  /** One block of prose is open at a time: a delta of its kind goes on, one of another kind closes it. */
  emit(kind: Slot['kind'], delta: Delta, chunks: ChatChunk[]): void {
    if (this.#open?.kind === kind) {
      chunks.push({ delta, ext: { slot: { n: this.#open.n } } });
      return;
    }
    this.close(chunks);
    const n = this.#opened;
    this.#open = { kind, n };
    this.#opened += 1;
    chunks.push({ delta, ext: { slot: { n, open: { kind } } } });
  }

  /** Opens a block that others may interleave with (a call, a native object); closed by its number only. */
  openBeside(opening: { kind: Slot['kind']; ext?: Ext; native?: Native }, delta: Delta, chunks: ChatChunk[]): number {
    this.close(chunks);
    const n = this.#opened;
    this.#opened += 1;
    chunks.push({ delta, ext: { slot: { n, open: opening } } });
    return n;
  }

  close(chunks: ChatChunk[]): void {
    if (this.#open === undefined) return;
    const { kind, n } = this.#open;
    this.#open = undefined;
    chunks.push({ delta: {}, ext: { slot: { n, close: {} } } });
    this.#onClose(kind);
  }

  closeBeside(n: number, native: Native | undefined, chunks: ChatChunk[]): void {
    chunks.push({ delta: {}, ext: { slot: { n, close: native === undefined ? {} : { native } } } });
  }
}
