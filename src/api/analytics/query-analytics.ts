import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import type { AnalyticsStore } from '../../storage/analytics.ts';
import { ownUserOf, principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';
import { DIMENSIONS, GRANULARITIES, METRICS, OPERATORS } from './metrics.ts';
import { type QueryBounds, runQuery } from './run-query.ts';
import { rangeOf } from './time-range.ts';

const METRICS_MAX = 20;
const DIMENSIONS_MAX = 2;
const FILTERS_MAX = 20;
const FILTER_VALUES_MAX = 100;
const FILTER_CHARS_MAX = 512;
const LIMIT_DEFAULT = 1_000;
const LIMIT_MAX = 10_000;

/** A query reads at most this much: about half a second of the store. */
const BOUNDS: QueryBounds = { rows_max: 500_000, groups_max: 50_000, calls_max: 20_000 };

export interface QueryAnalyticsDependencies {
  analytics: AnalyticsStore;
  recorder: Pick<Recorder, 'flush'>;
  now: () => number;
  /** Set by tests. */
  queryBounds?: QueryBounds;
}

const closed = { additionalProperties: false };
const Scalar = Type.Union([Type.String({ maxLength: FILTER_CHARS_MAX }), Type.Number()]);

const AnalyticsQuery = Type.Object(
  {
    metrics: Type.Array(Type.Enum([...METRICS.keys()]), { minItems: 1, maxItems: METRICS_MAX, uniqueItems: true }),
    dimensions: Type.Optional(
      Type.Array(Type.Enum([...DIMENSIONS.keys()]), { maxItems: DIMENSIONS_MAX, uniqueItems: true }),
    ),
    granularity: Type.Optional(Type.Enum([...GRANULARITIES], { description: 'Not set: one row for the whole range.' })),
    time_range: Type.Optional(
      Type.Object(
        { start: Type.String(), end: Type.String() },
        {
          ...closed,
          description:
            'Dates and times with seconds in UTC (`Z`); `end` is not included. Extended to whole hours, or to whole minutes for the granularity `minute`. At most 366 days; 31 days by hour, 24 hours by minute. Default: the last 7 days, or the last hour by minute.',
        },
      ),
    ),
    filters: Type.Optional(
      Type.Array(
        Type.Object(
          {
            field: Type.String({ maxLength: 100, description: 'A dimension, or a metric of the query.' }),
            operator: Type.Enum([...OPERATORS]),
            value: Type.Union([Scalar, Type.Array(Scalar, { minItems: 1, maxItems: FILTER_VALUES_MAX })], {
              description:
                'A list for `in` and `not_in`. Ids, not names; `api_key_id` takes the number or the hash of a key.',
            }),
            include_unset: Type.Optional(
              Type.Boolean({ description: 'Calls without a value match too. Default: they never match.' }),
            ),
          },
          closed,
        ),
        { maxItems: FILTERS_MAX },
      ),
    ),
    order_by: Type.Optional(
      Type.Object(
        {
          field: Type.String({ maxLength: 100, description: 'A metric, a dimension or the time of the rows.' }),
          direction: Type.Enum(['asc', 'desc']),
        },
        closed,
      ),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIMIT_MAX, description: `Default: ${LIMIT_DEFAULT}.` })),
    group_limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: LIMIT_MAX, description: 'The most rows of each combination of dimensions.' }),
    ),
  },
  {
    ...closed,
    title: 'AnalyticsQuery',
    examples: [{ metrics: ['credits_usage', 'request_count'], dimensions: ['model'], granularity: 'day' }],
  },
);

const AnalyticsResult = Type.Object(
  {
    data: Type.Array(Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Null()])), {
      description:
        'A field for each metric and dimension; null: no value. The time is in `date__day`, `date__week`, `date__month`, `created_at__hour` or `created_at__minute`. Ids have names beside them: `api_key_name`, `user_email`, `workspace_name`, `guardrail_name`.',
    }),
    metadata: Type.Object({
      query_time_ms: Type.Number(),
      row_count: Type.Integer(),
      truncated: Type.Boolean({ description: '`limit` or `group_limit` left rows out.' }),
    }),
    warnings: Type.Optional(Type.Array(Type.String())),
  },
  { title: 'AnalyticsResult' },
);

/** Serves `POST /analytics/query`: sums and rates of usage by time and dimensions. */
export function queryAnalytics(server: Server, dependencies: QueryAnalyticsDependencies): void {
  const { analytics, recorder, now, queryBounds = BOUNDS } = dependencies;
  server.route({
    method: 'POST',
    url: '/analytics/query',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'queryAnalytics',
      tags: ['Analytics'],
      summary: 'Returns usage by time and up to two dimensions.',
      description:
        'Amounts are USD, exact to the nano-dollar, durations milliseconds. Sums equal those of the ledger; corrections count in the hour of their call. A call with several tags, or on which several guardrails acted, counts for each of them. Values that callers choose (`app`, `tag`, `external_user`) are `other` from the hundred-and-first in an hour on. Percentiles are exact to 5 percent. A signed-in member sees the usage of its own keys. A query that would read too much is a 408.',
      body: AnalyticsQuery,
      response: { 200: Type.Object({ data: AnalyticsResult }), ...errors(400, 401, 403, 408, 429, 500) },
    },
    handler: async (request) => {
      const caller = principalOf(request);
      const { metrics, dimensions = [], filters = [], granularity, time_range, order_by } = request.body;
      const { limit = LIMIT_DEFAULT, group_limit } = request.body;
      const moment = now();
      const { isRounded, ...range } = rangeOf(time_range, { granularity, now: moment });
      const startedMs = performance.now();
      if (range.to > moment - 60_000) await recentOutcomes(recorder);
      const query = { metrics, dimensions, filters, granularity, order_by, limit, group_limit };
      const { organization_id } = caller;
      const { rows, truncated } = await runQuery(query, {
        range,
        organization_id,
        ownUser: ownUserOf(caller),
        store: analytics,
        bounds: queryBounds,
      });
      const warnings = [
        ...(isRounded
          ? [
              `time_range was extended to ${new Date(range.from).toISOString()} and ${new Date(range.to).toISOString()}: sums are kept by ${granularity === 'minute' ? 'minute' : 'hour'}`,
            ]
          : []),
        ...(granularity === 'minute' ? deletedWarning(await analytics.deletedBefore(), range) : []),
        ...((await analytics.hasUncounted())
          ? ['Calls of an older version are still being counted; sums are incomplete']
          : []),
      ];
      return {
        data: {
          data: rows,
          metadata: {
            query_time_ms: Math.round(performance.now() - startedMs),
            row_count: rows.length,
            truncated,
          },
          ...(warnings.length === 0 ? {} : { warnings }),
        },
      };
    },
  });
}

/** Minutes are summed from the generations, which retention may have deleted. */
function deletedWarning(deletedBefore: string | null, { from }: { from: number }): string[] {
  if (deletedBefore === null || from >= Date.parse(deletedBefore)) return [];
  return [
    `Generations from before ${deletedBefore} were deleted (retention.generations_days): minutes before then are not counted; hours and days are`,
  ];
}
