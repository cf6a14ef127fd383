/** What a reader reports: one head, then the body's bytes without their transfer coding, then the end. Slices are valid during the call only. */
export interface HttpSink {
  onHead(head: string): void;
  onBody(bytes: Buffer, start: number, end: number): void;
  onEnd(): void;
}

type State = 'head' | 'length' | 'chunk_size' | 'chunk' | 'chunk_crlf' | 'trailer';

const CR_LF_CR_LF = Buffer.from('\r\n\r\n');
const LINE_FEED = 0x0a;

/**
 * Reads HTTP/1.1 messages of either direction for any split of their bytes. It is made for the ends of the benchmark,
 * where a complete parser would be the bottleneck.
 */
export class HttpReader {
  readonly #sink: HttpSink;
  #state: State = 'head';
  #remaining = 0;
  #pending: Buffer | undefined;

  constructor(sink: HttpSink) {
    this.#sink = sink;
  }

  push(read: Buffer): void {
    const bytes = this.#pending === undefined ? read : Buffer.concat([this.#pending, read]);
    this.#pending = undefined;
    let at = 0;
    while (at < bytes.length) {
      const next = this.#step(bytes, at);
      if (next === -1) {
        this.#pending = Buffer.from(bytes.subarray(at));
        return;
      }
      at = next;
    }
  }

  /** Reads one element from `at`, and returns where the next begins, or -1 if the element is incomplete. */
  #step(bytes: Buffer, at: number): number {
    switch (this.#state) {
      case 'head': {
        const end = bytes.indexOf(CR_LF_CR_LF, at);
        if (end === -1) return -1;
        this.#enterBody(bytes.toString('latin1', at, end + 2));
        return end + 4;
      }
      case 'length':
      case 'chunk': {
        const end = Math.min(bytes.length, at + this.#remaining);
        this.#remaining -= end - at;
        this.#sink.onBody(bytes, at, end);
        if (this.#remaining === 0) {
          if (this.#state === 'length') this.#finish();
          else this.#state = 'chunk_crlf';
        }
        return end;
      }
      case 'chunk_size': {
        const end = bytes.indexOf(LINE_FEED, at);
        if (end === -1) return -1;
        this.#remaining = Number.parseInt(bytes.toString('latin1', at, end), 16);
        this.#state = this.#remaining === 0 ? 'trailer' : 'chunk';
        return end + 1;
      }
      case 'chunk_crlf': {
        if (bytes.length - at < 2) return -1;
        this.#state = 'chunk_size';
        return at + 2;
      }
      case 'trailer': {
        const end = bytes.indexOf(LINE_FEED, at);
        if (end === -1) return -1;
        if (end - at <= 1) this.#finish();
        return end + 1;
      }
    }
  }

  #enterBody(head: string): void {
    this.#sink.onHead(head);
    const lower = head.toLowerCase();
    if (lower.includes('\r\ntransfer-encoding: chunked')) {
      this.#state = 'chunk_size';
      return;
    }
    const field = lower.indexOf('\r\ncontent-length:');
    this.#remaining = field === -1 ? 0 : Number.parseInt(lower.slice(field + 17), 10);
    this.#state = 'length';
    if (this.#remaining === 0) this.#finish();
  }

  #finish(): void {
    this.#state = 'head';
    this.#sink.onEnd();
  }
}
