import Type from 'typebox';
import { describeKey, keyState, windowStarts } from '../../accounts/key.ts';
import { checkVersion, setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import { Key, UpdateKeyBody } from '../../schemas/key.ts';
import { toNano } from '../../schemas/money.ts';
import { checkStorable } from '../../schemas/text.ts';
import { type KeyStore, keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { actorOf, type Change, principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';
import { checkMayChange } from './member-keys.ts';
import { KeyParams, requireKey } from './require-key.ts';

export interface UpdateKeyDependencies {
  change: Change;
  keys: KeyStore;
  recorder: Pick<Recorder, 'flush'>;
  now: () => number;
}

/** Serves `PATCH /keys/{hash}`. After its answer, no node uses the key's old state. Running streams finish. */
export function updateKey(server: Server, { change, keys, recorder, now }: UpdateKeyDependencies): void {
  server.route({
    method: 'PATCH',
    url: '/keys/:hash',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'updateKey',
      tags: ['API keys'],
      summary: 'Changes, disables or enables an API key.',
      params: KeyParams,
      body: UpdateKeyBody,
      response: { 200: Type.Object({ data: Key }), ...errors(400, 401, 403, 404, 409, 429, 500) },
    },
    handler: async (request, reply) => {
      const { limit, ...settings } = request.body;
      checkStorable({ name: settings.name });
      const limited = limit === undefined ? {} : { limit_nano: limit === null ? null : toNano(limit) };
      const changed = await change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
        const caller = principalOf(request);
        const which = { organization_id: actor.organization_id, hash: request.params.hash };
        const store = keyStore(tx);
        const organizations = organizationStore(tx);
        const before = await requireKey(caller, which.hash, { find: store.lock, organizations });
        checkMayChange(caller, before, request.body);
        checkVersion(request, before.version);
        const after = await store.update(which, { ...settings, ...limited, updated_at: at });
        await audit({
          action: 'update',
          resource_type: 'api_key',
          resource_id: before.hash,
          before: keyState(before),
          after: keyState(after),
        });
        announce({ topic: 'keys', id: before.hash });
        return after;
      });
      await recentOutcomes(recorder);
      setVersion(reply, changed.version);
      const at = now();
      return { data: describeKey(changed, await keys.findUsage(changed.hash, windowStarts(at)), at) };
    },
  });
}
