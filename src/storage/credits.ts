import { randomUUID } from 'node:crypto';
import { budgetStore } from './budgets.ts';
import type { Queries } from './queries.ts';

/** Credits of organizations. An organization without any grant has no spending limit. */
export function creditStore(queries: Queries) {
  const grants = (organizationId: string) =>
    queries.selectFrom('credit_grants').where('organization_id', '=', organizationId);
  return {
    /** The sum of all grants, nano-USD; undefined if there are none. */
    total: async (organizationId: string): Promise<number | undefined> => {
      const { granted } = await grants(organizationId)
        .select(({ fn, cast }) => cast<number | null>(fn.sum('amount_nano'), 'bigint').as('granted'))
        .executeTakeFirstOrThrow();
      return granted ?? undefined;
    },

    /** As `total`; locks it against other grants until the transaction ends. */
    lock: async (organizationId: string): Promise<number | undefined> => {
      await queries
        .updateTable('organizations')
        .set(({ ref }) => ({ name: ref('name') }))
        .where('id', '=', organizationId)
        .execute();
      return creditStore(queries).total(organizationId);
    },

    /** Adds a grant, or with a negative amount a deduction. Spending counts against the sum from then on. */
    grant: async (entry: {
      organization_id: string;
      amount_nano: number;
      reason: string;
      at: string;
    }): Promise<void> => {
      const { organization_id, amount_nano, reason, at } = entry;
      const grant = { id: randomUUID(), organization_id, amount_nano, reason, created_at: at };
      await queries.insertInto('credit_grants').values(grant).execute();
      const total = (await creditStore(queries).total(organization_id)) ?? 0;
      await budgetStore(queries).keepCredits(organization_id, total, at);
    },

    /** All grants, the oldest first. */
    list: (organizationId: string) =>
      grants(organizationId)
        .select(['created_at', 'amount_nano', 'reason'])
        .orderBy('created_at')
        .orderBy('id')
        .execute(),
  };
}

export type CreditStore = ReturnType<typeof creditStore>;
