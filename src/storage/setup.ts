import { type Kysely, sql } from 'kysely';
import type { Queries } from './queries.ts';
import type { Tables } from './schema.ts';

/** The counter that marks a store with invented data. */
const DEMO = 'demo';

/** The first events of an organization. */
export interface SetupFacts {
  /** The first key that calls models. */
  first_key: { name: string; created_at: string } | undefined;
  /** The UTC day of the first call. */
  first_call: { day: string; model: string } | undefined;
  /** The first key with a limit; else the first budget of a workspace. */
  limit: { name: string; created_at: string } | undefined;
  first_sign_in: string | undefined;
  members: number;
  /** Whether credentials of own provider accounts are stored. */
  has_credentials: boolean;
}

/** The state of the store, for operators. */
export function setupStore(queries: Queries) {
  return {
    facts: async (organizationId: string): Promise<SetupFacts> => {
      const keys = queries
        .selectFrom('api_keys')
        .select(['name', 'created_at'])
        .where('organization_id', '=', organizationId)
        .where('is_management', '=', false)
        .orderBy('id')
        .limit(1);
      const [firstKey, limited, budget, call, signIn, members, credential] = await Promise.all([
        keys.executeTakeFirst(),
        keys.where('limit_nano', 'is not', null).executeTakeFirst(),
        queries
          .selectFrom('workspace_budgets as b')
          .innerJoin('workspaces as w', 'w.id', 'b.workspace_id')
          .select(['w.name', 'b.created_at'])
          .where('w.organization_id', '=', organizationId)
          .orderBy('b.created_at')
          .limit(1)
          .executeTakeFirst(),
        queries
          .selectFrom('activity_days')
          .select(['day', 'model'])
          .where('organization_id', '=', organizationId)
          .orderBy('day')
          .limit(1)
          .executeTakeFirst(),
        queries
          .selectFrom('audit_events')
          .select('created_at')
          .where('resource_type', '=', 'session')
          .where('organization_id', '=', organizationId)
          .orderBy('seq')
          .limit(1)
          .executeTakeFirst(),
        queries
          .selectFrom('organization_members')
          .select(({ fn }) => fn.countAll<number>().as('count'))
          .where('organization_id', '=', organizationId)
          .executeTakeFirstOrThrow(),
        queries
          .selectFrom('byok_credentials')
          .select('id')
          .where('organization_id', '=', organizationId)
          .limit(1)
          .executeTakeFirst(),
      ]);
      return {
        first_key: firstKey,
        first_call: call,
        limit: limited ?? budget,
        first_sign_in: signIn?.created_at,
        members: Number(members.count),
        has_credentials: credential !== undefined,
      };
    },

    /** The applied migrations, the newest first. */
    migrations: (): Promise<{ name: string; applied_at: string }[]> =>
      (queries as unknown as Kysely<Tables & { schema_migrations: { name: string; applied_at: string } }>)
        .selectFrom('schema_migrations')
        .select(['name', 'applied_at'])
        .orderBy('name', 'desc')
        .execute(),

    isDemo: async (): Promise<boolean> =>
      (await queries.selectFrom('counters').select('value').where('name', '=', DEMO).executeTakeFirst()) !== undefined,

    /** Whether anything was ever created in the store beside what a first start makes. */
    isUsed: async (): Promise<boolean> => {
      const { rows } = await sql<{ used: number }>`
        SELECT CASE WHEN EXISTS (SELECT 1 FROM ledger_generations) OR EXISTS (SELECT 1 FROM api_keys) THEN 1 ELSE 0 END AS used
      `.execute(queries);
      return rows[0]?.used === 1;
    },

    /** Marks the store as one of invented data, for ever. */
    markDemo: async (): Promise<void> => {
      await queries
        .insertInto('counters')
        .values({ name: DEMO, value: 1 })
        .onConflict((conflict) => conflict.column('name').doNothing())
        .execute();
    },
  };
}
