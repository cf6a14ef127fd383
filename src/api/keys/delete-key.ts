import { checkVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Deleted } from '../../schemas/page.ts';
import { keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { actorOf, type Change, principalOf } from '../change.ts';
import { deleteKeys } from './delete-keys.ts';
import { KeyParams, requireKey } from './require-key.ts';

/** Serves `DELETE /keys/{hash}`. After its answer, no node accepts the key or its descendants. Running streams finish, and their spending counts. */
export function deleteKey(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'DELETE',
    url: '/keys/:hash',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'deleteKey',
      tags: ['API keys'],
      summary: 'Deletes an API key, and the keys that were made with it.',
      params: KeyParams,
      response: { 200: Deleted, ...errors(401, 403, 404, 409, 429, 500) },
    },
    handler: async (request) => {
      await change(actorOf(request), async (work) => {
        const key = await requireKey(principalOf(request), request.params.hash, {
          find: keyStore(work.tx).lock,
          organizations: organizationStore(work.tx),
        });
        checkVersion(request, key.version);
        await deleteKeys(work, [key]);
      });
      return { deleted: true as const };
    },
  });
}
