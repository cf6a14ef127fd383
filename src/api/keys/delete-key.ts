import { keyState } from '../../accounts/key.ts';
import { checkVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Deleted } from '../../schemas/page.ts';
import { keyStore } from '../../storage/keys.ts';
import { actorOf, type Change } from '../change.ts';
import { foundKey, KeyParams } from './found-key.ts';

/** Serves `DELETE /keys/{hash}`. From its answer on no node takes the key; streams that run finish, what it spent stays. */
export function deleteKey(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'DELETE',
    url: '/keys/:hash',
    config: { access: 'management' },
    schema: {
      operationId: 'deleteKey',
      tags: ['API keys'],
      summary: 'Deletes an API key.',
      params: KeyParams,
      response: { 200: Deleted, ...errors(401, 403, 404, 409, 429, 500) },
    },
    handler: async (request) => {
      await change(actorOf(request), async ({ tx, actor, audit, announce }) => {
        const which = { organization_id: actor.organization_id, hash: request.params.hash };
        const store = keyStore(tx);
        const key = await foundKey(which, store.lock);
        checkVersion(request, key.version);
        const unassigned = await store.delete({ organization_id: actor.organization_id, hashes: [key.hash] });
        for (const { id, guardrail_id } of unassigned) {
          await audit({
            action: 'unassign',
            resource_type: 'guardrail_assignment',
            resource_id: id,
            before: { guardrail_id, key_hash: key.hash },
            after: null,
          });
        }
        await audit({
          action: 'delete',
          resource_type: 'api_key',
          resource_id: key.hash,
          before: keyState(key),
          after: null,
        });
        announce({ topic: 'keys', id: key.hash });
      });
      return { deleted: true as const };
    },
  });
}
