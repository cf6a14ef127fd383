import { type RawBuilder, sql } from 'kysely';
import { recordOf } from '../ledger/journal/record-values.ts';
import { listedFactsOf, storedFact } from '../ledger/listed-facts.ts';
import type { GenerationRecord } from '../ledger/records.ts';
import type { SeriesColumn } from './analytics.ts';
import type { Queries } from './queries.ts';
import { OTHER } from './usage-rows.ts';

/** Rows that one query examines if an index has all that it needs, and if it reads the rows themselves. */
const INDEXED_ROWS_MAX = 25_000;
const EXAMINED_ROWS_MAX = 4_000;
/** Rows that are summed at once, in the same two cases. */
const SUMMED_INDEXED_ROWS_MAX = 4_000;
const SUMMED_ROWS_MAX = 1_000;
/** Rows of older versions whose columns are filled at once. */
const FILLED_ROWS = 100;

/** The generations to list. A filter that is not set matches all. */
export interface GenerationFilter {
  organization_id: string;
  /** ISO 8601 in UTC with milliseconds; `to` is excluded. */
  from?: string | undefined;
  to?: string | undefined;
  key_hash?: string | undefined;
  user_id?: string | undefined;
  workspace_id?: string | undefined;
  model?: string | undefined;
  requested_model?: string | undefined;
  provider_name?: string | undefined;
  outcome?: GenerationRecord['outcome'] | undefined;
  /** It failed, or its end is unknown. */
  is_error?: boolean | undefined;
  /** The class of a failure of an attempt. */
  failure?: string | undefined;
  /** An attempt failed, whatever the outcome. */
  has_failures?: boolean | undefined;
  /** The id of an endpoint at which an attempt failed. */
  failed_endpoint?: string | undefined;
  has_guardrails?: boolean | undefined;
  finish_reason?: string | undefined;
  session_id?: string | undefined;
  /** `other` stands for the calls whose applications, or tags, analytics sums as `other`. */
  app?: string | undefined;
  tag?: string | undefined;
  /** Dimensions that only the series of a generation has. */
  external_user?: string | undefined;
  guardrail_id?: string | undefined;
  operation?: string | undefined;
  /** Dimensions of which the generation has no value. */
  unset?: readonly SeriesColumn[] | undefined;
  streamed?: boolean | undefined;
  min_cost_nano?: number | undefined;
  min_latency_ms?: number | undefined;
}

/** A position between generations: the last one before it. */
export interface GenerationPlace {
  created_at: string;
  id: string;
}

export interface GenerationPage {
  records: GenerationRecord[];
  /** Where the next page begins; undefined at the end. A page may have few records, or none, and a next one. */
  next: GenerationPlace | undefined;
}

export interface GenerationTotals {
  count: number;
  cost_nano: number;
  /** False if there are more generations than are counted at once; then the sums are those of the newest. */
  is_complete: boolean;
}

type Predicate = RawBuilder<boolean>;
const all = (predicates: readonly Predicate[]): Predicate =>
  predicates.length === 0 ? sql<boolean>`1 = 1` : sql<boolean>`${sql.join(predicates, sql` AND `)}`;
const likeText = (text: string, mark = ',') => `%${mark}${text.replace(/[\\%_]/g, '\\$&')}${mark}%`;

/** The filters that have an index of their own, the most selective first; each with the literal terms of a partial index. */
const LEADS: readonly [keyof GenerationFilter, (value: string) => Predicate, covers?: readonly string[]][] = [
  [
    'session_id',
    (value) => sql`session_id IS NOT NULL AND session_id = ${storedFact(value)}`,
    ['user_id', 'cost', 'model', 'outcome'],
  ],
  ['has_guardrails', () => sql`guardrails IS NOT NULL`, ['cost']],
  ['failure', () => sql`failures IS NOT NULL`, ['failures', 'outcome', 'cost']],
  ['outcome', () => sql`outcome <> 'completed'`, ['outcome', 'cost']],
  ['is_error', () => sql`outcome <> 'completed'`, ['outcome', 'cost']],
  ['has_failures', () => sql`failures IS NOT NULL`, ['failures', 'outcome', 'cost']],
  ['tag', () => sql`tags IS NOT NULL`, ['tags', 'cost', 'series']],
  ['app', (value) => sql`app IS NOT NULL AND app = ${storedFact(value)}`],
  ['user_id', (value) => sql`user_id IS NOT NULL AND ${begins('user_id', 8, storedFact(value))}`],
  ['key_hash', (value) => begins('key_hash', 12, value)],
  ['model', (value) => sql`model = ${storedFact(value)}`],
  ['workspace_id', (value) => begins('workspace_id', 8, value)],
];
/** The leads whose indexes have short entries: the beginnings of ids, and the time as a number. */
const SHORT: readonly (keyof GenerationFilter)[] = ['app', 'user_id', 'key_hash', 'model', 'workspace_id'];
/** Those of them that begin with the organization, since organizations share their values. */
const OF_ORGANIZATION: readonly (keyof GenerationFilter)[] = ['app', 'model'];

