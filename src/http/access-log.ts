import { limits } from '../limits.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { ConnectionExcess } from './connections.ts';
import type { HttpReply, HttpRequest } from './request.ts';

/** The length of an unknown path in the log. */
const LOGGED_PATH_CHARS_MAX = 200;

/** Paths that monitors request every few seconds: measured, but not logged. */
const QUIET = /^\/(?:health\/|metrics)/;

/** Matches parts of a path that may be a credential: `sk-` keys, and runs of 32 or more letters and digits. */
const MAY_BE_SECRET = /sk-[\w-]{8,}|\w{32,}/g;

/** The path of a request without a route, for the log: without query, of bounded length, possible credentials redacted. */
function unknownPath(url: string): string {
  const path = url.split('?', 1)[0] ?? '/';
  return path.slice(0, LOGGED_PATH_CHARS_MAX).replace(MAY_BE_SECRET, '[redacted]');
}

/** The status that proxies log for a client that left. It is never sent. */
const CLIENT_LEFT = 499;

/** Logs one line and records one measurement at the end of each request, also if the client left. Never logs content, query strings or secrets. */
export function accessLog(log: Logger, metrics: Metrics) {
  return (request: HttpRequest, reply: HttpReply, ms: number): void => {
    const { schema, url } = request.route;
    const status = reply.raw.headersSent || request.is_stopped ? reply.raw.statusCode : CLIENT_LEFT;
    metrics.request({ operation: schema?.operationId ?? 'none', status, seconds: ms / 1000 });
    const isWithoutStore = request.principal?.is_served_without_store === true;
    if (isWithoutStore) metrics.servedWithoutStore();
    if (QUIET.test(request.url)) return;
    const facts = {
      request_id: request.id,
      method: request.method,
      path: url ?? unknownPath(request.url),
      status,
      ms: Math.round(ms),
      key_id: request.principal?.key_id ?? null,
      gateway_stopped: request.is_stopped ? true : undefined,
      client_left: request.is_stopped || reply.raw.writableFinished ? undefined : true,
      served_without_store: isWithoutStore ? true : undefined,
    };
    log.request(facts, request.log_facts?.());
  };
}

/** Counts connections that exceed a bound. Warns about each bound at most once in `connections_warn_ms`, so that a flood does not fill the log. */
export function connectionLog(log: Logger, metrics: Metrics) {
  const warned = new Map<ConnectionExcess, number>();
  return (bound: ConnectionExcess): void => {
    metrics.connectionRefused(bound);
    const nowMs = performance.now();
    if (nowMs - (warned.get(bound) ?? Number.NEGATIVE_INFINITY) < limits.connections_warn_ms) return;
    warned.set(bound, nowMs);
    log.warn({ bound }, EXCESSES[bound]);
  };
}

const EXCESSES: Readonly<Record<ConnectionExcess, string>> = {
  connections_max: 'all connections are in use; raise http.connections_max, or add a node',
  connections_per_address_max:
    'one address has reached its limit of connections; if it is your proxy, add it to http.trusted_proxies, or raise http.connections_per_address_max',
  pipelined_requests_max: 'a client sent too many pipelined requests on one connection; the connection was closed',
};
