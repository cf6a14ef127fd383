import { createHash, timingSafeEqual } from 'node:crypto';
import Type from 'typebox';
import { GatewayError } from '../../errors.ts';
import { sendBytes } from '../../http/cached-answer.ts';
import { coalesced } from '../../http/coalesced.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';

/** Metrics in Prometheus' text format, of this process or of all workers of the machine. */
export interface MetricsSource {
  content_type: string;
  text(): Promise<string>;
}

const digest = (text: string) => createHash('sha256').update(text).digest();

/** Whether a header has the token, in constant time. */
function bringsToken(authorization: string | undefined, token: string): boolean {
  const [, sent] = /^bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
  return sent !== undefined && timingSafeEqual(digest(sent), digest(token));
}

/** `GET /metrics`: for Prometheus, protected by a token if one is configured. Contains names of models and providers, but no keys. */
export function metrics(server: Server, source: MetricsSource, token: string | undefined): void {
  const text = coalesced(async () => Buffer.from(await source.text()));
  server.route({
    method: 'GET',
    url: '/metrics',
    config: { access: 'open' },
    schema: {
      operationId: 'getMetrics',
      tags: ['Operations'],
      summary: "Metrics in Prometheus' text format.",
      description: 'Requires the token of the setting `metrics.token` as a bearer token, if it is set.',
      produces: ['text/plain'],
      response: { 200: Type.String(), ...errors(401, 500) },
    },
    onRequest: ({ headers }, _reply, done) => {
      if (token === undefined || bringsToken(headers.authorization, token)) return done();
      const shown = { 'www-authenticate': 'Bearer' };
      done(
        new GatewayError(401, 'The metrics require the token of metrics.token as a bearer token', { headers: shown }),
      );
    },
    handler: async (_request, reply) =>
      sendBytes(reply.header('cache-control', 'no-store'), await text(), source.content_type),
  });
}
