import Type from 'typebox';
import { describeKey, windowStarts } from '../../accounts/key.ts';
import { checkVersion, setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { limits } from '../../limits.ts';
import { errors } from '../../schemas/error.ts';
import { Key, RotateKeyBody } from '../../schemas/key.ts';
import { type KeyStore, keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { actorOf, type Change, principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';
import { checkMayRotate } from './member-keys.ts';
import { KeyParams, requireKey } from './require-key.ts';
import { rotateSecret } from './rotate-secret.ts';

export interface RotateKeyDependencies {
  change: Change;
  keys: KeyStore;
  recorder: Pick<Recorder, 'flush'>;
  now: () => number;
}

/** Serves `POST /keys/{hash}/rotate`. The secret is only in this answer. After it, no node accepts an older secret longer than the answer says. */
export function rotateKey(server: Server, { change, keys, recorder, now }: RotateKeyDependencies): void {
  server.route({
    method: 'POST',
    url: '/keys/:hash/rotate',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'rotateKey',
      tags: ['API keys'],
      summary: 'Gives an API key a new secret.',
      description:
        'The key stays the same: its hash, name, limits, usage, guardrails and the keys made with it. The older secret stays valid for ' +
        '`grace_seconds`; both secrets count against the same limits. One older secret at most stays valid: if the previous one still is, ' +
        'the request must say with `keep` which one stays, otherwise it is refused with a 409.',
      params: KeyParams,
      body: RotateKeyBody,
      response: {
        200: Type.Object({ data: Key, key: Type.String({ description: 'The new secret; shown only once.' }) }),
        ...errors(400, 401, 403, 404, 409, 429, 500),
      },
    },
    handler: async (request, reply) => {
      const { grace_seconds = limits.key_grace_default_seconds, keep } = request.body;
      const rotated = await change(actorOf(request), async (work) => {
        const caller = principalOf(request);
        const organizations = organizationStore(work.tx);
        const key = await requireKey(caller, request.params.hash, { find: keyStore(work.tx).lock, organizations });
        checkMayRotate(caller, key);
        checkVersion(request, key.version);
        return rotateSecret(work, key, { grace_seconds, keep });
      });
      const { key, secret } = rotated;
      await recentOutcomes(recorder);
      setVersion(reply, key.version);
      const at = now();
      return { data: describeKey(key, await keys.findUsage(key.hash, windowStarts(at)), at), key: secret };
    },
  });
}
