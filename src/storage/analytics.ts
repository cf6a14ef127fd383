import { type Expression, type RawBuilder, sql } from 'kysely';
import { recordOf } from '../ledger/journal/record-values.ts';
import { toSettle } from '../ledger/settle.ts';
import { BulkStatement, type Step, transact } from './bulk.ts';
import { PendingUsage } from './pending-usage.ts';
import { portionsOf } from './portions.ts';
import type { Queries } from './queries.ts';
import {
  BUCKET_COLUMNS,
  countedCalls,
  type MEASURES,
  PART_BUCKETS,
  SeriesNames,
  UsageStatements,
  usageRowsOf,
} from './usage-rows.ts';

/** Generations that are counted in one transaction. */
const PORTION_ROWS = 200;

interface CountedGeneration {
  id: string;
  record: string;
  series: number;
}

/** Counts generations of older versions. A record that an operator corrects at the same time is read again. */
function markQuery(rows: readonly CountedGeneration[]) {
  const values = rows.map(
    ({ id, record, series }) => sql`(CAST(${id} AS TEXT), CAST(${record} AS TEXT), CAST(${series} AS BIGINT))`,
  );
  return sql`WITH v (id, record, series) AS (VALUES ${sql.join(values)})
    UPDATE ledger_generations SET series = v.series FROM v
    WHERE ledger_generations.id = v.id AND ledger_generations.record = v.record AND ledger_generations.series IS NULL`;
}

/** A dimension as a column of the series, and a condition on it. */
export type SeriesColumn =
  | 'organization_id'
  | 'workspace_id'
  | 'key_hash'
  | 'user_id'
  | 'model'
  | 'provider_name'
  | 'operation'
  | 'status'
  | 'finish_reason'
  | 'app'
  | 'tags'
  | 'external_user'
  | 'guardrails';

/** A filter on a dimension: one of these values, or none of them. `isList`: the column has several values with commas. */
export interface SeriesFilter {
  column: SeriesColumn;
  isList: boolean;
  is: 'in' | 'not_in';
  values: readonly string[];
}

/** Which sums to read. Hours are counted from 1970; `to` is not included. */
export interface UsageQuery {
  organization_id: string;
  filters: readonly SeriesFilter[];
  groups: readonly SeriesColumn[];
  from: number;
  to: number;
  /** The first hours of the time groups, ascending, the first one at most `from`; or one group for the whole range. */
  starts: readonly number[] | 'hours' | 'days' | 'whole';
  measures: readonly (typeof MEASURES)[number][];
  /** The metrics of `HISTOGRAMS` whose buckets to read. */
  histograms: readonly number[];
  /** The most rows that may be read, of sums and of buckets each; and the most groups. */
  rows_max: number;
  groups_max: number;
}

/** Sums of one group. `start`: the first hour of its time group. */
export interface UsageGroup {
  start: number;
  values: string[];
  sums: Record<string, number>;
}

/** The calls of one group in some buckets of a metric: those from `first` on. */
export interface BucketGroup {
  start: number;
  values: string[];
  metric: number;
  first: number;
  calls: number[];
}

/** Thrown if a query would read more rows than it may. */
export class QueryTooLarge extends Error {}

const DAY = 24;

type SumsTable = 'analytics_usage' | 'analytics_histograms';

/** The parts of a range: whole days, and the hours before and after them. */
function partsOf(from: number, to: number, byHour: boolean): { span: number; from: number; to: number }[] {
  const first = Math.ceil(from / DAY) * DAY;
  const last = Math.floor(to / DAY) * DAY;
  if (byHour || first >= last) return [{ span: 1, from, to }];
  return [
    { span: 1, from, to: first },
    { span: DAY, from: first, to: last },
    { span: 1, from: last, to },
  ].filter((part) => part.from < part.to);
}

