import { Agent, type Dispatcher } from 'undici';
import { limits } from '../limits.ts';
import { UpstreamError } from './dialect.ts';

export interface UpstreamTimeouts {
  upstream_connect_ms_max: number;
  upstream_headers_ms_max: number;
  /** The longest silence between two reads of a body. */
  upstream_idle_ms_max: number;
}

export interface UpstreamRequest {
  url: string;
  headers: Record<string, string>;
  payload: string;
}

/** An answer whose headers have come. The body is pulled: an upstream is not read faster than it is asked for. */
export interface UpstreamResponse {
  status: number;
  /** Names in lower case. */
  headers: Record<string, string | string[] | undefined>;
  /** The bytes that have come since the last call, gathered; undefined at the end. Throws `UpstreamError`, or the reason of an abort. */
  read(): Promise<Buffer | undefined>;
}

/** One request under way. */
export interface Exchange {
  /** Resolves with the headers. Throws `UpstreamError` (`unavailable`, `timeout`) when none came, or the reason of an abort. */
  response: Promise<UpstreamResponse>;
  /** Ends the request at once, whatever it is at; `reason` is what is thrown to whoever waits. Does nothing after the end. */
  abort(reason: Error): void;
  /** Nothing more will come: the answer is whole, or it failed. */
  readonly ended: boolean;
}

/** The only outgoing connection of inference: pooled, bounded in time, redirects not followed. */
export interface Upstream {
  send(request: UpstreamRequest): Exchange;
  close(): Promise<void>;
}

/** Codes of failures in which no byte of the request can have been read by the upstream's application. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

const TIMEOUTS: Record<string, string> = {
  UND_ERR_CONNECT_TIMEOUT: 'The connection to the provider timed out',
  UND_ERR_HEADERS_TIMEOUT: 'The provider did not start to answer in time',
  UND_ERR_BODY_TIMEOUT: 'The provider stopped sending in the middle of its answer',
};

function codeOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === 'string') return code;
  return cause === undefined ? '' : codeOf(cause);
}

/** A transport failure in our words: what went wrong is told, addresses are not. */
function transportError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error;
  const code = codeOf(error);
  const timeout = TIMEOUTS[code];
  if (timeout !== undefined) return new UpstreamError('timeout', timeout, { native_code: code, cause: error });
  const message = NEVER_SENT.has(code)
    ? 'The provider could not be reached'
    : 'The connection to the provider broke before its answer was complete';
  return new UpstreamError('unavailable', message, { native_code: code === '' ? null : code, cause: error });
}

/** Opens the pools. Idle connections are kept; their number an origin is bounded. */
export function createUpstream(timeouts: UpstreamTimeouts): Upstream {
  const agent = new Agent({
    connections: limits.upstream_connections_per_origin_max,
    pipelining: 1,
    connect: { timeout: timeouts.upstream_connect_ms_max },
    headersTimeout: timeouts.upstream_headers_ms_max,
    bodyTimeout: timeouts.upstream_idle_ms_max,
    keepAliveTimeout: 10_000,
    maxResponseSize: -1,
  });
  return {
    send(request) {
      const exchange = createExchange();
      const slash = request.url.indexOf('/', request.url.indexOf('//') + 2);
      try {
        agent.dispatch(
          {
            origin: slash === -1 ? request.url : request.url.slice(0, slash),
            path: slash === -1 ? '/' : request.url.slice(slash),
            method: 'POST',
            headers: request.headers,
            body: request.payload,
          },
          exchange.handler,
        );
      } catch (error) {
        // A header or URL that cannot be sent is the operator's configuration, not a fault of the process.
        exchange.abort(transportError(error));
      }
      return exchange;
    },
    close: () => agent.destroy(),
  };
}

/**
 * Joins the callbacks of one request to promises. Everything that one socket read brought is handed out as one piece;
 * above `upstream_unread_bytes_max` the connection is paused until it is asked for.
 */
function createExchange(): Exchange & { handler: Dispatcher.DispatchHandler } {
  let controller: Dispatcher.DispatchController | undefined;
  let unread: Buffer[] = [];
  let unread_bytes = 0;
  let ended = false;
  let failure: Error | undefined;
  let answered: { resolve(response: UpstreamResponse): void; reject(error: Error): void } | undefined;
  let wake: (() => void) | undefined;
  const response = new Promise<UpstreamResponse>((resolve, reject) => {
    answered = { resolve, reject };
  });
  // Whoever aborts may no longer wait for the answer.
  response.catch(() => undefined);

  const fail = (error: Error) => {
    if (ended || failure !== undefined) return;
    failure = error;
    answered?.reject(error);
    wake?.();
  };
  const take = (): Buffer => {
    const [only] = unread;
    const taken = unread.length === 1 && only !== undefined ? only : Buffer.concat(unread, unread_bytes);
    unread = [];
    unread_bytes = 0;
    if (controller?.paused) controller.resume();
    return taken;
  };
  const read = async (): Promise<Buffer | undefined> => {
    if (unread.length === 0 && !ended && failure === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      wake = undefined;
    }
    if (unread.length > 0) return take();
    if (failure !== undefined) throw failure;
    return undefined;
  };

  return {
    response,
    get ended() {
      return ended || failure !== undefined;
    },
    abort(reason) {
      if (ended || failure !== undefined) return;
      fail(reason);
      controller?.abort(reason);
    },
    handler: {
      onRequestStart(started) {
        controller = started;
        if (failure !== undefined) started.abort(failure);
      },
      onResponseStart(_controller, status, headers) {
        // Interim answers (100, 103) come before the one that counts.
        if (status >= 200) answered?.resolve({ status, headers, read });
      },
      onResponseData(current, chunk) {
        unread.push(chunk);
        unread_bytes += chunk.length;
        if (unread_bytes > limits.upstream_unread_bytes_max) current.pause();
        wake?.();
      },
      onResponseEnd() {
        ended = true;
        wake?.();
      },
      onResponseError(_controller, error) {
        fail(transportError(error));
      },
    },
  };
}

/** Reads a body as text, up to a bound of bytes; what is beyond is dropped when `cut`, else an error. */
export async function readText(
  response: UpstreamResponse,
  options: { bytes_max: number; cut: boolean },
): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for (let part = await response.read(); part !== undefined; part = await response.read()) {
    bytes += part.length;
    if (bytes > options.bytes_max) {
      if (!options.cut) {
        throw new UpstreamError('invalid_response', `The provider's answer is larger than ${options.bytes_max} bytes`);
      }
      parts.push(part.subarray(0, part.length - (bytes - options.bytes_max)));
      break;
    }
    parts.push(part);
  }
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only.toString('utf8') : Buffer.concat(parts).toString('utf8');
}
