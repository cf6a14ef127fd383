import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectSecurely, type TLSSocket } from 'node:tls';
import { limits } from '../../../limits.ts';
import type { Headers } from './head.ts';
import { ResponseParser } from './parser.ts';
import type { Timed, Wheel } from './wheel.ts';

const TCP_OPTIONS = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 };
/** The margin by which an idle connection is closed before the time that its server states, and the longest idle time. */
const IDLE_MARGIN_MS = 2_000;
const IDLE_MS_MAX = 600_000;

/** The protocol that a TLS handshake may choose in place of HTTP/1.1, and the code with which such a connection is closed. */
export const HTTP2 = 'h2';

/** All sockets read into this buffer: what is kept of a read is copied. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** A failure of a connection, with a code for the log. */
export class ConnectionError extends Error {
  readonly code: string;

  constructor(code: string, cause?: unknown) {
    super(`The connection failed: ${code}`, { cause });
    this.code = code;
  }
}

/** The connection of an answer for its reader. Calls after the end of the answer have no effect. */
export interface AnswerControl {
  readonly paused: boolean;
  resume(reader: AnswerReceiver): void;
  abort(reason: Error, reader: AnswerReceiver): void;
}

/** The reader of one answer. */
export interface AnswerReceiver {
  /** Whether it does not wait any more. */
  readonly ended: boolean;
  /** HTTP chunks that it has not processed. */
  readonly unreadPieces: number;
  sending(control: AnswerControl): void;
  interim(): void;
  head(status: number, headers: Headers, isFramed: boolean): void;
  /** Returns false to pause the connection. */
  data(bytes: Buffer, pieces: number): boolean;
  end(): void;
  /** `isNeverSent`: no byte of the request was written. */
  failed(error: unknown, isNeverSent: boolean): void;
}

export interface Job {
  /** Its head up to its length. */
  head: string;
  /** Undefined for a request without a body. */
  payload: string | Buffer | undefined;
  reader: AnswerReceiver;
  /** Called in place of `reader` if the server chooses HTTP/2. */
  refused(): void;
}

export type ConnectionTimeouts = Record<`upstream_${'connect' | 'headers' | 'idle'}_ms_max`, number>;

export interface ConnectionOwner {
  readonly client: {
    readonly wheel: Wheel;
    readonly timeouts: ConnectionTimeouts;
    nextTurn(connection: Connection): void;
  };
  readonly address: { host: string; port: number };
  /** With the session of the last connection. Undefined without TLS. */
  tls: ConnectionOptions | undefined;
  opened(): void;
  /** The connection has no request and may be used again. */
  freed(connection: Connection): void;
  /** The connection is closed. `job` was not written; `error` if there was never a connection. */
  closed(connection: Connection, job: Job | undefined, error: Error | undefined): void;
}

/** If a name has several addresses, the failures of all are one: a time-out if one of them is. */
function connectError(error: unknown = new ConnectionError('UND_ERR_SOCKET')): Error {
  const isTimeout = error instanceof AggregateError && error.errors.some((each) => each?.code === 'ETIMEDOUT');
  return isTimeout ? new ConnectionError('UND_ERR_CONNECT_TIMEOUT', error) : (error as Error);
}

/** One connection to an origin. It sends a request after the end of the answer before it. */
export class Connection implements AnswerControl, Timed {
  paused = false;
  dueTick: number;
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  #parser = new ResponseParser();
  #job: Job | undefined;
  #reader: AnswerReceiver | undefined;
  #isOpen = false;
  #isClosed = false;
  #isUploading = false;
  /** Received and not parsed, since the reader is slower. */
  #rest: Buffer | undefined;
  #error: Error | undefined;
  #idleUntilMs = 0;

