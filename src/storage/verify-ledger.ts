import { sql } from 'kysely';
import type { UsageMeasures } from '../ledger/usage-facts.ts';
import { limits } from '../limits.ts';
import { addDeletedCharges, type DeletedDay, deletedDays } from './deleted-generations.ts';
import { portionsOf } from './portions.ts';
import type { Queries } from './queries.ts';
import { settledOf } from './settled.ts';
import { DAY_HOURS, hourOf, hoursOf, startOf } from './usage-rows.ts';

/** Two sums of the ledger that should be equal and are not. */
export interface Difference {
  /**
   * `window`: what a budget has spent. `leases`: what is leased of it to all nodes. `usage` and `activity`: what a key has used
   * on a day, nano-USD; `requests`: how often. `generations`: a generation charges a window that does not exist. `analytics`: the sums of
   * an hour or a day of usage. `total`: what an organization has spent.
   */
  of: 'window' | 'leases' | 'usage' | 'activity' | 'requests' | 'generations' | 'analytics' | 'total';
  name: string;
  /** The sum of what was settled. */
  expected: number;
  /** The stored sum. */
  actual: number;
}

/** The extent of a verification, and the differences. */
export interface Verification {
  /** Deleted ones included: their sums are kept. */
  generations: number;
  windows: number;
  /** At most `limits.verify_differences_max`. */
  differences: Difference[];
}

const PAGE = 5_000;

/** The cost and the number of the generations of a series in an hour. */
interface Counted {
  cost: number;
  requests: number;
  /** Undefined for corrections alone. */
  key_hash: string | undefined;
}

function addTo(
  counted: Map<string, Counted>,
  name: string,
  { cost, requests, key_hash }: Omit<Counted, 'key_hash'> & { key_hash?: string },
): void {
  const sum = counted.get(name) ?? { cost: 0, requests: 0, key_hash };
  sum.cost += cost;
  sum.requests += requests;
  counted.set(name, sum);
}

/** The sums of all generations, read a page at a time. */
interface GenerationSums {
  generations: number;
  /** By window. */
  charged: Map<string, number>;
  /** By series and hour. */
  counted: Map<string, Counted>;
}

async function sumGenerations(tx: Queries, signal?: AbortSignal): Promise<GenerationSums> {
  const charged = new Map<string, number>();
  const counted = new Map<string, Counted>();
  let generations = 0;
  for (let last = ''; ; ) {
    signal?.throwIfAborted();
    const rows = await tx
      .selectFrom('ledger_generations')
      .select(['id', 'charges', 'cost', 'key_hash', 'created_at', 'series'])
      .where('id', '>', last)
      .orderBy('id')
      .limit(PAGE)
      .execute();
    for (const { charges, cost, key_hash, created_at, series } of rows) {
      if (series !== null) addTo(counted, `${series} ${hourOf(created_at)}`, { cost, requests: 1, key_hash });
      for (const [budgetId, windowStart, amount] of JSON.parse(charges) as [string, string, number][]) {
        const name = `${budgetId} ${windowStart}`;
        charged.set(name, (charged.get(name) ?? 0) + amount);
      }
    }
    generations += rows.length;
    last = rows.at(-1)?.id ?? '';
    if (rows.length < PAGE) return { generations, charged, counted };
  }
}

