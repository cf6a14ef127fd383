import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { UpstreamError } from '../dialect.ts';
import { createGoogleTokens, type GoogleTokens, type SendRequest } from './google-tokens.ts';
import { Http1Client } from './http1/client.ts';
import type { AnswerControl, AnswerReceiver } from './http1/connection.ts';
import { openConnections, type ProxyRules, proxyFor } from './proxy.ts';
import type { MemoryBudget } from './room.ts';

/** A whole answer is read in turns with others beyond this size. A read of 64 KiB takes about `READ_MS`, outside of these turns. */
const READ_IN_TURNS_BYTES_MIN = 256 * 1024;
const READ_MS = 0.25;
/** Copies in memory of an upstream's answer: received, parsed, written for the client, and sent. */
const ANSWER_COPIES = 4;

export interface UpstreamTimeouts {
  upstream_connect_ms_max: number;
  upstream_headers_ms_max: number;
  /** The longest silence between two reads of a body. */
  upstream_idle_ms_max: number;
}

export interface UpstreamRequest {
  /** Default: POST. */
  method?: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  /** Ignored for a GET. */
  payload: string | Buffer;
}

/** An answer whose headers were received. The body is pulled: it is read no faster than the caller takes it. */
export interface UpstreamResponse {
  status: number;
  /** Names in lower case. */
  headers: Record<string, string | string[] | undefined>;
  /** Resolves when `read` has bytes or the body has ended; undefined if so already. Never rejects. */
  ready(): Promise<void> | undefined;
  /** The bytes received since the last call, joined; undefined at the end. Throws `UpstreamError`, or the reason of an abort. */
  read(): Buffer | undefined;
  /** Whether the body reached the end that its framing defines (a length, chunks, HTTP/2), not only the end of its connection. */
  readonly complete: boolean;
}

/** A request in progress. */
export interface Exchange {
  /** Resolves with the headers. Rejects with `UpstreamError` (`unavailable`, `timeout`) if none are received, or with the reason of an abort. */
  response: Promise<UpstreamResponse>;
  /** Ends the request at once; pending and later reads fail with `reason`. No effect after the end. */
  abort(reason: Error): void;
  /** Whether the request is over: the answer is complete, or it failed. */
  readonly ended: boolean;
}

/** The HTTP client of inference: pooled, bounded in time, redirects not followed. */
export interface Upstream {
  send(request: UpstreamRequest): Exchange;
  /** Access tokens for requests to Google Cloud. */
  readonly google: GoogleTokens;
  close(): Promise<void>;
}

const TIMEOUTS: Record<string, string> = lookupTable({
  UND_ERR_CONNECT_TIMEOUT: 'The connection to the provider timed out',
  UND_ERR_HEADERS_TIMEOUT: 'The provider did not start to answer in time',
  UND_ERR_BODY_TIMEOUT: 'The provider stopped sending in the middle of its answer',
});

function tooManyInterim(): UpstreamError {
  const message = `The provider sent more than ${limits.upstream_interim_answers_max} interim answers instead of one`;
  return new UpstreamError('invalid_response', message);
}

function codeOf(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === 'string') return code;
  return cause === undefined ? undefined : codeOf(cause);
}

/** The status with which a proxy refused; undici has no error code for it (`lib/dispatcher/proxy-agent.js`). */
function proxyRefusal(error: unknown): string | undefined {
  const { message } = (error ?? {}) as { message?: unknown };
  return /^Proxy (?:response|Authentication Required) \((\d+)\)/.exec(String(message))?.[1];
}

/** A transport failure as an `UpstreamError`. Its message contains no addresses. */
function transportError(error: unknown, neverSent: boolean): UpstreamError {
  if (error instanceof UpstreamError) return error;
  const details = { transport_code: codeOf(error), never_sent: neverSent, cause: error };
  const timeout = TIMEOUTS[details.transport_code ?? ''];
  if (timeout !== undefined) return new UpstreamError('timeout', timeout, details);
  const refusal = proxyRefusal(error);
  if (refusal !== undefined) {
    return new UpstreamError(
      'unavailable',
      `The proxy refused the connection to the provider (status ${refusal})`,
      details,
    );
  }
  const message = neverSent
    ? 'The provider could not be reached'
    : 'The connection to the provider broke before its answer was complete';
  return new UpstreamError('unavailable', message, details);
}