  constructor(owner: ConnectionOwner, job: Job) {
    this.#owner = owner;
    this.#job = job;
    const { wheel, timeouts } = owner.client;
    this.dueTick = wheel.after(timeouts.upstream_connect_ms_max);
    wheel.add(this);
    const onread = { buffer: readBuffer, callback: (length: number) => this.#read(readBuffer, length) };
    const options = { ...owner.address, ...TCP_OPTIONS, onread };
    this.#socket = owner.tls ? connectSecurely({ ...options, ...owner.tls }) : connect(options);
    this.#socket.on(owner.tls ? 'secureConnect' : 'connect', () => {
      if ((this.#socket as TLSSocket).alpnProtocol === HTTP2) {
        this.fail(HTTP2);
        return;
      }
      this.#isOpen = true;
      owner.opened();
      this.flush();
    });
    this.#socket.on('session', (session: Buffer) => {
      owner.tls = { ...owner.tls, session };
    });
    this.#socket.on('error', (error) => this.#break(error));
    this.#socket.on('end', () => this.#over());
    this.#socket.on('close', () => this.#close());
  }

  isUsable(nowMs: number): boolean {
    return !this.#isClosed && nowMs < this.#idleUntilMs;
  }

  /** Takes a request, which `flush` writes. */
  reserve(job: Job): void {
    this.#job = job;
    this.#socket.ref();
  }

  /** Writes the request that it has. Without one it is free. */
  flush(): void {
    const job = this.#job;
    if (this.#isClosed) return;
    if (job === undefined) {
      this.#owner.freed(this);
      return;
    }
    this.#job = undefined;
    const { reader, head, payload } = job;
    if (reader.ended) {
      this.#free(limits.unused_connection_ms_max);
      return;
    }
    this.#parser = new ResponseParser();
    this.#reader = reader;
    reader.sending(this);
    this.#limitTime();
    if (payload === undefined) this.#socket.write(`${head}\r\n`, 'latin1');
    else if (typeof payload === 'string' && payload.length <= limits.joined_slice_bytes) {
      const length = Buffer.byteLength(payload);
      // A text of ASCII, the usual one, is copied and not encoded.
      const encoding = length === payload.length ? 'latin1' : 'utf8';
      this.#socket.write(`${head}content-length: ${length}\r\n\r\n${payload}`, encoding);
    } else {
      const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
      this.#socket.cork();
      this.#socket.write(`${head}content-length: ${bytes.length}\r\n\r\n`, 'latin1');
      this.#upload(bytes, 0);
      this.#socket.uncork();
    }
  }

  /** Writes a body in slices, since the kernel, or TLS, processes each write as a whole. Others are served in between. */
  #upload(bytes: Buffer, from: number): void {
    if (this.#isClosed) return;
    const next = from + limits.joined_slice_bytes;
    this.#isUploading = next < bytes.length;
    if (this.#parser.head === undefined) this.#limitTime();
    const isTaken = this.#socket.write(bytes.subarray(from, next));
    if (!this.#isUploading) return;
    const goOn = () => this.#upload(bytes, next);
    if (isTaken) setImmediate(goOn);
    else this.#socket.once('drain', goOn);
  }

  resume(reader: AnswerReceiver): void {
    if (!this.paused || this.#reader !== reader) return;
    this.paused = false;
    this.#limitTime();
    const rest = this.#rest;
    this.#rest = undefined;
    if (rest === undefined || this.#read(rest, rest.length)) this.#socket.resume();
  }

  abort(_reason: Error, reader: AnswerReceiver): void {
    if (this.#reader === reader) this.destroy();
  }

  destroy(): void {
    this.#reader = undefined;
    this.#isClosed = true;
    this.#socket.destroy();
  }

  fail(code: string): void {
    this.#break(new ConnectionError(code));
    this.#socket.destroy();
  }

  expire(): void {
    if (!this.#isOpen) this.fail('UND_ERR_CONNECT_TIMEOUT');
    else if (this.#reader === undefined) this.destroy();
    else this.fail(this.#parser.head === undefined ? 'UND_ERR_HEADERS_TIMEOUT' : 'UND_ERR_BODY_TIMEOUT');
  }

  #limitTime(): void {
    const { wheel, timeouts } = this.#owner.client;
    if (this.paused) this.dueTick = Number.POSITIVE_INFINITY;
    else if (this.#parser.head === undefined) this.dueTick = wheel.after(timeouts.upstream_headers_ms_max);
    else this.dueTick = wheel.after(timeouts.upstream_idle_ms_max);
  }

  /** Parses received bytes. Returns whether the socket continues to read. */
  #read(bytes: Buffer, length: number, piecesMax: number = limits.upstream_turn_pieces_max): boolean {
    const reader = this.#reader;
    const parser = this.#parser;
    if (this.#rest !== undefined) {
      // TLS hands on all records of one read, also after the socket was paused.
      this.#rest = Buffer.concat([this.#rest, bytes.subarray(0, length)]);
      return false;
    }
    if (reader === undefined) {
      // Bytes that answer no request: the next answer would begin with them.
      this.destroy();
      return false;
    }
    const hadHead = parser.head !== undefined;
    const at = parser.read(bytes, 0, length, piecesMax - reader.unreadPieces);
    // Bytes of an unfinished head do not move the limit of its time.
    const isAlive = parser.interimAnswers > 0 || parser.head !== undefined;
    for (; parser.interimAnswers > 0; parser.interimAnswers -= 1) reader.interim();
    if (!hadHead && parser.head !== undefined && !reader.ended) {
      reader.head(parser.head.status, parser.head.headers, parser.isFramed);
    }
    const { pieces } = parser;
    const body = parser.takeBody();
    if (body !== undefined && !reader.ended) this.paused = !reader.data(body, pieces);
    if (parser.failure !== undefined && this.#reader === reader) this.fail(parser.failure);
    if (this.#reader !== reader) return false;
    if (parser.state === 'done') return this.#endAnswer(reader, at === length);
    if (at < length) {
      const rest = bytes.subarray(at, length);
      this.#rest = bytes === readBuffer ? Buffer.from(rest) : rest;
      this.paused = true;
    }
    if (isAlive) this.#limitTime();
    return !this.paused;
  }

  /** Ends an answer, which nothing followed if it is alone. Returns whether the socket continues to read. */
  #endAnswer(reader: AnswerReceiver, isAlone: boolean): boolean {
    this.#reader = undefined;
    const statedMs = this.#parser.head?.keptMs;
    const idleMs = statedMs === undefined ? limits.unused_connection_ms_max : statedMs - IDLE_MARGIN_MS;
    if (isAlone && this.#parser.isKept && idleMs > 0 && !this.#isUploading) this.#free(idleMs);
    else this.destroy();
    reader.end();
    return !this.#isClosed;
  }

  #free(idleMs: number): void {
    const ms = Math.min(idleMs, IDLE_MS_MAX);
    this.#idleUntilMs = performance.now() + ms;
    this.dueTick = this.#owner.client.wheel.after(ms);
    this.paused = false;
    this.#socket.resume();
    this.#socket.unref();
    this.#owner.client.nextTurn(this);
  }

  #over(): void {
    const rest = this.#rest;
    this.#rest = undefined;
    // By TLS the end may arrive while the socket is paused.
    if (rest !== undefined) this.#read(rest, rest.length, Number.POSITIVE_INFINITY);
    const reader = this.#reader;
    const code = reader === undefined ? undefined : this.#parser.finish();
    if (code !== undefined) this.fail(code);
    else {
      this.destroy();
      reader?.end();
    }
  }

  #break(error: Error): void {
    this.#error ??= error;
    this.#isClosed = true;
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.failed(error, false);
  }

  #close(): void {
    this.#owner.client.wheel.members.delete(this);
    this.#break(new ConnectionError('UND_ERR_SOCKET'));
    const job = this.#job;
    this.#job = undefined;
    this.#owner.closed(this, job, this.#isOpen ? undefined : connectError(this.#error));
  }
}
