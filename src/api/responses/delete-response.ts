import Type from 'typebox';
import type { Principal } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import { responsesErrors } from '../../schemas/responses-answer.ts';
import { responsesError } from './errors.ts';
import { notStored, ResponseParams, type StoredResponses } from './stored-responses.ts';

/** Serves `DELETE /responses/{id}`. Responses that continued it keep their own copy of the conversation. */
export function deleteResponse(server: Server, { stored }: { stored: StoredResponses | undefined }): void {
  server.route({
    method: 'DELETE',
    url: '/responses/:id',
    config: { access: 'any', errorFormat: responsesError },
    schema: {
      operationId: 'deleteResponse',
      tags: ['Responses'],
      summary: 'Deletes a stored response.',
      params: ResponseParams,
      response: {
        200: Type.Object({
          id: Type.String(),
          object: Type.Literal('response.deleted'),
          deleted: Type.Literal(true),
        }),
        ...responsesErrors(400, 401, 404, 429, 500, 503),
      },
    },
    handler: async (request) => {
      const { id } = request.params;
      const wasThere = await stored?.delete(id, request.principal as Principal);
      if (wasThere !== true) throw notStored();
      return { id, object: 'response.deleted' as const, deleted: true as const };
    },
  });
}
