import { sql } from 'kysely';
import { limits } from '../limits.ts';
import { BulkStatement } from './bulk.ts';
import type { Database } from './database.ts';
import type { Queries } from './queries.ts';
import { storeNow } from './store-now.ts';

const STATISTICS_SWEEP_ROWS_MAX = 10_000;
/** Days of health that are kept, and endpoints of one day: those with the most calls. */
export const HEALTH_DAYS = 30;
const HEALTH_ENDPOINTS_MAX = 5_000;
const DAY_MINUTES = 1_440;

/** The calls of an endpoint on one UTC day. */
export interface EndpointDay {
  endpoint_id: string;
  /** Days since 1970. */
  day: number;
  successes: number;
  errors: number;
  rate_limited: number;
}

/** What one process counted of one endpoint in one span of time; times in minutes since 1970. */
export interface StatisticsRow {
  endpoint_id: string;
  span: number;
  start: number;
  successes: number;
  errors: number;
  rate_limited: number;
  tool_calls: number;
  tool_calls_valid: number;
  /** Packed JSON. */
  sketches: string;
}

/** The spans, in minutes. */
const MINUTE = 1;
const QUARTER = 15;

/** The key of the last row of a page. */
type Place = readonly [endpoint_id: string, span: number, start: number, run: string];

const COLUMNS = [
  'endpoint_id',
  'span',
  'start',
  'run',
  'successes',
  'errors',
  'rate_limited',
  'tool_calls',
  'tool_calls_valid',
  'sketches',
] as const;

/** Statistics of endpoints, shared by all processes of the gateway. `at`: this machine's time, used if the store has no clock. */
export function endpointStatisticsStore(queries: Queries, engine: Database['engine']) {
  const upsert = new BulkStatement<StatisticsRow & { run: string; written_at: number }>((tx, rows) =>
    tx
      .insertInto('endpoint_statistics')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['endpoint_id', 'span', 'start', 'run']).doUpdateSet(({ ref }) => ({
          successes: ref('excluded.successes'),
          errors: ref('excluded.errors'),
          rate_limited: ref('excluded.rate_limited'),
          tool_calls: ref('excluded.tool_calls'),
          tool_calls_valid: ref('excluded.tool_calls_valid'),
          sketches: ref('excluded.sketches'),
          written_at: ref('excluded.written_at'),
        })),
      )
      .compile(),
  );

  const now = async (at: number): Promise<number> => {
    const { now } = await queries.selectNoFrom(storeNow(engine, at).as('now')).executeTakeFirstOrThrow();
    return now;
  };

  /** Deletes rows written before a moment, the oldest first, at most `statistics_sweep_rows_max` at a time. */
  const sweepBefore = async (before: number, span: number): Promise<void> => {
    const last = await queries
      .selectFrom('endpoint_statistics')
      .select('written_at')
      .where('written_at', '<', before)
      .where('span', '=', span)
      .orderBy('written_at')
      .offset(STATISTICS_SWEEP_ROWS_MAX)
      .limit(1)
      .executeTakeFirst();
    await queries
      .deleteFrom('endpoint_statistics')
      .where('written_at', last === undefined ? '<' : '<=', last?.written_at ?? before)
      .where('span', '=', span)
      .execute();
  };

  const sweepSurplus = async (rowsMax: number, span: number): Promise<void> => {
    const surplus = await queries
      .selectFrom('endpoint_statistics')
      .select('written_at')
      .where('span', '=', span)
      .orderBy('written_at', 'desc')
      .offset(rowsMax)
      .limit(1)
      .executeTakeFirst();
    if (surplus !== undefined) await sweepBefore(surplus.written_at + 1, span);
  };

  /** Adds up yesterday and today, and deletes days that are over. Counts never fall: quarter hours of yesterday are deleted during today. */
  const keepDays = async (time: number): Promise<void> => {
    const today = Math.floor(time / (DAY_MINUTES * 60_000));
    const greatest = (column: string) =>
      sql.raw(
        `CASE WHEN excluded.${column} > endpoint_days.${column} THEN excluded.${column} ELSE endpoint_days.${column} END`,
      );
    for (const day of [today - 1, today]) {
      const from = day * DAY_MINUTES;
      await sql`
        INSERT INTO endpoint_days (endpoint_id, day, successes, errors, rate_limited)
        SELECT endpoint_id, CAST(${day} AS BIGINT), SUM(successes), SUM(errors), SUM(rate_limited) FROM endpoint_statistics
        WHERE span = ${sql.lit(QUARTER)} AND start >= ${from} AND start < ${from + DAY_MINUTES}
        GROUP BY endpoint_id ORDER BY SUM(successes) + SUM(errors) DESC LIMIT ${sql.lit(HEALTH_ENDPOINTS_MAX)}
        ON CONFLICT (endpoint_id, day) DO UPDATE SET
          successes = ${greatest('successes')}, errors = ${greatest('errors')}, rate_limited = ${greatest('rate_limited')}`.execute(
        queries,
      );
    }
    await queries
      .deleteFrom('endpoint_days')
      .where('day', '<=', today - HEALTH_DAYS)
      .execute();
  };

  return {
    /** The days of these endpoints from a day on, in order. */
    listDays: (endpointIds: readonly string[], from: number): Promise<EndpointDay[]> =>
      endpointIds.length === 0
        ? Promise.resolve([])
        : queries
            .selectFrom('endpoint_days')
            .selectAll()
            .where('endpoint_id', 'in', endpointIds)
            .where('day', '>=', from)
            .orderBy('endpoint_id')
            .orderBy('day')
            .execute(),

    /** Replaces rows of this process that exist already. */
    save: async (run: string, rows: readonly StatisticsRow[], at: number): Promise<void> => {
      const writtenAt = await now(at);
      await upsert.run(
        queries,
        rows.map((row) => ({
          endpoint_id: row.endpoint_id,
          span: row.span,
          start: row.start,
          run,
          successes: row.successes,
          errors: row.errors,
          rate_limited: row.rate_limited,
          tool_calls: row.tool_calls,
          tool_calls_valid: row.tool_calls_valid,
          sketches: row.sketches,
          written_at: writtenAt,
        })),
      );
    },

    now,

    /** A page of what other processes have written since a moment of the store's clock, ordered by key, after `after`. */
    findOthers: async (
      run: string,
      since: number,
      after: Place | undefined,
      rowsMax: number,
    ): Promise<(StatisticsRow & { run: string })[]> => {
      let query = queries
        .selectFrom('endpoint_statistics')
        .select(COLUMNS)
        .where('span', 'in', [MINUTE, QUARTER])
        .where('written_at', '>=', since)
        .where('run', '<>', run);
      if (after !== undefined) {
        const [endpointId, span, start, last] = after;
        query = query.where(
          sql<boolean>`(endpoint_id, span, start, run) > (${endpointId}, ${span}, ${start}, ${last})`,
        );
      }
      return query.orderBy('endpoint_id').orderBy('span').orderBy('start').orderBy('run').limit(rowsMax).execute();
    },

    /** Deletes rows older than the windows, and the oldest rows beyond a number, of minutes and of quarter hours. */
    sweep: async (at: number, { minutes, quarters }: { minutes: number; quarters: number }): Promise<void> => {
      const time = await now(at);
      // Before rows are deleted that it adds up.
      await keepDays(time);
      await sweepBefore(time - limits.statistics_minutes_keep_ms, MINUTE);
      await sweepBefore(time - limits.statistics_quarters_keep_ms, QUARTER);
      await sweepSurplus(minutes, MINUTE);
      await sweepSurplus(quarters, QUARTER);
    },
  };
}
