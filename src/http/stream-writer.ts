import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { limits } from '../limits.ts';

/** A text that is longer is written at once. */
const PENDING_CHARS_MAX = 16 * 1024;

/** The writers with texts of this turn of the event loop. */
let waiting: StreamWriter[] = [];

function flushAll(): void {
  const writers = waiting;
  waiting = [];
  for (const writer of writers) writer.flush();
}

function flushFirst(writer: StreamWriter): void {
  writer.flush();
}

/**
 * Writes the texts of one stream. What is written in one turn of the event loop is one write to the socket at the end of the turn, after the
 * writes of all streams were collected; the head of the answer and its first texts do not wait for the turn. The chunks of HTTP/1.1 are framed
 * here: Node would write each as four pieces.
 */
export class StreamWriter {
  readonly #response: ServerResponse;
  /** The connection, if this writer frames the chunks. Not set for HTTP/1.0 and for injected requests. */
  readonly #socket: Socket | undefined;
  #pending = '';
  #isHeadSent = false;

  /** Begins the answer. Its head is sent with the first text. */
  constructor(response: ServerResponse, headers: Record<string, string>) {
    this.#response = response;
    response.writeHead(200, headers);
    this.#socket = response.chunkedEncoding && response.socket instanceof Socket ? response.socket : undefined;
    if (this.#socket !== undefined) response.chunkedEncoding = false;
  }

  /** Whether the client has to take what was written before more is read for it. */
  get isFull(): boolean {
    return (this.#socket ?? this.#response).writableNeedDrain;
  }

  /** Adds a text to those of this turn. Returns false if the client has to take it before more is written. */
  write(text: string): boolean {
    const socket = this.#socket;
    if (socket === undefined) return this.#response.write(text);
    if (this.#pending === '') {
      if (!this.#isHeadSent) process.nextTick(flushFirst, this);
      else if (waiting.push(this) === 1) setImmediate(flushAll);
    }
    this.#pending += text;
    if (this.#pending.length > PENDING_CHARS_MAX) this.flush();
    return !socket.writableNeedDrain;
  }

  /** Writes the texts of this turn. */
  flush(): void {
    if (this.#pending === '') return;
    const frame = this.#takeFrame();
    if (this.#response.destroyed) return;
    if (this.#isHeadSent) this.#socket?.write(frame);
    else this.#response.write(frame);
    this.#isHeadSent = true;
  }

  /** Writes the texts of this turn and the end of the stream. */
  end(): void {
    if (this.#socket === undefined) this.#response.end();
    else this.#response.end(`${this.#takeFrame()}0\r\n\r\n`);
  }

  /** Waits until the client has taken what was written. Resolves to false if it left, or did not read for `client_stall_ms_max`. */
  drained(): Promise<boolean> {
    const stream = this.#socket ?? this.#response;
    if (stream.destroyed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const settle = (isTaken: boolean) => {
        clearTimeout(stall);
        stream.off('drain', onDrain);
        stream.off('close', onClose);
        resolve(isTaken);
      };
      const onDrain = () => settle(true);
      const onClose = () => settle(false);
      const stall = setTimeout(() => {
        settle(false);
        stream.destroy();
      }, limits.client_stall_ms_max);
      stream.once('drain', onDrain);
      stream.once('close', onClose);
    });
  }

  /** The pending texts as one chunk. */
  #takeFrame(): string {
    const text = this.#pending;
    this.#pending = '';
    return text === '' ? '' : `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
  }
}
