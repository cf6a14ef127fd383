import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/** Paths that are asked for every few seconds and say nothing: measured, not logged. */
const QUIET = /^\/(?:health\/|metrics)/;

/** One log line and one measurement a request, at its end, also when the client left. No content, no query, no secret. */
export function requestLog(log: Logger, metrics: Metrics) {
  return (request: FastifyRequest, reply: FastifyReply, ms: number): void => {
    const { schema, url } = request.route;
    const status = reply.raw.statusCode;
    metrics.request({ operation: schema?.operationId ?? 'none', status, seconds: ms / 1000 });
    const is_without_store = request.principal?.is_served_without_store === true;
    if (is_without_store) metrics.servedWithoutStore();
    if (QUIET.test(request.url)) return;
    log.request({
      request_id: request.id,
      method: request.method,
      path: url ?? 'unknown',
      status,
      ms: Math.round(ms),
      key_id: request.principal?.key_id ?? null,
      ...(request.is_stopped ? { gateway_stopped: true } : reply.raw.writableFinished ? {} : { client_left: true }),
      ...(is_without_store ? { served_without_store: true } : {}),
      ...request.log_facts,
    });
  };
}
