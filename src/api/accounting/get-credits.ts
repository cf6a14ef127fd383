import Type from 'typebox';
import { keyCredits, windowStarts } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import { toUsd } from '../../schemas/money.ts';
import type { ActivityStore } from '../../storage/activity.ts';
import type { CreditStore } from '../../storage/credits.ts';
import type { KeyStore } from '../../storage/keys.ts';
import { principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';

export interface GetCreditsDependencies {
  activity: ActivityStore;
  credits: CreditStore;
  keys: KeyStore;
  recorder: Pick<Recorder, 'flush'>;
  now: () => number;
}

const Credits = Type.Object(
  {
    total_credits: Type.Number({
      description: 'Credits granted, USD. 0 if none were ever granted; credits then do not limit spending.',
    }),
    total_usage: Type.Number({
      description: 'Everything that was ever spent, USD, without own provider accounts (BYOK).',
    }),
  },
  { title: 'Credits' },
);

/** Serves `GET /credits`. */
export function getCredits(server: Server, { activity, credits, keys, recorder, now }: GetCreditsDependencies): void {
  const ofKey = async (hash: string) => {
    const key = await keys.findByHash(hash);
    // The key was deleted after authentication.
    if (key === undefined) throw new GatewayError(401, 'Invalid API key');
    return keyCredits(key, await keys.findUsage(hash, windowStarts(now())));
  };
  server.route({
    method: 'GET',
    url: '/credits',
    config: { access: 'any' },
    schema: {
      operationId: 'getCredits',
      tags: ['Accounting'],
      summary:
        'Returns the credits of the organization and what it has spent; to an ordinary key its own limit and usage.',
      description:
        'With an ordinary key: the limit of that key, and what counts toward it in the current window, so that the difference is what is left. For a key without a limit: 0 and everything that it spent.',
      response: { 200: Type.Object({ data: Credits }), ...errors(401, 429, 500) },
    },
    handler: async (request, reply) => {
      // The answer is for this key only.
      reply.header('cache-control', 'private, no-store');
      const { kind, key_hash, organization_id } = principalOf(request);
      await recentOutcomes(recorder);
      if (kind === 'key') return { data: await ofKey(key_hash ?? '') };
      const totalCredits = toUsd((await credits.total(organization_id)) ?? 0);
      return { data: { total_credits: totalCredits, total_usage: toUsd(await activity.sumUsage(organization_id)) } };
    },
  });
}
