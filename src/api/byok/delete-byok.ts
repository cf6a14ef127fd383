import { describeByok } from '../../accounts/byok.ts';
import { checkVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Deleted } from '../../schemas/page.ts';
import { byokStore } from '../../storage/byok.ts';
import { actorOf, type Change } from '../change.ts';
import { ByokParams, requireByok } from './get-byok.ts';

/** Serves `DELETE /byok/{id}`. */
export function deleteByok(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'DELETE',
    url: '/byok/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'deleteByok',
      tags: ['BYOK'],
      summary: 'Deletes a credential of your own provider account.',
      params: ByokParams,
      response: { 200: Deleted, ...errors(401, 403, 404, 409, 429, 500) },
    },
    handler: async (request) => {
      await change(actorOf(request), async ({ tx, actor, audit, announce }) => {
        const which = { organization_id: actor.organization_id, id: request.params.id };
        const store = byokStore(tx);
        const stored = await requireByok(which, store.lock);
        checkVersion(request, stored.version);
        await store.delete(which);
        const before = describeByok(stored);
        await audit({
          action: 'delete',
          resource_type: 'byok_credential',
          resource_id: stored.id,
          before,
          after: null,
        });
        announce({ topic: 'policy', id: stored.workspace_id });
      });
      return { deleted: true as const };
    },
  });
}