/** An id, which an index finds by its first characters. */
function begins(column: string, chars: number, value: string): Predicate {
  const length = sql.lit(chars);
  return sql`substr(${sql.ref(column)}, 1, ${length}) = substr(CAST(${value} AS TEXT), 1, ${length}) AND ${sql.ref(column)} = ${value}`;
}

/** No index is used for `IS TRUE`: that of an organization's time must not be chosen for that of the lead. */
function organizationIs(id: string, lead: keyof GenerationFilter | undefined): Predicate {
  if (lead === undefined || !SHORT.includes(lead)) return sql`organization_id = ${id}`;
  const is = sql<boolean>`(organization_id = ${id}) IS TRUE`;
  const first = sql.lit(8);
  return OF_ORGANIZATION.includes(lead)
    ? sql`substr(organization_id, 1, ${first}) = substr(CAST(${id} AS TEXT), 1, ${first}) AND ${is}`
    : is;
}
const TIME_COVERS = [
  'cost',
  'latency',
  'provider_name',
  'requested_model',
  'finish_reason',
  'streamed',
  'outcome',
  'series',
];

/** Conditions on the series of a generation, which has the values that analytics sums it by. */
function seriesConditions(filter: GenerationFilter): Predicate[] {
  const conditions: Predicate[] = [];
  for (const [column, value] of [
    ['external_user', filter.external_user],
    ['operation', filter.operation],
    ['app', filter.app === OTHER ? OTHER : undefined],
    ['tags', filter.tag === OTHER ? OTHER : undefined],
  ] as const) {
    if (value !== undefined) conditions.push(sql`${sql.ref(`s.${column}`)} = ${storedFact(value)}`);
  }
  if (filter.guardrail_id !== undefined) conditions.push(hasListed('s.guardrails', filter.guardrail_id));
  for (const column of filter.unset ?? []) conditions.push(sql`${sql.ref(`s.${column}`)} = ''`);
  return conditions;
}

/** Whether a text of values with commas between them has the value. */
const hasListed = (column: string, value: string): Predicate =>
  sql`',' || ${sql.ref(column)} || ',' LIKE ${likeText(storedFact(value))} ESCAPE '\\'`;

/** A filter as the rows of one index, and what is left to check on them. */
interface Scan {
  lead: Predicate;
  rest: Predicate[];
  /** The columns that the rest reads. */
  columns: string[];
  rows_max: number;
  /** How many rows are summed at once. */
  summed_max: number;
  /** The column of the time in the index. Both have the same order. */
  time: 'created_at' | 'admitted_at';
}

