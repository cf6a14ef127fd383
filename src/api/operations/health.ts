import Type from 'typebox';
import { GatewayError } from '../../errors.ts';
import { errorBody } from '../../http/error-envelope.ts';
import type { HttpReply } from '../../http/request.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';

const Health = Type.Object({ status: Type.Literal('ok') }, { title: 'Health' });

/** A plain serializer. Supervisors poll idle gateways too, and the schema serializer is loaded at its first use. */
const asItIs = () => (answer: unknown) => JSON.stringify(answer);

export interface HealthOptions {
  /** Why the gateway should get no requests now; undefined if it should. */
  unready(): Promise<string | undefined>;
}

/** `GET /health/live`: the process answers. `GET /health/ready`: it accepts requests. */
export function health(server: Server, { unready }: HealthOptions): void {
  server.route({
    method: 'GET',
    url: '/health/live',
    config: { access: 'open' },
    schema: {
      operationId: 'getLiveness',
      tags: ['Operations'],
      summary: 'Shows that the process answers.',
      response: { 200: Health },
    },
    serializerCompiler: asItIs,
    handler: async () => ({ status: 'ok' as const }),
  });
  server.route({
    method: 'GET',
    url: '/health/ready',
    config: { access: 'open' },
    schema: {
      operationId: 'getReadiness',
      tags: ['Operations'],
      summary:
        'Shows whether the gateway is ready for requests: the store answers, the journal can be written, and it does not shut down.',
      response: { 200: Health, ...errors(503) },
    },
    serializerCompiler: asItIs,
    handler: async (_request, reply: HttpReply) => {
      const reason = await unready();
      if (reason === undefined) return { status: 'ok' as const };
      // Sent, not thrown: a thrown error is logged as a failed request, for each probe during a start.
      const body = errorBody(new GatewayError(503, `Not ready: ${reason}`), null);
      void reply.code(503).header('content-type', 'application/json; charset=utf-8').send(JSON.stringify(body));
      return undefined;
    },
  });
}