/** Headers and body to send. A long body is sent in slices, since the kernel, or TLS, processes each write as a whole. */
function bodyOptions({
  method,
  headers,
  payload,
}: UpstreamRequest): Pick<Dispatcher.DispatchOptions, 'headers' | 'body'> {
  if (method === 'GET') return { headers, body: null };
  if (typeof payload === 'string' || payload.length <= limits.joined_slice_bytes) return { headers, body: payload };
  return {
    headers: { ...headers, 'content-length': String(payload.length) },
    body: slicesOf(payload) as unknown as Readable,
  };
}

/** Yields to the event loop between slices. */
async function* slicesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += limits.joined_slice_bytes) {
    yield bytes.subarray(at, at + limits.joined_slice_bytes);
    await nextTurn();
  }
}

/**
 * Opens the pools. Idle connections are kept, up to a bound per origin. Ordinary requests go through our own client of HTTP/1.1; undici
 * sends those through proxies, to servers that choose HTTP/2, and with unusual headers. `http1`: which one sends ordinary requests.
 */
export function createUpstream(
  timeouts: UpstreamTimeouts,
  proxies?: ProxyRules,
  http1: 'own' | 'undici' = 'own',
): Upstream {
  const pools = {
    connections: limits.upstream_connections_per_origin_max,
    pipelining: 1,
    connect: { timeout: timeouts.upstream_connect_ms_max },
    headersTimeout: timeouts.upstream_headers_ms_max,
    bodyTimeout: timeouts.upstream_idle_ms_max,
    keepAliveTimeout: limits.unused_connection_ms_max,
    maxResponseSize: -1,
  };
  const connections = openConnections(pools, proxies);
  const dispatch = (request: UpstreamRequest, { origin, path }: Address, exchange: HttpExchange): void => {
    try {
      const method = request.method ?? 'POST';
      connections.to(origin).dispatch({ origin, path, method, ...bodyOptions(request) }, exchange);
    } catch (error) {
      // A header or URL that cannot be sent is an error of the operator's configuration, not of the process.
      exchange.abort(transportError(error, true));
    }
  };
  const own = new Http1Client(timeouts, (url) => proxyFor(proxies, url) === undefined);
  const send = (request: UpstreamRequest): Exchange => {
    const exchange = new HttpExchange();
    const { origin, path } = addressOf(request.url);
    const { method = 'POST', headers } = request;
    const payload = method === 'GET' ? undefined : request.payload;
    const refused = () => dispatch(request, { origin, path }, exchange);
    const job = { origin, path, method, headers, head: '', payload, reader: exchange, refused };
    if (http1 === 'undici' || !own.send(job)) refused();
    return exchange;
  };
  return {
    send,
    google: createGoogleTokens(sendThrough(send)),
    async close() {
      own.destroy();
      await connections.destroy();
    },
  };
}

interface Address {
  origin: string;
  path: string;
}

function addressOf(url: string): Address {
  const slash = url.indexOf('/', url.indexOf('//') + 2);
  return slash === -1 ? { origin: url, path: '/' } : { origin: url.slice(0, slash), path: url.slice(slash) };
}

/** Sends short requests with short answers. */
function sendThrough(send: Upstream['send']): SendRequest {
  return async (request, msMax) => {
    const exchange = send(request);
    const timer = setTimeout(() => exchange.abort(new UpstreamError('timeout', 'It did not answer in time')), msMax);
    try {
      const response = await exchange.response;
      const text = await readText(response, { bytes_max: limits.upstream_error_bytes_max, cut: true });
      return { status: response.status, text };
    } finally {
      clearTimeout(timer);
      if (!exchange.ended) exchange.abort(new UpstreamError('timeout', 'Its answer exceeds the size limit'));
    }
  };
}

const NO_HEADERS: UpstreamResponse['headers'] = {};

/** The control of a request: undici's controller, or a connection of the gateway's own client. */
type Control = AnswerControl | Dispatcher.DispatchController;