async function windowDifferences(
  tx: Queries,
  charged: Map<string, number>,
): Promise<Omit<Verification, 'generations'>> {
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
  for (const [name, expected] of charged) {
    // A window that nothing was spent in may be deleted.
    if (expected !== 0) differences.push({ of: 'generations', name, expected, actual: 0 });
  }
  return { windows, differences };
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
      UNION ALL SELECT key_hash, day, cost, 0, requests, 0 FROM ledger_deleted_days
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

type PendingSums = ReadonlyMap<string, UsageMeasures & { start: number; series: number }>;

/** Sums of usage that are not part of the tables of hours and days yet, by series and hour. */
async function pendingSums(tx: Queries): Promise<PendingSums> {
  const rows = await tx.selectFrom('analytics_pending').select('sums').execute();
  return new Map(
    hoursOf(rows.map(({ sums }) => sums)).map(({ usage }) => [`${usage.series} ${usage.start}`, usage] as const),
  );
}

/** The stored sums of an hour of a series. */
interface StoredHour {
  start: number;
  series: number;
  usage_nano: number;
  requests: number;
  /** Null if the series does not exist. */
  key_hash: string | null;
}

/** The pending hours that have no row yet. */
async function hoursWithoutRow(tx: Queries, pending: PendingSums, added: ReadonlySet<string>): Promise<StoredHour[]> {
  const hours: StoredHour[] = [];
  const missing = [...pending].filter(([name]) => !added.has(name)).map(([, usage]) => usage);
  for (const portion of portionsOf(missing)) {
    const ids = portion.map(({ series }) => series);
    const rows = await tx.selectFrom('analytics_series').select(['id', 'key_hash']).where('id', 'in', ids).execute();
    const keys = new Map(rows.map(({ id, key_hash }) => [id, key_hash]));
    for (const usage of portion) hours.push({ ...usage, key_hash: keys.get(usage.series) ?? null });
  }
  return hours;
}

/**
 * Compares the hours of usage with what they count, and the days with their hours. `counted`: by series and hour. `pending`: what is not
 * part of the hours yet.
 */
async function analyticsDifferences(
  tx: Queries,
  counted: Map<string, Counted>,
  deleted: Map<string, DeletedDay>,
  pending: PendingSums,
): Promise<Difference[]> {
  const differences: Difference[] = [];
  // Of deleted generations the sums of days are known, not those of hours.
  const dayOf = (series: number | string, hour: number) => deleted.get(`${series} ${startOf(hour, DAY_HOURS)}`);
  const add = (name: string, usage: { cost: number; requests: number }) => addTo(counted, name, usage);
  const adjusted = await tx
    .selectFrom('ledger_adjustments as a')
    .innerJoin('ledger_generations as g', 'g.id', 'a.generation_id')
    .select(['g.series', 'g.created_at', 'a.amount'])
    .where(sql<boolean>`substr(a.budget_id, 1, ${USAGE_OF_KEY.length}) = ${USAGE_OF_KEY}`)
    .where('g.series', 'is not', null)
    .execute();
  for (const { series, created_at, amount } of adjusted) {
    add(`${series} ${hourOf(created_at)}`, { cost: amount, requests: 0 });
  }
  const compare = ({ start, series, usage_nano: usageNano, requests, key_hash }: StoredHour) => {
    const expected = counted.get(`${series} ${start}`) ?? { cost: 0, requests: 0, key_hash: undefined };
    counted.delete(`${series} ${start}`);
    const name = `series ${series} hour ${start}`;
    const day = dayOf(series, start);
    if (day !== undefined) {
      day.cost += expected.cost;
      day.requests += expected.requests;
      day.actual_cost += usageNano;
      day.actual_requests += requests;
      if (day.key_hash !== key_hash)
        differences.push({ of: 'analytics', name: `key of ${name}`, expected: day.cost, actual: 0 });
      return;
    }
    if (expected.cost !== usageNano)
      differences.push({ of: 'analytics', name, expected: expected.cost, actual: usageNano });
    if (expected.requests !== requests) {
      differences.push({ of: 'requests', name: `analytics ${name}`, expected: expected.requests, actual: requests });
    }
    if (expected.key_hash !== undefined && expected.key_hash !== key_hash) {
      differences.push({ of: 'analytics', name: `key of ${name}`, expected: expected.cost, actual: 0 });
    }
  };
  const added = new Set<string>();
  for (let last = { start: -1, series: -1 }; ; ) {
    const rows = await tx
      .selectFrom('analytics_usage as u')
      .leftJoin('analytics_series as s', 's.id', 'u.series')
      .select(['u.start', 'u.series', 'u.usage_nano', 'u.requests', 's.key_hash'])
      .where('u.span', '=', sql.lit(1))
      .where(({ eb, and, or }) =>
        or([eb('u.start', '>', last.start), and([eb('u.start', '=', last.start), eb('u.series', '>', last.series)])]),
      )
      .orderBy('u.start')
      .orderBy('u.series')
      .limit(PAGE)
      .execute();
    for (const { usage_nano: usageNano, requests, ...row } of rows) {
      const name = `${row.series} ${row.start}`;
      const later = pending.get(name);
      if (later !== undefined) added.add(name);
      compare({
        ...row,
        usage_nano: usageNano + (later?.usage_nano ?? 0),
        requests: requests + (later?.requests ?? 0),
      });
    }
    last = rows.at(-1) ?? last;
    if (rows.length < PAGE) break;
  }
  for (const hour of await hoursWithoutRow(tx, pending, added)) compare(hour);
  for (const [name, { cost, requests }] of counted) {
    const [series = '', hour = ''] = name.split(' ');
    const day = dayOf(series, Number(hour));
    if (day !== undefined) {
      day.cost += cost;
      day.requests += requests;
    } else if (cost !== 0 || requests !== 0)
      differences.push({ of: 'analytics', name: `series and hour ${name}`, expected: cost, actual: 0 });
  }
  for (const [name, { cost, requests, actual_cost, actual_requests }] of deleted) {
    const of = `series and day from hour ${name}`;
    if (cost !== actual_cost) differences.push({ of: 'analytics', name: of, expected: cost, actual: actual_cost });
    if (requests !== actual_requests)
      differences.push({ of: 'requests', name: `analytics ${of}`, expected: requests, actual: actual_requests });
  }
  const { rows: days } = await sql<{ start: number; series: number; expected: number; actual: number }>`
    SELECT day AS start, series, CAST(SUM(expected) AS BIGINT) AS expected, CAST(SUM(actual) AS BIGINT) AS actual FROM (
      SELECT start - start % 24 AS day, series, usage_nano AS expected, 0 AS actual, requests AS e, 0 AS a
        FROM analytics_usage WHERE span = 1
      UNION ALL SELECT start, series, 0, usage_nano, 0, requests FROM analytics_usage WHERE span = 24) AS days
    GROUP BY day, series HAVING SUM(expected) <> SUM(actual) OR SUM(e) <> SUM(a)
    ORDER BY day, series LIMIT ${limits.verify_differences_max}`.execute(tx);
  for (const { start, series, expected, actual } of days) {
    differences.push({ of: 'analytics', name: `series ${series} day from hour ${start}`, expected, actual });
  }
  return differences;
}

/** Compares what organizations have spent, and keys on own accounts, with the activity, once all generations are counted. */
async function totalDifferences(tx: Queries, pending: PendingSums): Promise<Difference[]> {
  const uncounted = tx.selectFrom('ledger_generations').select('id').where('series', 'is', null).limit(1);
  if ((await uncounted.executeTakeFirst()) !== undefined) return [];
  const own = [...pending.values()].filter((usage) => usage.byok_usage_nano !== 0);
  const values = own.map((usage) => sql`(CAST(${usage.series} AS BIGINT), CAST(${usage.byok_usage_nano} AS BIGINT))`);
  const later =
    own.length === 0
      ? sql``
      : sql` UNION ALL SELECT 'key:' || s.key_hash || ' (own accounts)', 0, v.column2
        FROM (VALUES ${sql.join(values)}) AS v JOIN analytics_series AS s ON s.id = v.column1`;
  const { rows } = await sql<{ name: string; expected: number; actual: number }>`
    SELECT name, CAST(SUM(expected) AS BIGINT) AS expected, CAST(SUM(actual) AS BIGINT) AS actual FROM (
      SELECT 'organization:' || organization_id AS name, usage_nano AS expected, 0 AS actual FROM activity_days
      UNION ALL SELECT 'organization:' || organization_id, 0, usage_nano FROM organization_usage
      UNION ALL SELECT 'key:' || key_hash || ' (own accounts)', byok_usage_nano, 0 FROM activity_days
      UNION ALL SELECT 'key:' || s.key_hash || ' (own accounts)', 0, u.byok_usage_nano
        FROM analytics_usage AS u JOIN analytics_series AS s ON s.id = u.series WHERE u.span = 24${later}) AS sums
    GROUP BY name HAVING SUM(expected) <> SUM(actual) ORDER BY name LIMIT ${limits.verify_differences_max}`.execute(tx);
  return rows.map((row) => ({ of: 'total', ...row }));
}

/** Recomputes all sums of what was settled, as of one moment. Changes nothing. Rejects soon after `signal` is aborted. */
export async function verifyLedger(queries: Queries, signal?: AbortSignal): Promise<Verification> {
  const moment = queries.transaction().setIsolationLevel('repeatable read').setAccessMode('read only');
  return moment.execute(async (tx) => {
    const { generations, charged, counted } = await sumGenerations(tx, signal);
    await addDeletedCharges(tx, charged);
    const deleted = await deletedDays(tx);
    const compared = [...deleted.values()].reduce((sum, { requests }) => sum + requests, generations);
    const pending = await pendingSums(tx);
    const { windows, differences } = await windowDifferences(tx, charged);
    const all = [
      ...differences,
      ...(await leaseDifferences(tx)),
      ...(await dayDifferences(tx, 'usage')),
      ...(await dayDifferences(tx, 'activity')),
      ...(await byokDifferences(tx)),
      ...(await analyticsDifferences(tx, counted, deleted, pending)),
      ...(await totalDifferences(tx, pending)),
    ];
    return { generations: compared, windows, differences: all.slice(0, limits.verify_differences_max) };
  });
}
