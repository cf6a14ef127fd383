import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { AssignedMembersBody, GuardrailParams } from '../../schemas/guardrail.ts';
import { actorOf, type Change } from '../change.ts';
import { assign, memberAssignees } from './assign.ts';

/** Serves `POST /guardrails/{id}/assignments/members`. */
export function assignGuardrailMembers(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'POST',
    url: '/guardrails/:id/assignments/members',
    config: { access: 'management' },
    schema: {
      operationId: 'assignGuardrailMembers',
      tags: ['Guardrails'],
      summary: 'Assigns a guardrail to members; it replaces the one that they have.',
      params: GuardrailParams,
      body: AssignedMembersBody,
      response: {
        200: Type.Object({
          assigned_count: Type.Integer({ description: 'Members who did not have it before.' }),
        }),
        ...errors(400, 401, 403, 404, 409, 429, 500),
      },
    },
    handler: async (request) => ({
      assigned_count: await assign(change, actorOf(request), {
        kind: memberAssignees,
        guardrail_id: request.params.id,
        assignees: request.body.member_user_ids,
      }),
    }),
  });
}
