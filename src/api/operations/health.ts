import type { FastifyReply } from 'fastify';
import Type, { type Static } from 'typebox';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';

const Health = Type.Object({ status: Type.Literal('ok') }, { title: 'Health' });

/** Written once: what is asked every second brings no compiler of answers. */
const OK = JSON.stringify({ status: 'ok' } satisfies Static<typeof Health>);

/** Answers that all is well. */
function tell(reply: FastifyReply) {
  return reply.header('content-type', 'application/json; charset=utf-8').send(OK);
}

export interface HealthOptions {
  /** Why no request should be sent here now; undefined when all is well. */
  unready(): Promise<string | undefined>;
}

/** `GET /health/live`: the process answers. `GET /health/ready`: it may be sent requests. */
export function health(server: Server, { unready }: HealthOptions): void {
  server.route({
    method: 'GET',
    url: '/health/live',
    config: { access: 'open' },
    schema: {
      operationId: 'getLiveness',
      tags: ['Operations'],
      summary: 'Tells that the process answers.',
      response: { 200: Health },
    },
    handler: async (_request, reply) => tell(reply as unknown as FastifyReply),
  });
  server.route({
    method: 'GET',
    url: '/health/ready',
    config: { access: 'open' },
    schema: {
      operationId: 'getReadiness',
      tags: ['Operations'],
      summary:
        'Tells whether requests may be sent here: the store answers, the journal admits, no shutdown is under way.',
      response: { 200: Health, ...errors(503) },
    },
    handler: async (_request, reply) => {
      const reason = await unready();
      if (reason !== undefined) throw new GatewayError(503, `Not ready: ${reason}`);
      return tell(reply as unknown as FastifyReply);
    },
  });
}