function timeGroup(starts: UsageQuery['starts'], from: number): RawBuilder<number> {
  if (starts === 'whole') return sql.lit(from);
  if (starts === 'hours') return sql`u.start`;
  if (starts === 'days') return sql`u.start - u.start % 24`;
  const [first = from, ...later] = starts;
  if (later.length === 0) return sql.lit(first);
  // The last that is not after it.
  const cases = later.map((start, index) => sql`WHEN u.start < ${sql.lit(start)} THEN ${sql.lit(starts[index])}`);
  return sql`CASE ${sql.join(cases, sql` `)} ELSE ${sql.lit(later.at(-1))} END`;
}

function filterOf({ column, isList, is, values }: SeriesFilter): Expression<unknown> {
  const name = sql.ref(`s.${column}`);
  if (!isList) {
    const list = sql.join(values);
    return is === 'in' ? sql`${name} IN (${list})` : sql`${name} NOT IN (${list})`;
  }
  const each = values.map((value) =>
    value === ''
      ? sql`${name} = ''`
      : sql`(',' || ${name} || ',') LIKE ${`%,${value.replaceAll(/[\\%_]/g, '\\$&')},%`} ESCAPE '\\'`,
  );
  const any = sql`(${sql.join(each, sql` OR `)})`;
  return is === 'in' ? any : sql`NOT ${any}`;
}

