import { setTimeout as sleep } from 'node:timers/promises';
import Type from 'typebox';
import { describeKey, windowStarts } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { limits } from '../../limits.ts';
import { errors } from '../../schemas/error.ts';
import { Key } from '../../schemas/key.ts';
import { isStorable } from '../../schemas/text.ts';
import type { KeyStore } from '../../storage/keys.ts';

export interface GetKeyDependencies {
  keys: KeyStore;
  recorder: Pick<Recorder, 'flush'>;
  now: () => number;
}

/** Serves `GET /keys/{hash}`. Its usage includes every request that this node has answered. */
export function getKey(server: Server, { keys, recorder, now }: GetKeyDependencies): void {
  server.route({
    method: 'GET',
    url: '/keys/:hash',
    config: { access: 'management' },
    schema: {
      operationId: 'getKey',
      tags: ['API keys'],
      summary: 'Returns an API key.',
      params: Type.Object({ hash: Type.String({ description: 'The SHA-256 of the secret, in hex.' }) }),
      response: { 200: Type.Object({ data: Key }), ...errors(401, 403, 404, 429, 500) },
    },
    handler: async (request) => {
      const { hash } = request.params;
      const key = isStorable(hash) ? await keys.findByHash(hash) : undefined;
      const organization_id = request.principal?.organization_id;
      if (!key || key.is_management || key.organization_id !== organization_id) {
        throw new GatewayError(404, 'API key not found');
      }
      // Those who ask right after a request want to see it; a store that is slow to take it must not hold the answer.
      await Promise.race([recorder.flush(), sleep(limits.flush_read_ms_max, undefined, { ref: false })]);
      return { data: describeKey(key, await keys.findUsage(key.hash, windowStarts(now()))) };
    },
  });
}
