import { ResponseHead } from './head.ts';

/** Bytes of a head that are read at once. */
const HEAD_STEP_BYTES = 2_048;
const CHUNK_SIZE_DIGITS_MAX = 13;
const CHUNK_EXTENSION_BYTES_MAX = 1_024;
/** If no more bytes follow the data of a chunk in a read, they are its end and that of the body, or no whole chunk. */
const CHUNKS_END_BYTES = 7;
/** The end of the last line of a head, and the empty line. */
const HEAD_END = Buffer.from('\r\n\r\n');
const [TAB, LF, CR, SPACE, SEMICOLON, DEL] = [9, 10, 13, 32, 59, 127] as const;

type Chunks = 'size' | 'extension' | 'size_lf' | 'chunk' | 'chunk_cr' | 'chunk_lf' | 'trailers';
type State = 'head' | 'length' | 'until_close' | Chunks | 'done';

/** The value of each byte as a hexadecimal digit; -1 for other bytes. */
const HEX_DIGITS = Int8Array.from({ length: 256 }, (_, byte) =>
  /[\da-f]/i.test(String.fromCharCode(byte)) ? Number.parseInt(String.fromCharCode(byte), 16) : -1,
);

/**
 * Reads one answer of HTTP/1.1, in any splitting of its bytes. The caller takes what was read from the fields. Body bytes are copied:
 * the buffer of a read may be used again.
 */
export class ResponseParser {
  /** The code of what breaks the protocol. Nothing is read after it. */
  failure: string | undefined;
  /** Answers with a status of 100 to 199. The caller sets it to 0 when it has counted them. */
  interimAnswers = 0;
  head: ResponseHead | undefined;
  /** Whether the body has an end of its own. */
  isFramed = false;
  /** Whether the connection may be used again after the answer. */
  isKept = false;
  /** The HTTP chunks since the last `takeBody`. A read of a body without chunks counts as one. */
  pieces = 0;
  /** What is read next; `done` at the end of the answer. */
  state: State = 'head';
  #partialHead = new ResponseHead();
  #line = '';
  /** Bytes of the body or of the chunk that have not arrived. */
  #left = 0;
  #count = 0;
  #body: Buffer | undefined;
  #bodyBytes = 0;

