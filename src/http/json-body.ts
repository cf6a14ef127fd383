import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { hasLongIntegers, type JsonValue, parseJson } from '../schemas/json.ts';
import { JsonStructure } from '../schemas/json-structure.ts';
import { inTurns } from './in-turns.ts';
import { joined } from './joined.ts';
import { type Claim, hasWideCharacter, isWide } from './memory.ts';
import type { HttpRequest } from './request.ts';
import { type ParseText, readSlices, SLICE_BYTES, UnreadableJson } from './sliced-json.ts';

/** Fastify's own JSON parser, which calls back synchronously. */
export type FastifyParse = (
  request: HttpRequest,
  text: string,
  done: (error: Error | null, value?: unknown) => void,
) => void;

const CHARSET = /;\s*charset\s*=\s*"?([^\s";]+)/i;

function refused(rule: string): GatewayError {
  return new GatewayError(400, `The request body ${rule}`);
}

/** Chunks shorter than this are gathered in blocks. */
const SHORT_CHUNK_BYTES = 1024;
const BLOCK_BYTES = 16 * 1024;
/** Never changed: the first chunk makes a list. */
const NO_CHUNKS: Buffer[] = [];

const PROTOTYPE_RULE = 'must not have the key "__proto__", nor "constructor" with a "prototype"';

function checkCharset(contentType: string | undefined): void {
  const charset = CHARSET.exec(contentType ?? '')?.[1];
  if (charset !== undefined && !/^(?:utf-?8|us-ascii)$/i.test(charset)) {
    throw new GatewayError(400, `content-type: charset ${charset} is not supported; JSON is sent as UTF-8`);
  }
}

/** Throws if a body has another length than its request announced. */
export function requireLength({ headers }: HttpRequest, length: number): void {
  const announced = headers['content-length'];
  if (announced !== undefined && Number(announced) !== length) {
    throw new GatewayError(400, 'The length of the request body differs from its content-length header');
  }
}

/** Removes a byte order mark, as the first parse does. */
function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/** The error of a body that the parser refuses. It does not echo the text that the parser quotes. */
function refusedJson(text: string): GatewayError {
  try {
    JSON.parse(withoutMark(text));
  } catch (error) {
    const where = /at position \d+|end of JSON input/i.exec((error as Error).message)?.[0] ?? 'it cannot be parsed';
    return refused(`is not valid JSON (${where})`);
  }
  return refused(PROTOTYPE_RULE);
}

/**
 * A JSON body as it arrives: a short one is collected; the structure of a long one is also counted piece by piece. A body that breaks a
 * bound of `JsonStructure` is refused before it is parsed, and its chunks are dropped. A long body is parsed slice by slice, and yields to
 * other requests in between.
 */
export class JsonBody implements ReceivedBody {
  readonly #request: HttpRequest;
  readonly #claim: Claim | undefined;
  readonly #parse: FastifyParse;
  readonly #bytesMax: number;
  readonly #structure = new JsonStructure();
  #chunks: Buffer[] = NO_CHUNKS;
  /** The block that short chunks are gathered in, the last of `#chunks`: a short chunk by itself takes far more memory than its length. */
  #block: Buffer | undefined;
  #length = 0;
  #isWide = false;
  #refusal: GatewayError | undefined;

  /** `claim`: the memory for reading, beyond the copies of the body, which are claimed already. */
  constructor(request: HttpRequest, claim: Claim | undefined, parse: FastifyParse) {
    this.#request = request;
    this.#claim = claim;
    this.#parse = parse;
    this.#bytesMax = request.route.bodyLimit ?? limits.body_bytes_max;
  }

