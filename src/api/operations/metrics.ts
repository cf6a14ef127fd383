import { coalesced } from '../../http/coalesced.ts';
import type { Server } from '../../http/server.ts';

/** Prometheus' text format, of this process, or of all workers of the machine. */
export interface MetricsSource {
  content_type: string;
  text(): Promise<string>;
}

/** `GET /metrics`: for Prometheus. Holds names of models and providers, and no key. */
export function metrics(server: Server, source: MetricsSource): void {
  const text = coalesced(async () => Buffer.from(await source.text()));
  server.route({
    method: 'GET',
    url: '/metrics',
    config: { access: 'open' },
    schema: {
      operationId: 'getMetrics',
      tags: ['Operations'],
      summary: "Metrics in Prometheus' text format.",
      produces: ['text/plain'],
    },
    handler: async (_request, reply) => reply.header('content-type', source.content_type).send(await text()),
  });
}
