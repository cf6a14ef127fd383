import { limits } from '../../limits.ts';
import { boundInterim } from './interim-answers.ts';
import { boundedReads, yieldingReads } from './pieces.ts';
import { openConnections, type ProxyRules } from './proxy.ts';

/** Connections to one origin of a service: a search engine, an analyzer, a collector. */
const SERVICE_CONNECTIONS_PER_ORIGIN_MAX = 64;
const SERVICE_CONNECT_MS_MAX = 5_000;

/** One request to a service that the operator configured: a search engine, an analyzer, a collector. Its address is trusted; redirects are not followed. */
export interface ServiceRequest {
  url: string;
  /** Default: POST. */
  method?: 'GET' | 'POST';
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  /** A longer answer is a failure. */
  bytes_max: number;
  /** From the call to the last byte. */
  timeout_ms: number;
  signal?: AbortSignal;
}

export interface ServiceAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

/** Why a service did not answer. The message contains no address, since it may reach a client. */
export class ServiceFailed extends Error {
  override readonly name = 'ServiceFailed';
  /** The status of an answer that was not read to its end. */
  readonly status: number | undefined;

  constructor(message: string, { status, ...options }: ErrorOptions & { status?: number } = {}) {
    super(message, options);
    this.status = status;
  }
}

/** A client for services other than model providers. */
export interface Services {
  /** Sends a request; any status is an answer. Rejects with `ServiceFailed`, or with the reason of the signal. */
  ask(request: ServiceRequest): Promise<ServiceAnswer>;
  close(): Promise<void>;
}

/** Opens the pools; they are empty until the first request. */
export function createServices(proxies?: ProxyRules): Services {
  const pools = {
    connections: SERVICE_CONNECTIONS_PER_ORIGIN_MAX,
    pipelining: 1,
    connect: { timeout: SERVICE_CONNECT_MS_MAX },
    keepAliveTimeout: limits.unused_connection_ms_max,
  };
  const connections = openConnections(pools, proxies);
  return {
    async ask({
      url,
      method = 'POST',
      headers = {},
      body,
      bytes_max: bytesMax,
      timeout_ms: timeoutMs,
      signal: caller,
    }) {
      const timeout = AbortSignal.timeout(timeoutMs);
      const signal = caller === undefined ? timeout : AbortSignal.any([caller, timeout]);
      try {
        const { origin, pathname, search } = new URL(url);
        const answer = await connections.to(origin).request({
          origin,
          path: pathname + search,
          method,
          headers,
          body: body ?? null,
          ...boundInterim(signal, () => new ServiceFailed('it sent too many interim answers')),
          ...boundedReads,
        });
        const parts: Buffer[] = [];
        let bytes = 0;
        for await (const part of yieldingReads(answer.body)) {
          bytes += part.length;
          if (bytes > bytesMax) {
            throw new ServiceFailed(`it answered with more than ${bytesMax} bytes`, { status: answer.statusCode });
          }
          parts.push(part);
        }
        return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts) };
      } catch (error) {
        if (error instanceof ServiceFailed) throw error;
        if (caller?.aborted === true) throw caller.reason;
        const reason = timeout.aborted ? `it did not answer within ${timeoutMs} ms` : 'it could not be reached';
        throw new ServiceFailed(reason, { cause: error });
      }
    },
    close: () => connections.destroy(),
  };
}
