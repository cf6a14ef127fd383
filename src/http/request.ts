import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';

/**
 * A request as the gateway's own code sees it. The framework's requests are such requests, and so are those of the direct edge
 * (`direct-edge.ts`): what takes an `HttpRequest` serves both.
 */
export interface HttpRequest
  extends Pick<
    FastifyRequest,
    | 'id'
    | 'method'
    | 'url'
    | 'body'
    | 'log'
    | 'server'
    | 'is404'
    | 'identified_ms'
    | 'on_leave'
    | 'on_stop'
    | 'long_body_bytes'
    | 'principal'
    | 'store_wait'
    | 'log_facts'
    | 'running_at'
    | 'is_stopped'
    | 'claim'
  > {
  readonly raw: IncomingMessage;
  readonly headers: IncomingHttpHeaders;
  route: Pick<FastifyRequest['routeOptions'], 'url' | 'config' | 'schema' | 'bodyLimit'>;
}

/** The value of an answer's header. */
export type HeaderValue = number | string | string[] | undefined;

/** The answer to an `HttpRequest`. Names of headers are in lower case. */
export interface HttpReply {
  readonly request: HttpRequest;
  readonly raw: ServerResponse;
  /** Whether the answer was sent, or is written by whoever hijacked it. */
  readonly sent: boolean;
  code(status: number): HttpReply;
  header(name: string, value: string): HttpReply;
  headers(headers: Readonly<Record<string, string>>): HttpReply;
  hasHeader(name: string): boolean;
  getHeader(name: string): HeaderValue;
  getHeaders(): Record<string, HeaderValue>;
  /** From now on the caller writes the answer to `raw`. */
  hijack(): HttpReply;
  /** Sends the answer. The direct edge takes text and bytes only, with a content type. */
  send(payload?: unknown): HttpReply;
}