  /** Adds a chunk. Throws if the rest of the body must not be read. */
  write(chunk: Buffer): void {
    const wasLong = this.#length > SLICE_BYTES;
    this.#length += chunk.length;
    if (this.#length > this.#bytesMax) throw new GatewayError(413, 'Request payload too large');
    // A refused body is read to its end and dropped, so that a client that still sends sees the answer.
    if (this.#refusal !== undefined) return;
    // A list of one takes less memory than an empty one that grows.
    if (this.#chunks.length === 0) this.#chunks = [chunk];
    else if (chunk.length < SHORT_CHUNK_BYTES) this.#gather(chunk);
    else this.#chunks.push(chunk);
    if (this.#length <= SLICE_BYTES) return;
    for (const piece of wasLong ? [chunk] : this.#chunks) {
      this.#structure.write(piece.toString('latin1'));
      this.#isWide ||= hasWideCharacter(piece);
    }
    const { breach } = this.#structure;
    if (breach === undefined) return;
    this.#refusal = refused(breach);
    this.#chunks = NO_CHUNKS;
  }

  #gather(chunk: Buffer): void {
    const last = this.#chunks.at(-1);
    let block = this.#block;
    const taken = block !== undefined && last?.buffer === block.buffer ? last.length : 0;
    if (block === undefined || taken === 0 || taken + chunk.length > block.length) {
      block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#block = block;
      chunk.copy(block);
      this.#chunks.push(block.subarray(0, chunk.length));
      return;
    }
    chunk.copy(block, taken);
    this.#chunks[this.#chunks.length - 1] = block.subarray(0, taken + chunk.length);
  }

  /** Parses the complete body. */
  end(): unknown {
    if (this.#refusal !== undefined) throw this.#refusal;
    const request = this.#request;
    requireLength(request, this.#length);
    if (this.#length === 0) throw new GatewayError(400, 'The request body is empty; a JSON object is expected');
    const contentType = request.headers['content-type'];
    if (contentType !== 'application/json') checkCharset(contentType);
    const chunks = this.#chunks;
    this.#chunks = NO_CHUNKS;
    if (this.#length > SLICE_BYTES) return this.#readLong(chunks);
    const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    const text = bytes.toString('utf8');
    // Invalid bytes decode to this character, which may also have been sent.
    if (text.includes('\uFFFD') && !isUtf8(bytes)) throw refused('is not valid UTF-8');
    this.#structure.write(text);
    if (this.#structure.breach !== undefined) throw refused(this.#structure.breach);
    const { regain } = request.route.config;
    const keepsLongIntegers = regain !== undefined && hasLongIntegers(text);
    // A text of ASCII, the usual one, has as many characters as bytes.
    const wideBytes = text.length < this.#length && isWide(text) ? this.#length * limits.body_copies : 0;
    const memoryBytes = (this.#structure.memory_bytes + wideBytes) * (keepsLongIntegers ? 2 : 1);
    const parse = () => {
      let value: unknown;
      this.#parse(request, text, (failure, body) => {
        if (failure !== null) throw refusedJson(text);
        value = body;
      });
      if (keepsLongIntegers) regain(value, parseJson(withoutMark(text)));
      return value;
    };
    const waiting = this.#claim?.take(memoryBytes);
    return waiting === undefined ? parse() : waiting.then(parse);
  }

  /** Whether the client left. */
  #isCancelled(): boolean {
    return this.#request.raw.socket?.destroyed === true;
  }

  async #readLong(chunks: Buffer[]): Promise<unknown> {
    this.#request.long_body_bytes = this.#length;
    const wideBytes = this.#isWide ? this.#length * limits.body_copies : 0;
    const memoryBytes = this.#structure.memory_bytes + wideBytes;
    await this.#claim?.take(memoryBytes);
    const bytes = await inTurns(joined(chunks), () => this.#isCancelled());
    if (bytes === undefined) return undefined;
    const { regain } = this.#request.route.config;
    let hasLong = false;
    const body = await this.#slices(bytes, (text) => {
      hasLong ||= regain !== undefined && hasLongIntegers(text);
      return this.#parseSlice(text);
    });
    if (hasLong && body !== undefined) {
      await this.#claim?.take(memoryBytes);
      regain?.(body, (await this.#slices(bytes, parseJson)) ?? null);
    }
    return body;
  }

  async #slices(bytes: Buffer, parse: ParseText): Promise<JsonValue | undefined> {
    try {
      const stringBytesMax = Math.max(limits.body_string_bytes_max, this.#bytesMax);
      return await inTurns(readSlices(bytes, parse, stringBytesMax), () => this.#isCancelled());
    } catch (error) {
      throw error instanceof UnreadableJson ? refused(error.message) : error;
    }
  }

  #parseSlice(text: string): JsonValue {
    let parsed: unknown;
    this.#parse(this.#request, text, (failure, value) => {
      if (failure === null) parsed = value;
      else {
        JSON.parse(text);
        throw new UnreadableJson(PROTOTYPE_RULE);
      }
    });
    return parsed as JsonValue;
  }
}

/** A body that is being received: it takes chunks, and makes a value of them at the end, or the promise of one. Both may throw. */
export interface ReceivedBody {
  write(chunk: Buffer): void;
  end(): unknown;
}

/** Reads a body to its end. Resolves to its value, or rejects with the error that ends its request. */
export function receive(payload: Readable, body: ReceivedBody): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let isRefused = false;
    const onData = (chunk: Buffer | string) => {
      try {
        body.write(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
      } catch (error) {
        isRefused = true;
        payload.removeListener('data', onData);
        reject(error);
      }
    };
    payload.on('data', onData);
    payload.on('end', () => {
      if (isRefused) return;
      try {
        resolve(body.end());
      } catch (error) {
        reject(error);
      }
    });
    payload.on('error', (error: Error & { statusCode?: number }) => {
      error.statusCode ??= 400;
      reject(error);
    });
    payload.resume();
  });
}
