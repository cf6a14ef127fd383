import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import { toUsd } from '../../schemas/money.ts';
import type { ActivityStore } from '../../storage/activity.ts';
import type { CreditStore } from '../../storage/credits.ts';
import { principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';

export interface GetCreditsDependencies {
  activity: ActivityStore;
  credits: CreditStore;
  recorder: Pick<Recorder, 'flush'>;
}

const Credits = Type.Object(
  {
    total_credits: Type.Number({
      description: 'Credits granted, USD. Where none ever were it is 0, and spending is not bounded by credits.',
    }),
    total_usage: Type.Number({ description: 'All that was ever spent, USD; own provider accounts (BYOK) apart.' }),
  },
  { title: 'Credits' },
);

/** Serves `GET /credits`. */
export function getCredits(server: Server, { activity, credits, recorder }: GetCreditsDependencies): void {
  server.route({
    method: 'GET',
    url: '/credits',
    config: { access: 'management' },
    schema: {
      operationId: 'getCredits',
      tags: ['Accounting'],
      summary: 'Returns the credits of the organization and what it has spent.',
      response: { 200: Type.Object({ data: Credits }), ...errors(401, 403, 429, 500) },
    },
    handler: async (request) => {
      const { organization_id } = principalOf(request);
      await recentOutcomes(recorder);
      const total_credits = toUsd((await credits.total(organization_id)) ?? 0);
      return { data: { total_credits, total_usage: toUsd(await activity.sumUsage(organization_id)) } };
    },
  });
}