function resume(control: Control, exchange: HttpExchange): void {
  if (!exchange.ended) control.resume(exchange);
}

/**
 * Connects the callbacks of one request to promises, and is its answer as well. All bytes of one socket read are returned as one buffer.
 * Above `upstream_unread_bytes_max` the connection is paused until the next `read`, and after `upstream_turn_pieces_max` HTTP chunks until
 * the next turn of the event loop.
 */
class HttpExchange implements Exchange, UpstreamResponse, Dispatcher.DispatchHandler, AnswerReceiver {
  /** 0 until the headers are received. */
  status = 0;
  headers = NO_HEADERS;
  #isFramed = false;
  #interimAnswers = 0;
  /** Set once the request has a connection, before anything is written. */
  #control: Control | undefined;
  #unread: Buffer[] | undefined = undefined;
  #unreadBytes = 0;
  /** HTTP chunks in `#unread`. */
  unreadPieces = 0;
  /** Whether the answer is complete or failed. */
  ended = false;
  #failure: Error | undefined;
  #responsePromise: PromiseWithResolvers<UpstreamResponse> | undefined;
  #wake: (() => void) | undefined;

  /** Created on first use: a caller that only aborts gets no unhandled rejection. */
  get response(): Promise<UpstreamResponse> {
    if (this.#responsePromise === undefined) {
      this.#responsePromise = Promise.withResolvers();
      if (this.status !== 0) this.#responsePromise.resolve(this);
      else if (this.#failure !== undefined) this.#responsePromise.reject(this.#failure);
    }
    return this.#responsePromise.promise;
  }

  get complete(): boolean {
    return this.ended && this.#failure === undefined && this.#isFramed;
  }

  abort(reason: Error): void {
    if (this.ended) return;
    this.#fail(reason);
    this.#control?.abort(reason, this);
  }

  ready(): Promise<void> | undefined {
    if (this.#unread !== undefined || this.ended) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    return promise;
  }

  read(): Buffer | undefined {
    const unread = this.#unread;
    if (unread === undefined) {
      if (this.#failure !== undefined) throw this.#failure;
      return undefined;
    }
    const pieces = this.unreadPieces;
    const bytes = unread.length === 1 ? unread[0] : Buffer.concat(unread, this.#unreadBytes);
    this.#unread = undefined;
    this.#unreadBytes = 0;
    this.unreadPieces = 0;
    const control = this.#control;
    if (control?.paused && !this.ended) {
      if (pieces < limits.upstream_turn_pieces_max) control.resume(this);
      else setImmediate(resume, control, this);
    }
    return bytes;
  }

  /** Wakes the waiting reader, once: resolving a promise again is costly. */
  #wakeReader(): void {
    const wake = this.#wake;
    if (wake === undefined) return;
    this.#wake = undefined;
    wake();
  }

  #fail(error: Error): void {
    if (this.ended) return;
    this.ended = true;
    this.#failure = error;
    this.#responsePromise?.reject(error);
    this.#wakeReader();
  }

  sending(control: Control): void {
    this.#control = control;
  }

  /** Interim answers (100, 103) precede the final one. */
  interim(): void {
    this.#interimAnswers += 1;
    if (this.#interimAnswers > limits.upstream_interim_answers_max) this.abort(tooManyInterim());
  }

  head(status: number, headers: UpstreamResponse['headers'], isFramed: boolean): void {
    this.status = status;
    this.headers = headers;
    this.#isFramed = isFramed;
    this.#responsePromise?.resolve(this);
  }

  data(bytes: Buffer, pieces: number): boolean {
    // A list of one takes less memory than an empty one that grows.
    if (this.#unread === undefined) this.#unread = [bytes];
    else this.#unread.push(bytes);
    this.#unreadBytes += bytes.length;
    this.unreadPieces += pieces;
    this.#wakeReader();
    return this.#unreadBytes <= limits.upstream_unread_bytes_max && this.unreadPieces < limits.upstream_turn_pieces_max;
  }

  end(): void {
    this.ended = true;
    this.#wakeReader();
  }

  failed(error: unknown, isNeverSent: boolean): void {
    this.#fail(transportError(error, isNeverSent));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.sending(controller);
    if (this.#failure !== undefined) controller.abort(this.#failure);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: UpstreamResponse['headers'],
    reasonPhrase?: string,
  ): void {
    if (status < 200) {
      this.interim();
      return;
    }
    // HTTP/2 has no reason phrase, and frames every body.
    const isFramed =
      !reasonPhrase || headers['transfer-encoding'] !== undefined || headers['content-length'] !== undefined;
    this.head(status, headers, isFramed);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.data(chunk, 1)) controller.pause();
  }

  onResponseEnd(): void {
    this.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.failed(error, this.#control === undefined);
  }
}

/** Counts the bytes of an answer, `expected` of them at once. The returned promise delays the reader while there is no room. */
export function countAnswer(
  room: MemoryBudget | undefined,
  expected = 0,
): (bytes: number) => Promise<void> | undefined {
  let received = 0;
  let taken = limits.counted_bytes_min;
  return (bytes) => {
    received += bytes;
    if (room === undefined || received <= taken) return undefined;
    const more = Math.max(limits.counted_bytes_step, received - taken, expected - taken);
    taken += more;
    return room.take(more * ANSWER_COPIES, limits.memory_answer_wait_ms_max);
  };
}

function contentLength({ headers }: UpstreamResponse, bytesMax: number): number {
  const length = Number(headers['content-length']);
  return length <= bytesMax ? length : 0;
}

/** Bounds for reading a body. */
interface BodyBounds {
  bytes_max: number;
  /** Whether bytes beyond the bound are dropped; otherwise they are an error. */
  cut: boolean;
  room?: MemoryBudget | undefined;
}

/** Reads a body as text. Throws the error of `room` if there is no memory. */
export async function readText(response: UpstreamResponse, bounds: BodyBounds): Promise<string> {
  const parts = await readParts(response, bounds);
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only.toString('utf8') : Buffer.concat(parts).toString('utf8');
}

/** A body that is being read. */
class BodyReading {
  parts: Buffer[] | undefined = undefined;
  readonly #response: UpstreamResponse;
  readonly #bounds: BodyBounds;
  readonly #count: ReturnType<typeof countAnswer>;
  #bytes = 0;
  #isCut = false;

  constructor(response: UpstreamResponse, bounds: BodyBounds) {
    this.#response = response;
    this.#bounds = bounds;
    this.#count = countAnswer(bounds.room, contentLength(response, bounds.bytes_max));
  }

  /** Reads what has arrived. Returns what has to be waited for, or undefined at the end. Throws like `readText`. */
  readOn(): Promise<void> | undefined {
    const { bytes_max, cut } = this.#bounds;
    while (!this.#isCut) {
      const ready = this.#response.ready();
      if (ready !== undefined) return ready;
      const part = this.#response.read();
      if (part === undefined) return undefined;
      this.#bytes += part.length;
      this.#isCut = this.#bytes > bytes_max;
      if (this.#isCut && !cut) {
        throw new UpstreamError('invalid_response', `The provider's answer is larger than ${bytes_max} bytes`);
      }
      const kept = this.#isCut ? part.subarray(0, part.length - (this.#bytes - bytes_max)) : part;
      if (this.parts === undefined) this.parts = [kept];
      else this.parts.push(kept);
      const waiting = this.#count(part.length);
      if (waiting !== undefined) return waiting;
      if (this.#bytes > READ_IN_TURNS_BYTES_MIN && !this.#isCut) return nextTurn(READ_MS);
    }
    return undefined;
  }

  async rest(first: Promise<void>): Promise<Buffer[]> {
    for (let waiting: Promise<void> | undefined = first; waiting !== undefined; waiting = this.readOn()) await waiting;
    return this.parts ?? [];
  }
}

/** Reads a body as the buffers in which it was received; at once if it has arrived. Throws or rejects like `readText`. */
export function readParts(response: UpstreamResponse, bounds: BodyBounds): Buffer[] | Promise<Buffer[]> {
  const reading = new BodyReading(response, bounds);
  const waiting = reading.readOn();
  return waiting === undefined ? (reading.parts ?? []) : reading.rest(waiting);
}
