import { sql } from 'kysely';
import { limits } from '../limits.ts';
import { PendingUsage } from './pending-usage.ts';
import type { Queries } from './queries.ts';

const DAY_HOURS = 24;
const HOUR_MS = 3_600_000;

/** The completed answers of a model at a provider, and their output. */
interface OutputSum {
  model: string;
  provider_name: string;
  answers: number;
  output_tokens: number;
}

/**
 * The output of the completed answers of each model at each provider in the last days. Reads at most
 * `limits.usual_output_rows_max` sums, the newest.
 */
export async function usualOutputs(queries: Queries, nowMs: number): Promise<OutputSum[]> {
  await new PendingUsage(queries).addAll();
  const today = Math.floor(nowMs / HOUR_MS / DAY_HOURS) * DAY_HOURS;
  const newest = queries
    .selectFrom('analytics_usage')
    .select(['series', 'requests', 'completion_tokens'])
    .where('span', '=', DAY_HOURS)
    .where('start', '>', today - limits.usual_output_days * DAY_HOURS)
    // The order of the primary key.
    .orderBy('start', 'desc')
    .orderBy('series', 'desc')
    .limit(limits.usual_output_rows_max);
  return queries
    .selectFrom(newest.as('u'))
    .innerJoin('analytics_series as s', 's.id', 'u.series')
    .select(['s.model', 's.provider_name'])
    .select([
      sql<number>`CAST(SUM(u.requests) AS BIGINT)`.as('answers'),
      sql<number>`CAST(SUM(u.completion_tokens) AS BIGINT)`.as('output_tokens'),
    ])
    .where('s.status', '=', 'completed')
    .where('s.provider_name', '<>', '')
    .groupBy(['s.model', 's.provider_name'])
    .execute();
}
