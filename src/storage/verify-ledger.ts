import { sql } from 'kysely';
import { limits } from '../limits.ts';
import type { Queries } from './queries.ts';
import { settledOf } from './settled.ts';

/** Two sums of the ledger that should be equal and are not. */
export interface Difference {
  /**
   * `window`: what a budget has spent. `leases`: what is leased of it to all nodes. `usage` and `activity`: what a key has used
   * on a day, nano-USD; `requests`: how often. `generations`: a generation charges a window that does not exist.
   */
  of: 'window' | 'leases' | 'usage' | 'activity' | 'requests' | 'generations';
  name: string;
  /** The sum of what was settled. */
  expected: number;
  /** The stored sum. */
  actual: number;
}

/** The extent of a verification, and the differences. */
export interface Verification {
  generations: number;
  windows: number;
  /** At most `limits.verify_differences_max`. */
  differences: Difference[];
}

const PAGE = 5_000;

/** Sums the charges of every generation by window, a page at a time. */
async function sumCharges(tx: Queries): Promise<{ generations: number; charged: Map<string, number> }> {
  const charged = new Map<string, number>();
  let generations = 0;
  for (let last = ''; ; ) {
    const rows = await tx
      .selectFrom('ledger_generations')
      .select(['id', 'charges'])
      .where('id', '>', last)
      .orderBy('id')
      .limit(PAGE)
      .execute();
    for (const { charges } of rows) {
      for (const [budgetId, windowStart, amount] of JSON.parse(charges) as [string, string, number][]) {
        const name = `${budgetId} ${windowStart}`;
        charged.set(name, (charged.get(name) ?? 0) + amount);
      }
    }
    generations += rows.length;
    last = rows.at(-1)?.id ?? '';
    if (rows.length < PAGE) return { generations, charged };
  }
}

async function windowDifferences(tx: Queries): Promise<Verification> {
  const { generations, charged } = await sumCharges(tx);
  const adjusted = new Map(
    (
      await tx
        .selectFrom('ledger_adjustments')
        .select(['budget_id', 'window_start', sql<number>`CAST(SUM(amount) AS BIGINT)`.as('amount')])
        .groupBy(['budget_id', 'window_start'])
        .execute()
    ).map(({ budget_id, window_start, amount }) => [`${budget_id} ${window_start}`, amount]),
  );
  const booked = await tx
    .selectFrom('ledger_lost_leases')
    .select(['budget_id', 'window_start', sql<number>`CAST(SUM(amount) AS BIGINT)`.as('amount')])
    .groupBy(['budget_id', 'window_start'])
    .execute();
  for (const { budget_id, window_start, amount } of booked) {
    const name = `${budget_id} ${window_start}`;
    adjusted.set(name, (adjusted.get(name) ?? 0) + amount);
  }
  const differences: Difference[] = [];
  let windows = 0;
  for (let last = { budget_id: '', window_start: '' }; ; ) {
    const rows = await tx
      .selectFrom('ledger_windows')
      .select(['budget_id', 'window_start', 'opening'])
      .select((eb) => eb('spent', '+', settledOf('ledger_windows')).as('spent'))
      .where(({ eb, and, or }) =>
        or([
          eb('budget_id', '>', last.budget_id),
          and([eb('budget_id', '=', last.budget_id), eb('window_start', '>', last.window_start)]),
        ]),
      )
      .orderBy('budget_id')
      .orderBy('window_start')
      .limit(PAGE)
      .execute();
    for (const { budget_id, window_start, opening, spent } of rows) {
      const name = `${budget_id} ${window_start}`;
      const expected = opening + (charged.get(name) ?? 0) + (adjusted.get(name) ?? 0);
      charged.delete(name);
      if (spent !== expected) differences.push({ of: 'window', name, expected, actual: spent });
    }
    windows += rows.length;
    last = rows.at(-1) ?? last;
    if (rows.length < PAGE) break;
  }
  for (const [name, expected] of charged) differences.push({ of: 'generations', name, expected, actual: 0 });
  return { generations, windows, differences };
}

/** Compares the leased sums of windows with the nodes' leases. */
async function leaseDifferences(tx: Queries): Promise<Difference[]> {
  const { rows } = await sql<{ budget_id: string; window_start: string; expected: number; actual: number }>`
    SELECT budget_id, window_start, CAST(SUM(expected) AS BIGINT) AS expected, CAST(SUM(actual) AS BIGINT) AS actual FROM (
      SELECT budget_id, window_start, amount + settled AS expected, 0 AS actual FROM ledger_leases
      UNION ALL SELECT budget_id, window_start, 0, leased FROM ledger_windows) AS held
    GROUP BY budget_id, window_start HAVING SUM(expected) <> SUM(actual)
    ORDER BY budget_id, window_start LIMIT ${limits.verify_differences_max}`.execute(tx);
  return rows.map(({ budget_id, window_start, expected, actual }) => {
    return { of: 'leases', name: `${budget_id} ${window_start}`, expected, actual };
  });
}

