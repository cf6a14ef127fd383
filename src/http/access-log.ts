import type { Logger } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Server } from './server.ts';

/** Paths that are asked for every few seconds and say nothing: measured, not logged. */
const QUIET = /^\/(?:health\/|metrics)/;

/** One log line and one measurement a request, at its end, also when the client left. No content, no query, no secret. */
export function logRequests(server: Server, log: Logger, metrics: Metrics): void {
  server.addHook('onRequest', (request, reply, done) => {
    const started = performance.now();
    reply.raw.once('close', () => {
      const seconds = (performance.now() - started) / 1000;
      const operation = request.routeOptions.schema?.operationId ?? 'none';
      const status = reply.raw.statusCode;
      metrics.request({ operation, status, seconds });
      if (QUIET.test(request.url)) return;
      log.request({
        request_id: request.id,
        method: request.method,
        path: request.routeOptions.url ?? 'unknown',
        status,
        ms: Math.round(seconds * 1000),
        key_id: request.principal?.key_id ?? null,
        ...(reply.raw.writableFinished ? {} : { client_left: true }),
        ...request.log_facts,
      });
    });
    done();
  });
}
