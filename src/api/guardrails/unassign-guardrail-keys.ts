import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { GuardrailParams, KeysBody } from '../../schemas/guardrail.ts';
import { actorOf, type Change } from '../change.ts';
import { keyAssignees, unassign } from './assign.ts';

/** Serves `POST /guardrails/{id}/assignments/keys/remove`. */
export function unassignGuardrailKeys(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'POST',
    url: '/guardrails/:id/assignments/keys/remove',
    config: { access: 'management' },
    schema: {
      operationId: 'unassignGuardrailKeys',
      tags: ['Guardrails'],
      summary: 'Removes a guardrail from API keys.',
      params: GuardrailParams,
      body: KeysBody,
      response: {
        200: Type.Object({ unassigned_count: Type.Integer({ description: 'Keys that had it.' }) }),
        ...errors(400, 401, 403, 404, 409, 429, 500),
      },
    },
    handler: async (request) => ({
      unassigned_count: await unassign(change, actorOf(request), {
        kind: keyAssignees,
        guardrail_id: request.params.id,
        assignees: request.body.key_hashes,
      }),
    }),
  });
}