interface DayRow {
  key_hash: string;
  day: string;
  expected: number;
  actual: number;
  requests_expected: number;
  requests_actual: number;
}

/** Compares what keys have used on each day, by the generations and the operator's corrections, with one of the two sums of it. */
async function dayDifferences(tx: Queries, of: 'usage' | 'activity'): Promise<Difference[]> {
  const counted =
    of === 'usage'
      ? sql`SELECT scope_id, day, 0, usage_nano, 0, requests FROM usage_days WHERE scope = 'key'`
      : sql`SELECT key_hash, day, 0, usage_nano, 0, requests FROM activity_days`;
  const { rows } = await sql<DayRow>`
    SELECT key_hash, day, CAST(SUM(expected) AS BIGINT) AS expected, CAST(SUM(actual) AS BIGINT) AS actual,
      CAST(SUM(requests_expected) AS BIGINT) AS requests_expected, CAST(SUM(requests_actual) AS BIGINT) AS requests_actual
    FROM (
      SELECT key_hash, substr(created_at, 1, 10) AS day, cost AS expected, 0 AS actual, 1 AS requests_expected, 0 AS requests_actual
        FROM ledger_generations
      UNION ALL ${counted}
      UNION ALL SELECT substr(budget_id, ${USAGE_OF_KEY.length + 1}), window_start, amount, 0, 0, 0
        FROM ledger_adjustments WHERE substr(budget_id, 1, ${USAGE_OF_KEY.length}) = ${USAGE_OF_KEY}) AS days
    GROUP BY key_hash, day HAVING SUM(expected) <> SUM(actual) OR SUM(requests_expected) <> SUM(requests_actual)
    ORDER BY key_hash, day LIMIT ${limits.verify_differences_max}`.execute(tx);
  return rows.flatMap(({ key_hash, day, expected, actual, requests_expected, requests_actual }): Difference[] => {
    const name = `key:${key_hash} ${day}`;
    return [
      ...(expected === actual ? [] : [{ of, name, expected, actual }]),
      ...(requests_expected === requests_actual
        ? []
        : [{ of: 'requests' as const, name: `${of} ${name}`, expected: requests_expected, actual: requests_actual }]),
    ];
  });
}

/** The name of a correction of a key's usage in the adjustments, followed by the key's hash. */
export const USAGE_OF_KEY = 'usage:key:';

/** Compares the two sums of usage on own provider accounts with each other: no column of a generation has it. */
async function byokDifferences(tx: Queries): Promise<Difference[]> {
  const { rows } = await sql<{ key_hash: string; day: string; expected: number; actual: number }>`
    SELECT key_hash, day, CAST(SUM(expected) AS BIGINT) AS expected, CAST(SUM(actual) AS BIGINT) AS actual FROM (
      SELECT scope_id AS key_hash, day, byok_usage_nano AS expected, 0 AS actual FROM usage_days WHERE scope = 'key'
      UNION ALL SELECT key_hash, day, 0, byok_usage_nano FROM activity_days) AS days
    GROUP BY key_hash, day HAVING SUM(expected) <> SUM(actual)
    ORDER BY key_hash, day LIMIT ${limits.verify_differences_max}`.execute(tx);
  return rows.map(({ key_hash, day, expected, actual }) => {
    return { of: 'activity', name: `key:${key_hash} ${day} (own accounts)`, expected, actual };
  });
}

/** Recomputes all sums of what was settled, as of one moment. Changes nothing. */
export async function verifyLedger(queries: Queries): Promise<Verification> {
  const moment = queries.transaction().setIsolationLevel('repeatable read').setAccessMode('read only');
  return moment.execute(async (tx) => {
    const { generations, windows, differences } = await windowDifferences(tx);
    const all = [
      ...differences,
      ...(await leaseDifferences(tx)),
      ...(await dayDifferences(tx, 'usage')),
      ...(await dayDifferences(tx, 'activity')),
      ...(await byokDifferences(tx)),
    ];
    return { generations, windows, differences: all.slice(0, limits.verify_differences_max) };
  });
}
