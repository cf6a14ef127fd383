import type { Queries } from './queries.ts';

/** The days to list. A filter that is not set matches all. Days are YYYY-MM-DD in UTC, both ends included. */
export interface ActivityFilter {
  organization_id: string;
  from: string;
  to: string;
  key_hash?: string | undefined;
  user_id?: string | undefined;
  workspace_id?: string | undefined;
}

/** One day of one model at one endpoint, summed over the keys that match the filter. Money is nano-USD. */
export interface ActivityRow {
  day: string;
  workspace_id: string | undefined;
  model: string;
  model_permaslug: string;
  endpoint_id: string;
  provider_name: string;
  usage_nano: number;
  byok_usage_nano: number;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  reasoning_tokens: number;
}

const sums = [
  'usage_nano',
  'byok_usage_nano',
  'requests',
  'prompt_tokens',
  'completion_tokens',
  'reasoning_tokens',
] as const;

/** Usage by day. The ledger raises the rows together with the generations that they count. */
export function activityStore(queries: Queries) {
  return {
    /** The newest day first; with `by_workspace`, a row for each workspace. */
    listBy: async (filter: ActivityFilter, { by_workspace }: { by_workspace: boolean }): Promise<ActivityRow[]> => {
      let query = queries
        .selectFrom('activity_days')
        .where('organization_id', '=', filter.organization_id)
        .where('day', '>=', filter.from)
        .where('day', '<=', filter.to);
      for (const column of ['key_hash', 'user_id', 'workspace_id'] as const) {
        const value = filter[column];
        if (value !== undefined) query = query.where(column, '=', value);
      }
      const groups = ['day', 'model', 'model_permaslug', 'endpoint_id', 'provider_name'] as const;
      const grouped = by_workspace
        ? query.select('workspace_id').groupBy([...groups, 'workspace_id'])
        : query.groupBy(groups);
      const rows = await grouped
        .select(groups)
        .select(({ fn, cast }) => sums.map((column) => cast<number>(fn.sum(column), 'bigint').as(column)))
        .orderBy('day', 'desc')
        .orderBy('model')
        .orderBy('endpoint_id')
        .execute();
      return rows.map((row) => ({ workspace_id: undefined, ...row }));
    },

    /** What the organization has spent on the gateway's accounts over all time, nano-USD. */
    sumUsage: async (organizationId: string): Promise<number> => {
      // Generations of an older version are not in the running sum until they are counted.
      const uncounted = queries.selectFrom('ledger_generations').select('id').where('series', 'is', null).limit(1);
      const isWhole = (await uncounted.executeTakeFirst()) === undefined;
      const { total } = await queries
        .selectFrom(isWhole ? 'organization_usage' : 'activity_days')
        .where('organization_id', '=', organizationId)
        .select(({ fn, cast, val }) => cast<number>(fn.coalesce(fn.sum('usage_nano'), val(0)), 'bigint').as('total'))
        .executeTakeFirstOrThrow();
      return total;
    },
  };
}

export type ActivityStore = ReturnType<typeof activityStore>;