function scanOf(filter: GenerationFilter): Scan {
  const lead = LEADS.find(
    ([name]) =>
      filter[name] !== undefined &&
      filter[name] !== false &&
      !(name === 'outcome' && filter.outcome === 'completed') &&
      !(name === 'app' && filter.app === OTHER),
  );
  const covers = lead === undefined ? TIME_COVERS : (lead[2] ?? []);
  const rest: Predicate[] = [];
  const columns = new Set<string>();
  const add = (column: string, predicate: Predicate) => {
    columns.add(column);
    rest.push(predicate);
  };
  for (const name of ['key_hash', 'workspace_id'] as const) {
    const value = filter[name];
    if (value !== undefined && lead?.[0] !== name) add(name, sql`${sql.ref(name)} = ${value}`);
  }
  for (const name of [
    'user_id',
    'model',
    'requested_model',
    'provider_name',
    'finish_reason',
    'session_id',
    'app',
  ] as const) {
    const value = filter[name];
    if (value === undefined || lead?.[0] === name || (name === 'app' && value === OTHER)) continue;
    add(name, sql`${sql.ref(name)} = ${storedFact(value)}`);
  }
  if (filter.tag !== undefined && filter.tag !== OTHER) add('tags', hasListed('tags', filter.tag));
  const ofSeries = seriesConditions(filter);
  if (ofSeries.length > 0) {
    add('series', sql`EXISTS (SELECT 1 FROM analytics_series AS s WHERE s.id = scanned.series AND ${all(ofSeries)})`);
  }
  if (filter.outcome !== undefined) add('outcome', sql`outcome = ${filter.outcome}`);
  if (filter.is_error !== undefined) {
    add('outcome', filter.is_error ? sql`outcome IN ('failed', 'unknown')` : sql`outcome NOT IN ('failed', 'unknown')`);
  }
  if (filter.failure !== undefined) add('failures', hasListed('failures', filter.failure));
  for (const [name, column] of [
    ['has_failures', 'failures'],
    ['has_guardrails', 'guardrails'],
  ] as const) {
    const value = filter[name];
    if (value === undefined || lead?.[0] === name) continue;
    add(column, value ? sql`${sql.ref(column)} IS NOT NULL` : sql`${sql.ref(column)} IS NULL`);
  }
  // Records are text: whether the attempt at this endpoint is the one that failed is read from those that remain.
  if (filter.failed_endpoint !== undefined) {
    const id = JSON.stringify(filter.failed_endpoint).slice(1, -1);
    add('record', sql`record LIKE ${likeText(id, '"')} ESCAPE '\\'`);
  }
  if (filter.streamed !== undefined) add('streamed', sql`streamed = ${filter.streamed}`);
  if (filter.min_cost_nano !== undefined) add('cost', sql`cost >= ${filter.min_cost_nano}`);
  if (filter.min_latency_ms !== undefined) add('latency', sql`latency >= ${filter.min_latency_ms}`);
  const isCovered = [...columns].every((column) => covers.includes(column));
  const isSumCovered = isCovered && covers.includes('cost');
  return {
    lead: all([organizationIs(filter.organization_id, lead?.[0]), ...(lead ? [lead[1](String(filter[lead[0]]))] : [])]),
    rest,
    columns: [...columns],
    rows_max: isCovered ? INDEXED_ROWS_MAX : EXAMINED_ROWS_MAX,
    summed_max: isSumCovered ? SUMMED_INDEXED_ROWS_MAX : SUMMED_ROWS_MAX,
    time: lead !== undefined && SHORT.includes(lead[0]) ? 'admitted_at' : 'created_at',
  };
}

const timeOf = (time: Scan['time'], at: string) => (time === 'created_at' ? sql`${at}` : sql`${Date.parse(at)}`);

function isAfter(time: Scan['time'], { created_at, id }: GenerationPlace, order: 'asc' | 'desc'): Predicate {
  const place = sql`(${timeOf(time, created_at)}, ${id})`;
  return order === 'desc' ? sql`(${sql.ref(time)}, id) < ${place}` : sql`(${sql.ref(time)}, id) > ${place}`;
}

const inOrder = (time: Scan['time'], order: 'asc' | 'desc') =>
  order === 'desc' ? sql`ORDER BY ${sql.ref(time)} DESC, id DESC` : sql`ORDER BY ${sql.ref(time)}, id`;

function rangeOf(time: Scan['time'], { from, to }: GenerationFilter): Predicate[] {
  return [
    ...(from === undefined ? [] : [sql<boolean>`${sql.ref(time)} >= ${timeOf(time, from)}`]),
    ...(to === undefined ? [] : [sql<boolean>`${sql.ref(time)} < ${timeOf(time, to)}`]),
  ];
}

/** The records that match what the store's columns do not have. */
const matching = (records: readonly GenerationRecord[], { failed_endpoint: id }: GenerationFilter) =>
  records.filter(
    ({ attempts }) => id === undefined || attempts.some((one) => one.endpoint_id === id && one.failure != null),
  );

