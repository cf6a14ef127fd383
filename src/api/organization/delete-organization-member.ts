import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { RemovedMember } from '../../schemas/organization.ts';
import { actorOf, type Change } from '../change.ts';
import { removeMember } from './remove-member.ts';

/** Serves `DELETE /organization/members/{id}`. After its answer, no node accepts a session or a disabled key of the member. */
export function deleteOrganizationMember(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'DELETE',
    url: '/organization/members/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'deleteOrganizationMember',
      tags: ['Organization'],
      summary: 'Removes a member from the organization.',
      description:
        'Sessions are closed, unused codes are void, workspace memberships, guardrail assignments and ' +
        'entries in BYOK credentials are deleted, keys are disabled. The last administrator cannot be removed (400). Somebody ' +
        'who was removed cannot sign in again until an administrator adds them; that restores nothing.',
      params: Type.Object({ id: Type.String({ description: 'The user, as in the list of members.' }) }),
      querystring: Type.Object({
        hand_keys_to: Type.Optional(
          Type.String({
            description:
              'A member who takes over the API keys, which then stay enabled: whoever knows their secrets can use ' +
              'them. Management keys are disabled in any case. Default: all keys are disabled.',
          }),
        ),
      }),
      response: { 200: RemovedMember, ...errors(400, 401, 403, 404, 409, 429, 500) },
    },
    handler: async (request) => {
      const { hand_keys_to } = request.query;
      const removal = { user_id: request.params.id, hand_keys_to };
      const removed = await change(actorOf(request), (work) => removeMember(work, removal));
      return { deleted: true as const, ...removed };
    },
  });
}
