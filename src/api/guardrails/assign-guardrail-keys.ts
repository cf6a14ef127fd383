import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { GuardrailParams, KeysBody } from '../../schemas/guardrail.ts';
import { actorOf, type Change } from '../change.ts';
import { assign, keyAssignees } from './assign.ts';

/** Serves `POST /guardrails/{id}/assignments/keys`. */
export function assignGuardrailKeys(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'POST',
    url: '/guardrails/:id/assignments/keys',
    config: { access: 'management' },
    schema: {
      operationId: 'assignGuardrailKeys',
      tags: ['Guardrails'],
      summary: 'Assigns a guardrail to API keys; it replaces the one that they have.',
      params: GuardrailParams,
      body: KeysBody,
      response: {
        200: Type.Object({
          assigned_count: Type.Integer({ description: 'Keys that did not have it before.' }),
        }),
        ...errors(400, 401, 403, 404, 409, 429, 500),
      },
    },
    handler: async (request) => ({
      assigned_count: await assign(change, actorOf(request), {
        kind: keyAssignees,
        guardrail_id: request.params.id,
        assignees: request.body.key_hashes,
      }),
    }),
  });
}