/** The sums of usage, which the ledger raises together with the generations that they count. */
export function analyticsStore(queries: Queries) {
  const statements = new UsageStatements();
  const pending = new PendingUsage(queries);
  const names = new SeriesNames();
  const mark = new BulkStatement<CountedGeneration>((tx, rows) => markQuery(rows).compile(tx));

  /** The rows of a table in the range. */
  function rowsOf(table: SumsTable, query: UsageQuery, columns: RawBuilder<unknown>) {
    const metrics = query.histograms.map((metric) => sql.lit(metric));
    const which = table === 'analytics_histograms' ? sql`AND metric IN (${sql.join(metrics)})` : sql``;
    const read = partsOf(query.from, query.to, query.starts === 'hours').map(
      ({ span, from, to }) => sql`SELECT start, series, ${columns} FROM ${sql.table(table)}
        WHERE span = ${sql.lit(span)} ${which} AND start >= ${sql.lit(from)} AND start < ${sql.lit(to)}`,
    );
    return sql.join(read, sql` UNION ALL `);
  }

  function conditions({ organization_id, filters }: UsageQuery) {
    return sql.join([sql`s.organization_id = ${organization_id}`, ...filters.map(filterOf)], sql` AND `);
  }

  async function refuseLarge(table: SumsTable, query: UsageQuery): Promise<void> {
    const { rows } = await sql<{ rows: number }>`SELECT CAST(COUNT(*) AS BIGINT) AS rows FROM (
      SELECT 1 FROM (${rowsOf(table, query, sql`1 AS one`)}) AS u LIMIT ${sql.lit(query.rows_max + 1)}) AS counted`.execute(
      queries,
    );
    if ((rows[0]?.rows ?? 0) > query.rows_max) throw new QueryTooLarge('The query would read too many rows');
  }

  function refuseMany(rows: readonly unknown[], { groups_max }: UsageQuery): void {
    if (rows.length > groups_max) throw new QueryTooLarge('The query has too many groups');
  }

  return {
    /** Whether generations of older versions are not counted yet. */
    hasUncounted: async (): Promise<boolean> => {
      const row = await queries
        .selectFrom('ledger_generations')
        .select('id')
        .where('series', 'is', null)
        .limit(1)
        .executeTakeFirst();
      return row !== undefined;
    },

    /** The moment before which generations are deleted, or are being deleted; null: none. */
    deletedBefore: async (): Promise<string | null> => {
      const row = await queries
        .selectFrom('retention_sweeps')
        .select('deleted_before')
        .where('kind', '=', 'generations')
        .executeTakeFirst();
      return row?.deleted_before ?? null;
    },

    /** Counts a portion of the generations that are not counted yet, and what is pending; returns how many generations there were. */
    countPortion: async (): Promise<number> => {
      await pending.addAll();
      const rows = await queries
        .selectFrom('ledger_generations')
        .select(['id', 'node_id', 'record', 'created_at'])
        .where('series', 'is', null)
        .orderBy('id')
        .limit(PORTION_ROWS)
        .execute();
      if (rows.length === 0) return 0;
      const counted = countedCalls(
        rows.map(({ id, node_id, created_at, record }) => {
          return { id, node_id, created_at, usage: toSettle(recordOf(record), []).usage };
        }),
        ({ node_id }) => node_id,
        names,
      );
      const marked = mark.step(
        rows.map(({ id, record }) => ({ id, record, series: counted.seriesOf.get(id) ?? 0 })),
        { must_change: true },
      );
      const steps: Step[] = [
        marked,
        ...statements.callSteps(counted),
        ...statements.sumSteps(usageRowsOf(counted.hours)),
      ];
      // Another process counts the same generations, or a record was corrected since: the next portion reads again.
      await transact(queries, steps);
      return rows.length;
    },

    /** The sums of each group. Rejects with `QueryTooLarge`. */
    sum: async (query: UsageQuery): Promise<UsageGroup[]> => {
      await pending.addAll();
      await refuseLarge('analytics_usage', query);
      const { groups, measures } = query;
      const read = measures.length === 0 ? (['requests'] as const) : measures;
      const sums = read.map((name) => sql`CAST(SUM(${sql.ref(`u.${name}`)}) AS BIGINT) AS ${sql.ref(name)}`);
      const values = groups.map((column, index) => sql`${sql.ref(`s.${column}`)} AS ${sql.ref(`d${index}`)}`);
      const columns = sql.join(read.map((name) => sql.ref(name)));
      const source = rowsOf('analytics_usage', query, columns);
      const time = timeGroup(query.starts, query.from);
      // Hours and days have few rows of a series each. Otherwise rows are summed before the series is read for each of them.
      const isFine = query.starts === 'hours' || query.starts === 'days';
      const counted = isFine
        ? source
        : sql`SELECT ${time} AS start_hour, series, ${sql.join(sums)} FROM (${source}) AS u GROUP BY start_hour, series`;
      const { rows } = await sql<Record<string, number | string>>`
        SELECT ${isFine ? time : sql`u.start_hour`} AS start_hour, ${sql.join([...values, ...sums])}
        FROM (${counted}) AS u JOIN analytics_series AS s ON s.id = u.series
        WHERE ${conditions(query)}
        GROUP BY ${sql.join([sql`1`, ...groups.map((_, index) => sql.ref(`d${index}`))])}
        LIMIT ${sql.lit(query.groups_max + 1)}`.execute(queries);
      refuseMany(rows, query);
      return rows.map((row) => ({
        start: Number(row['start_hour']),
        values: groups.map((_, index) => String(row[`d${index}`])),
        sums: Object.fromEntries(measures.map((name) => [name, Number(row[name])])),
      }));
    },

    /** The buckets of each group. Rejects with `QueryTooLarge`. */
    sumBuckets: async (query: UsageQuery): Promise<BucketGroup[]> => {
      const { groups, histograms } = query;
      if (histograms.length === 0) return [];
      await pending.addAll();
      await refuseLarge('analytics_histograms', query);
      const values = groups.map((column, index) => sql`${sql.ref(`s.${column}`)} AS ${sql.ref(`d${index}`)}`);
      const grouped = ['start_hour', ...groups.map((_, index) => `d${index}`), 'metric', 'part'];
      const calls = BUCKET_COLUMNS.map((name) => sql`CAST(SUM(${sql.ref(`u.${name}`)}) AS BIGINT) AS ${sql.ref(name)}`);
      const columns = sql`metric, part, ${sql.join(BUCKET_COLUMNS.map((name) => sql.ref(name)))}`;
      const { rows } = await sql<Record<string, number | string>>`
        SELECT ${timeGroup(query.starts, query.from)} AS start_hour,
          ${sql.join([...values, sql`u.metric AS metric`, sql`u.part AS part`, ...calls])}
        FROM (${rowsOf('analytics_histograms', query, columns)}) AS u
          JOIN analytics_series AS s ON s.id = u.series
        WHERE ${conditions(query)}
        GROUP BY ${sql.join(grouped.map((name) => sql.ref(name)))}
        LIMIT ${sql.lit(query.groups_max + 1)}`.execute(queries);
      refuseMany(rows, query);
      return rows.map((row) => ({
        start: Number(row['start_hour']),
        values: groups.map((_, index) => String(row[`d${index}`])),
        metric: Number(row['metric']),
        first: Number(row['part']) * PART_BUCKETS,
        calls: BUCKET_COLUMNS.map((name) => Number(row[name])),
      }));
    },

    /** The generations of the range, for groups shorter than an hour. Rejects with `QueryTooLarge`. */
    listCalls: async (
      { organization_id, filters, groups }: Pick<UsageQuery, 'organization_id' | 'filters' | 'groups'>,
      range: { from: string; to: string },
      callsMax: number,
    ): Promise<{ created_at: string; record: string; values: string[] }[]> => {
      const values = groups.map((column, index) => sql`${sql.ref(`s.${column}`)} AS ${sql.ref(`d${index}`)}`);
      const { rows } = await sql<Record<string, string>>`
        SELECT ${sql.join([sql`g.created_at AS created_at`, sql`g.record AS record`, ...values])}
        FROM ledger_generations AS g JOIN analytics_series AS s ON s.id = g.series
        WHERE g.organization_id = ${organization_id} AND g.created_at >= ${range.from} AND g.created_at < ${range.to}
          AND ${sql.join([sql`s.organization_id = ${organization_id}`, ...filters.map(filterOf)], sql` AND `)}
        LIMIT ${sql.lit(callsMax + 1)}`.execute(queries);
      if (rows.length > callsMax) throw new QueryTooLarge('The query would read too many calls');
      return rows.map((row) => ({
        created_at: row['created_at'] ?? '',
        record: row['record'] ?? '',
        values: groups.map((_, index) => String(row[`d${index}`])),
      }));
    },

    /** The hash of a key by its number; undefined if there is none. */
    findKeyHash: async (organizationId: string, id: number): Promise<string | undefined> => {
      const row = await queries
        .selectFrom('api_keys')
        .select('hash')
        .where('organization_id', '=', organizationId)
        .where('id', '=', id)
        .executeTakeFirst();
      return row?.hash;
    },

    /** The names of what the values of a dimension identify; without those that were deleted. */
    namesOf: async (
      column: SeriesColumn,
      ids: readonly string[],
      organizationId: string,
    ): Promise<ReadonlyMap<string, string>> => {
      const names = new Map<string, string>();
      const named = NAMED[column];
      if (named === undefined) return names;
      for (const portion of portionsOf(ids)) {
        const { rows } = await sql<{ id: string; name: string | null }>`
          SELECT ${sql.ref(named.id)} AS id, ${sql.ref(named.name)} AS name FROM ${sql.table(named.table)}
          WHERE ${sql.ref(named.id)} IN (${sql.join(portion)}) AND ${named.isOf(organizationId)}`.execute(queries);
        for (const { id, name } of rows) if (name !== null) names.set(id, name);
      }
      return names;
    },
  };
}

/** The tables that name the values of dimensions. */
const NAMED: Partial<
  Record<SeriesColumn, { table: string; id: string; name: string; isOf(organizationId: string): RawBuilder<unknown> }>
> = {
  key_hash: { table: 'api_keys', id: 'hash', name: 'name', isOf: (id) => sql`organization_id = ${id}` },
  workspace_id: { table: 'workspaces', id: 'id', name: 'name', isOf: (id) => sql`organization_id = ${id}` },
  guardrails: { table: 'guardrails', id: 'id', name: 'name', isOf: (id) => sql`organization_id = ${id}` },
  user_id: {
    table: 'users',
    id: 'id',
    name: 'email',
    isOf: (id) => sql`id IN (SELECT user_id FROM organization_members WHERE organization_id = ${id})`,
  },
};

export type AnalyticsStore = ReturnType<typeof analyticsStore>;
