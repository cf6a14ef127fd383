import Type from 'typebox';
import { describeKey, windowStarts } from '../../accounts/key.ts';
import { setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import { Key } from '../../schemas/key.ts';
import type { KeyStore } from '../../storage/keys.ts';
import type { OrganizationStore } from '../../storage/organizations.ts';
import { principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';
import { KeyParams, requireKey } from './require-key.ts';

export interface GetKeyDependencies {
  keys: KeyStore;
  organizations: OrganizationStore;
  recorder: Pick<Recorder, 'flush'>;
  now: () => number;
}

/** Serves `GET /keys/{hash}`. The usage includes all requests that this node has answered. */
export function getKey(server: Server, { keys, organizations, recorder, now }: GetKeyDependencies): void {
  server.route({
    method: 'GET',
    url: '/keys/:hash',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'getKey',
      tags: ['API keys'],
      summary: 'Returns an API key.',
      params: KeyParams,
      response: { 200: Type.Object({ data: Key }), ...errors(401, 403, 404, 429, 500) },
    },
    handler: async (request, reply) => {
      const find = ({ hash }: { hash: string }) => keys.findByHash(hash);
      const key = await requireKey(principalOf(request), request.params.hash, { find, organizations });
      await recentOutcomes(recorder);
      setVersion(reply, key.version);
      const at = now();
      return { data: describeKey(key, await keys.findUsage(key.hash, windowStarts(at)), at) };
    },
  });
}