/** Lists of generations: read with indexes, in portions of bounded work. */
export function generationLists(queries: Queries) {
  /** The records of these generations, in their order. */
  async function recordsOf(ids: readonly string[]): Promise<GenerationRecord[]> {
    if (ids.length === 0) return [];
    const rows = await queries
      .selectFrom('ledger_generations')
      .select(['id', 'record'])
      .where('id', 'in', ids)
      .execute();
    const byId = new Map(rows.map(({ id, record }) => [id, record]));
    return ids.flatMap((id) => {
      const text = byId.get(id);
      return text === undefined ? [] : [recordOf(text)];
    });
  }

  /** The places of the matches among the next rows of the scan; `end`: the last row that was examined, undefined if none is left. */
  async function portion(
    { lead, rest, columns, rows_max, time }: Scan,
    range: readonly Predicate[],
    { limit, order }: { limit: number; order: 'asc' | 'desc' },
  ): Promise<{ places: GenerationPlace[]; end: GenerationPlace | undefined }> {
    const rows = sql`FROM ledger_generations WHERE ${all([lead, ...range])} ${inOrder(time, order)}`;
    if (rest.length === 0) {
      const { rows: places } = await sql<GenerationPlace>`SELECT created_at, id ${rows} LIMIT ${limit}`.execute(
        queries,
      );
      return { places, end: places.length < limit ? undefined : places.at(-1) };
    }
    const read = sql.join([...new Set(['created_at', time, 'id', ...columns])].map((name) => sql.ref(name)));
    const { rows: places } = await sql<GenerationPlace>`SELECT created_at, id
      FROM (SELECT ${read} ${rows} LIMIT ${rows_max}) AS scanned WHERE ${all(rest)} ${inOrder(time, order)} LIMIT ${limit}`.execute(
      queries,
    );
    if (places.length === limit) return { places, end: places.at(-1) };
    const last = await sql<GenerationPlace>`SELECT created_at, id ${rows} LIMIT 1 OFFSET ${rows_max - 1}`.execute(
      queries,
    );
    return { places, end: last.rows[0] };
  }

  return {
    list: async (
      filter: GenerationFilter,
      { limit, order, after }: { limit: number; order: 'asc' | 'desc'; after?: GenerationPlace | undefined },
    ): Promise<GenerationPage> => {
      const scan = scanOf(filter);
      const range = rangeOf(scan.time, filter);
      const from = after === undefined ? range : [...range, isAfter(scan.time, after, order)];
      const { places, end } = await portion(scan, from, { limit, order });
      return { records: matching(await recordsOf(places.map(({ id }) => id)), filter), next: end };
    },

    /** The number of the generations and their cost on the gateway's accounts, with its corrections. */
    sum: async (filter: GenerationFilter): Promise<GenerationTotals> => {
      const { lead, rest, columns, summed_max, time } = scanOf(filter);
      const read = sql.join([...new Set(['created_at', 'id', 'cost', ...columns])].map((name) => sql.ref(name)));
      const scanned = sql`(SELECT ${read} FROM ledger_generations WHERE ${all([lead, ...rangeOf(time, filter)])}
          ${inOrder(time, 'desc')} LIMIT ${summed_max}) AS scanned
        LEFT JOIN (SELECT id AS adjustment, amount FROM ledger_adjustments) AS a ON a.adjustment = scanned.id || ':usage'`;
      const { rows } = await sql<{ examined: number; matched: number; cost: number }>`
        SELECT COUNT(*) AS examined, COUNT(*) FILTER (WHERE ${all(rest)}) AS matched,
          CAST(COALESCE(SUM(scanned.cost + COALESCE(a.amount, 0)) FILTER (WHERE ${all(rest)}), 0) AS BIGINT) AS cost
        FROM ${scanned}`.execute(queries);
      const { examined = 0, matched = 0, cost = 0 } = rows[0] ?? {};
      const sums = { count: matched, cost_nano: cost, is_complete: examined < summed_max };
      if (filter.failed_endpoint === undefined) return sums;
      const { rows: candidates } = await sql<{ cost: number; record: string }>`
        SELECT scanned.cost + COALESCE(a.amount, 0) AS cost, record FROM ${scanned} WHERE ${all(rest)}`.execute(
        queries,
      );
      const exact = candidates.filter(({ record }) => matching([recordOf(record)], filter).length > 0);
      return { ...sums, count: exact.length, cost_nano: exact.reduce((sum, row) => sum + row.cost, 0) };
    },

    /** Fills the columns of some rows that older versions wrote; returns whether more may be left. */
    fill: async (): Promise<boolean> => {
      const rows = await queries
        .selectFrom('ledger_generations')
        .select(['id', 'record'])
        .where('model', 'is', null)
        .limit(FILLED_ROWS)
        .execute();
      if (rows.length === 0) return false;
      await queries.transaction().execute(async (tx) => {
        for (const { id, record } of rows) {
          const facts = listedFactsOf(recordOf(record));
          await tx.updateTable('ledger_generations').set(facts).where('id', '=', id).execute();
        }
      });
      return rows.length === FILLED_ROWS;
    },
  };
}

export type GenerationLists = ReturnType<typeof generationLists>;
