const LINE_FEED = 0x0a;
const FIRST_CONTENT = /"content":"[^"]/;

/**
 * Counts the chunks of one event stream (`data:` lines, without comments) for any split of its bytes, and reports when
 * the first text arrives.
 */
export class EventCounter {
  /** The number of chunks so far, including `[DONE]`. */
  chunks = 0;
  readonly #onFirstContent: (() => void) | undefined;
  #hasContent = false;
  #line = '';

  constructor(onFirstContent?: () => void) {
    this.#onFirstContent = onFirstContent;
  }

  /** Takes a slice of the body and returns how many chunks it completed. */
  push(bytes: Buffer, start: number, end: number): number {
    const before = this.chunks;
    let at = start;
    while (at < end) {
      const feed = bytes.indexOf(LINE_FEED, at);
      if (feed === -1 || feed >= end) {
        this.#line += bytes.toString('latin1', at, end);
        break;
      }
      if (this.#line !== '' || !this.#hasContent) this.#take(this.#line + bytes.toString('latin1', at, feed));
      else if (bytes[at] === 0x64 && feed - at > 5) this.chunks += 1;
      this.#line = '';
      at = feed + 1;
    }
    return this.chunks - before;
  }

  #take(line: string): void {
    if (!line.startsWith('data:')) return;
    this.chunks += 1;
    if (this.#hasContent || !FIRST_CONTENT.test(line)) return;
    this.#hasContent = true;
    this.#onFirstContent?.();
  }
}
