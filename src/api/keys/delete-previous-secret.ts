import Type from 'typebox';
import { describeKey, windowStarts } from '../../accounts/key.ts';
import { checkVersion, setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Key } from '../../schemas/key.ts';
import { keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { actorOf, principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';
import { KeyParams, requireKey } from './require-key.ts';
import type { RotateKeyDependencies } from './rotate-key.ts';
import { endPreviousSecret } from './rotate-secret.ts';

/** Serves `DELETE /keys/{hash}/previous-secret`. After its answer, no node accepts that secret. Members may do it to every key of theirs, as they may disable it. */
export function deletePreviousSecret(server: Server, { change, keys, recorder, now }: RotateKeyDependencies): void {
  server.route({
    method: 'DELETE',
    url: '/keys/:hash/previous-secret',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'deletePreviousSecret',
      tags: ['API keys'],
      summary: 'Ends the previous secret of a rotated API key.',
      description: 'Returns the key. Changes nothing if no previous secret is valid any more.',
      params: KeyParams,
      response: { 200: Type.Object({ data: Key }), ...errors(401, 403, 404, 409, 429, 500) },
    },
    handler: async (request, reply) => {
      const key = await change(actorOf(request), async (work) => {
        const organizations = organizationStore(work.tx);
        const find = keyStore(work.tx).lock;
        const before = await requireKey(principalOf(request), request.params.hash, { find, organizations });
        checkVersion(request, before.version);
        return endPreviousSecret(work, before);
      });
      await recentOutcomes(recorder);
      setVersion(reply, key.version);
      const at = now();
      return { data: describeKey(key, await keys.findUsage(key.hash, windowStarts(at)), at) };
    },
  });
}
