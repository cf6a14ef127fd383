import type { FastifyReply } from 'fastify';
import Type from 'typebox';
import { claimOf } from '../../http/bounded-bodies.ts';
import type { Principal } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import { ResponseAnswer, responsesErrors } from '../../schemas/responses-answer.ts';
import { responsesError } from './errors.ts';
import { notStored, ResponseParams, type StoredResponses } from './stored-responses.ts';

/** Serves `GET /responses/{id}`: a stored response, as it was sent to its client. */
export function getResponse(server: Server, { stored }: { stored: StoredResponses | undefined }): void {
  server.route({
    method: 'GET',
    url: '/responses/:id',
    config: { access: 'any', errorFormat: responsesError },
    schema: {
      operationId: 'getResponse',
      tags: ['Responses'],
      summary: 'Gets a stored response.',
      params: ResponseParams,
      querystring: Type.Object({
        stream: Type.Optional(Type.Literal('false', { description: 'A stored response is not streamed.' })),
      }),
      response: { 200: ResponseAnswer, ...responsesErrors(400, 401, 404, 429, 500, 503) },
    },
    handler: async (request, reply) => {
      const match = await stored?.find(
        request.params.id,
        request.principal as Principal,
        claimOf(request),
        request.store_wait,
      );
      if (match === undefined) throw notStored();
      return sendJson(reply, JSON.stringify(match.response));
    },
  });
}

/** Sends the JSON as it was written, without the serializer of the schema. */
function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(json);
}
