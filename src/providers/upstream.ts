import type { Readable } from 'node:stream';
import { Agent } from 'undici';
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
  /** Aborts the request and its body; the abort's reason is thrown. */
  signal: AbortSignal;
}

export interface UpstreamResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** Reads are pulled: an upstream is not read faster than the client takes it. */
  body: Readable;
}

/** The only outgoing connection of inference: pooled, bounded in time, redirects not followed. */
export interface Upstream {
  /** Resolves with the headers. Throws `UpstreamError` (`unavailable`, `timeout`) when none came. */
  send(request: UpstreamRequest): Promise<UpstreamResponse>;
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
export function transportError(error: unknown): UpstreamError {
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
    async send({ url, headers, payload, signal }) {
      const slash = url.indexOf('/', url.indexOf('//') + 2);
      try {
        const {
          statusCode,
          headers: received,
          body,
        } = await agent.request({
          origin: slash === -1 ? url : url.slice(0, slash),
          path: slash === -1 ? '/' : url.slice(slash),
          method: 'POST',
          headers,
          body: payload,
          signal,
        });
        return { status: statusCode, headers: received, body };
      } catch (error) {
        if (signal.aborted && signal.reason instanceof Error) throw signal.reason;
        throw transportError(error);
      }
    },
    close: () => agent.destroy(),
  };
}

/** Reads a body as text, up to a bound of bytes; what is beyond is dropped when `cut`, else an error. */
export async function readText(body: Readable, options: { bytes_max: number; cut: boolean }): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of body as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > options.bytes_max) {
        if (!options.cut) {
          throw new UpstreamError(
            'invalid_response',
            `The provider's answer is larger than ${options.bytes_max} bytes`,
          );
        }
        parts.push(part.subarray(0, part.length - (bytes - options.bytes_max)));
        break;
      }
      parts.push(part);
    }
  } catch (error) {
    throw transportError(error);
  }
  return parts.length === 1 ? (parts[0] as Buffer).toString('utf8') : Buffer.concat(parts).toString('utf8');
}
