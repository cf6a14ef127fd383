import { limits } from '../../limits.ts';

/**
 * What an upstream sends after the end of its answer: usage that arrives late, the end of the connection, or, where it is broken or
 * hostile, bytes without end. All of it together has one time and one number of bytes.
 */
export class AnswerTail {
  readonly #until_ms = performance.now() + limits.upstream_tail_ms_max;
  #bytes = 0;

  /** Counts a read. */
  add(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Nothing more of it is read. */
  get isOver(): boolean {
    return this.#bytes > limits.upstream_tail_bytes_max || performance.now() >= this.#until_ms;
  }

  /** Waits for what arrives next, at most until the tail is over. */
  async wait(arrival: Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.max(0, this.#until_ms - performance.now()));
    });
    await Promise.race([arrival, over]);
    clearTimeout(timer);
  }
}
