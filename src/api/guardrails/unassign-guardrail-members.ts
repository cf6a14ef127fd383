import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { AssignedMembersBody, GuardrailParams } from '../../schemas/guardrail.ts';
import { actorOf, type Change } from '../change.ts';
import { memberAssignees, unassign } from './assign.ts';

/** Serves `POST /guardrails/{id}/assignments/members/remove`. */
export function unassignGuardrailMembers(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'POST',
    url: '/guardrails/:id/assignments/members/remove',
    config: { access: 'management' },
    schema: {
      operationId: 'unassignGuardrailMembers',
      tags: ['Guardrails'],
      summary: 'Removes a guardrail from members.',
      params: GuardrailParams,
      body: AssignedMembersBody,
      response: {
        200: Type.Object({ unassigned_count: Type.Integer({ description: 'Members who had it.' }) }),
        ...errors(400, 401, 403, 404, 409, 429, 500),
      },
    },
    handler: async (request) => ({
      unassigned_count: await unassign(change, actorOf(request), {
        kind: memberAssignees,
        guardrail_id: request.params.id,
        assignees: request.body.member_user_ids,
      }),
    }),
  });
}