  /** Reads to the end of the bytes or of the answer, or until there are `piecesMax` pieces. Returns where it stopped. */
  read(bytes: Buffer, from: number, end: number, piecesMax: number): number {
    let at = from;
    while (at < end && this.failure === undefined && this.pieces < piecesMax) {
      switch (this.state) {
        case 'done':
          return at;
        case 'head':
        case 'trailers':
          at = this.#readLines(bytes, at, end);
          break;
        case 'until_close':
          at = this.#addBody(bytes, at, end, end);
          break;
        case 'length':
        case 'chunk': {
          const stop = Math.min(end, at + this.#left);
          this.#left -= stop - at;
          const isChunk = this.state === 'chunk';
          if (this.#left === 0) this.state = isChunk ? 'chunk_cr' : 'done';
          at = this.#addBody(bytes, at, stop, isChunk ? end : stop);
          break;
        }
        default:
          at = this.#readFraming(bytes, at, end);
      }
    }
    return at;
  }

  /** The bytes of the body since the last call; undefined if there are none. */
  takeBody(): Buffer | undefined {
    const body = this.#body;
    if (body === undefined) return undefined;
    this.#body = undefined;
    this.pieces = 0;
    return body.length === this.#bodyBytes ? body : body.subarray(0, this.#bodyBytes);
  }

  /** Ends the answer with its connection. Returns the code of a failure if it is not complete. */
  finish(): string | undefined {
    if (this.state === 'until_close') this.state = 'done';
    if (this.state === 'done') return undefined;
    if (this.head === undefined || this.isKept) return 'UND_ERR_SOCKET';
    return this.state === 'length' ? 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' : 'HPE_INVALID_EOF_STATE';
  }

  /** Reads what stands between the data of two chunks: the end of one, and the size and the extensions of the next. */
  #readFraming(bytes: Buffer, from: number, end: number): number {
    for (let at = from; at < end; at += 1) {
      const byte = bytes[at]!;
      switch (this.state) {
        case 'size': {
          const digit = HEX_DIGITS[byte]!;
          if (digit !== -1) {
            this.#left = this.#left * 16 + digit;
            this.#count += 1;
            if (this.#count > CHUNK_SIZE_DIGITS_MAX) this.failure = 'HPE_INVALID_CHUNK_SIZE';
          } else if (this.#count > 0 && byte === CR) this.state = 'size_lf';
          else if (this.#count > 0 && byte === SEMICOLON) {
            this.state = 'extension';
            this.#count = 0;
          } else this.failure = 'HPE_INVALID_CHUNK_SIZE';
          break;
        }
        case 'extension':
          this.#count += 1;
          if (byte === CR) this.state = 'size_lf';
          else if ((byte < SPACE && byte !== TAB) || byte === DEL) this.failure = 'HPE_STRICT';
          else if (this.#count > CHUNK_EXTENSION_BYTES_MAX) this.failure = 'HPE_CHUNK_EXTENSIONS_OVERFLOW';
          break;
        case 'size_lf':
          this.state = this.#left === 0 ? 'trailers' : 'chunk';
          if (byte !== LF) this.failure = 'HPE_STRICT';
          return at + 1;
        case 'chunk_cr':
          this.state = 'chunk_lf';
          if (byte !== CR) this.failure = 'HPE_STRICT';
          break;
        case 'chunk_lf':
          this.state = 'size';
          this.#count = 0;
          if (byte !== LF) this.failure = 'HPE_STRICT';
          break;
      }
      if (this.failure !== undefined) return at + 1;
    }
    return end;
  }

  /** Reads lines of a head or of trailers, up to an empty one. */
  #readLines(bytes: Buffer, from: number, end: number): number {
    const limit = Math.min(end, from + HEAD_STEP_BYTES);
    // What follows a head that arrived whole is the body, which is not made a text here.
    const headBytes = this.state === 'head' ? bytes.subarray(from, limit).indexOf(HEAD_END) : -1;
    const stop = headBytes === -1 ? limit : from + headBytes + HEAD_END.length;
    const carried = this.#line.length;
    const text = this.#line + bytes.toString('latin1', from, stop);
    let start = 0;
    while (this.failure === undefined) {
      const checked = start === 0 ? Math.max(0, carried - 1) : start;
      const lineEnd = text.indexOf('\r\n', checked);
      if (lineEnd === -1) {
        this.#line = text.slice(start);
        this.failure = this.#partialHead.checkPart(this.#line, checked - start);
        return stop;
      }
      const line = text.slice(start, lineEnd);
      start = lineEnd + 2;
      if (line === '' && this.#partialHead.status > 0) {
        this.#line = '';
        if (this.state === 'trailers') this.state = 'done';
        else this.#endHead(this.#partialHead);
        break;
      }
      this.failure = this.#partialHead.add(line);
    }
    return from + start - carried;
  }

  #endHead(head: ResponseHead): void {
    const { status, framing } = head;
    const hasBody = framing === 'chunked' || (framing ?? 0) > 0;
    if (status < 200) {
      this.#partialHead = new ResponseHead();
      if (status === 101 || hasBody) this.failure = 'UND_ERR_SOCKET';
      this.interimAnswers += 1;
      return;
    }
    this.head = head;
    const hasNone = status === 204 || status === 304;
    this.isFramed = hasNone || framing !== undefined;
    // A body that is announced and must not follow may follow nevertheless: the next answer would begin with it.
    this.isKept = head.isKept && this.isFramed && !(hasNone && hasBody);
    if (typeof framing === 'number') this.#left = framing;
    if (hasNone || framing === 0) this.state = 'done';
    else if (framing === 'chunked') {
      this.state = 'size';
      // For trailers, which are checked and dropped.
      this.#partialHead = new ResponseHead();
      this.#partialHead.status = status;
    } else this.state = framing === undefined ? 'until_close' : 'length';
  }

  /** Copies bytes up to `stop`. Up to `end` there may be more of the body. */
  #addBody(bytes: Buffer, at: number, stop: number, end: number): number {
    const length = stop - at;
    const used = this.#body === undefined ? 0 : this.#bodyBytes;
    this.pieces += 1;
    if (this.#body === undefined) {
      this.#body = Buffer.allocUnsafe(end - stop > CHUNKS_END_BYTES ? end - at : length);
    } else if (used + length > this.#body.length) {
      this.#body = Buffer.concat([this.#body.subarray(0, used)], used + end - at);
    }
    bytes.copy(this.#body, used, at, stop);
    this.#bodyBytes = used + length;
    return stop;
  }
}
