import { sql } from 'kysely';
import { limits } from '../limits.ts';
import { DAY_MS } from '../schemas/budget.ts';
import type { RateAnswer, RateAsk } from '../schemas/rate-limit.ts';
import { BulkStatement } from './bulk.ts';
import type { Database } from './database.ts';
import type { Queries } from './queries.ts';

/** Rows that one sweep deletes. */
const RATE_SWEEP_ROWS_MAX = 10_000;

/** A request as parameters; the order of the columns is their order. */
interface RequestRow {
  id: string;
  span: number;
  amount: number;
  need: number;
  waiting: number;
  want: number;
  owed: number;
  back: number;
  back_start: number;
  at: number;
}

// A statement that waited for another's lock may have read the clock before the other did: then the window is kept. A window
// further ahead is of a wrong clock.
const STILL = 'rate_windows.window_start BETWEEN w.start AND w.start + w.span';
const START = `CASE WHEN ${STILL} THEN rate_windows.window_start ELSE w.start END`;
const USED = `(w.owed + CASE WHEN NOT (${STILL}) THEN 0
  WHEN rate_windows.window_start = w.back_start THEN rate_windows.used - w.back ELSE rate_windows.used END)`;
const FREE = `(w.amount - ${USED})`;
// `waiting` is granted as far as possible; beyond it, `want` is granted a share of what is free.
const SHARE = `CASE WHEN w.want * ${limits.rate_block_divisor} < ${FREE} THEN w.want ELSE ${FREE} / ${limits.rate_block_divisor} END`;
const WANTED = `CASE WHEN (${SHARE}) > w.waiting THEN (${SHARE}) ELSE w.waiting END`;
const GRANT = `CASE WHEN ${FREE} <= 0 OR ${FREE} < w.need THEN 0 WHEN ${FREE} < (${WANTED}) THEN ${FREE} ELSE (${WANTED}) END`;

const CLOCK = {
  sqlite: 'v.at',
  postgres: 'CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)',
};
// Locks the rows in one order: nodes that lock them in different orders would deadlock.
const LOCK = {
  sqlite: '',
  postgres: `, locked AS MATERIALIZED (SELECT rate_windows.id FROM rate_windows JOIN v ON v.id = rate_windows.id
    ORDER BY rate_windows.id COLLATE "C" FOR UPDATE OF rate_windows)`,
};
const FROM = { sqlite: 'v', postgres: 'v JOIN locked ON locked.id = v.id' };

function countStatement(engine: Database['engine']) {
  const count = sql.raw(`
    ${LOCK[engine]}, t AS (SELECT v.*, ${CLOCK[engine]} AS now FROM ${FROM[engine]}),
    w AS (SELECT t.*, t.now - t.now % t.span AS start FROM t)
    UPDATE rate_windows SET
      window_start = ${START},
      used = ${USED} + (${GRANT}),
      granted = ${GRANT},
      counted_at = w.now
    FROM w WHERE rate_windows.id = w.id
    RETURNING rate_windows.id, rate_windows.window_start AS window_start_ms, rate_windows.used, rate_windows.granted,
      rate_windows.counted_at AS now_ms`);
  return new BulkStatement<RequestRow, RateAnswer>((queries, rows) => {
    const values = rows.map(({ id, ...numbers }) => {
      const fields = Object.values(numbers).map((value) => sql`CAST(${value} AS BIGINT)`);
      return sql`(CAST(${id} AS TEXT), ${sql.join(fields)})`;
    });
    return sql`WITH v (id, span, amount, need, waiting, want, owed, back, back_start, at) AS (VALUES ${sql.join(values)}) ${count}`.compile(
      queries,
    );
  });
}

const statements = { sqlite: countStatement('sqlite'), postgres: countStatement('postgres') };

function toRow(request: RateAsk, at: number): RequestRow {
  const { id, span_ms: span, amount, need, waiting, want, owed, back, back_start_ms: backStart } = request;
  return { id, span, amount, need, waiting, want, owed, back, back_start: backStart, at };
}

/** The counters of rate limits, shared by all nodes. */
export function rateWindowStore(queries: Queries, engine: Database['engine']) {
  const count = statements[engine];
  return {
    /**
     * Counts, and grants units: in a window never more than its amount to all nodes together. `at` is this machine's time,
     * used if the store has no clock. Each counter may appear once in `requests`.
     */
    ask: async (requests: readonly RateAsk[], at: number): Promise<RateAnswer[]> => {
      const { answers } = await count.run(
        queries,
        requests.map((request) => toRow(request, at)),
      );
      if (answers.length === requests.length) return answers;
      const known = new Set(answers.map(({ id }) => id));
      const missing = requests.filter(({ id }) => !known.has(id));
      await queries
        .insertInto('rate_windows')
        .values(missing.map(({ id }) => ({ id, window_start: 0, used: 0, granted: 0, counted_at: at })))
        .onConflict((conflict) => conflict.column('id').doNothing())
        .execute();
      const { answers: added } = await count.run(
        queries,
        missing.map((request) => toRow(request, at)),
      );
      return [...answers, ...added];
    },

    /** Deletes counters whose windows ended long ago, at most `rate_sweep_rows_max` at a time. */
    sweep: async (at: number): Promise<void> => {
      await queries
        .deleteFrom('rate_windows')
        .where('id', 'in', ({ selectFrom }) =>
          selectFrom('rate_windows')
            .select('id')
            .where('counted_at', '<', at - 2 * DAY_MS)
            .orderBy('counted_at')
            .limit(RATE_SWEEP_ROWS_MAX),
        )
        .execute();
    },
  };
}
