import { hash } from 'node:crypto';
import { sql } from 'kysely';
import type { UsageDimensions, UsageFacts, UsageMeasures } from '../ledger/usage-facts.ts';
import { BulkStatement, type Step } from './bulk.ts';

/** The value of a dimension that the caller chooses, once an hour has too many. */
export const OTHER = 'other';

/** Distinct values of each dimension that callers choose, of one organization in one hour, at one node. */
const VALUES_OF_HOUR_MAX = 100;
/** Distinct combinations of all dimensions in the same. Later ones have `other` for all that callers choose. */
const SERIES_OF_HOUR_MAX = 2_000;
/** Hours of organizations whose values are remembered. */
const HOURS_MAX = 64;
/** Remembered ids of series. */
const SERIES_IDS_MAX = 5_000;

const HOUR_MS = 3_600_000;
export const DAY_HOURS = 24;
/** The hours of a row. */
export const SPANS = [1, DAY_HOURS] as const;

/** The hour of a moment (ISO 8601 in UTC), counted from 1970. */
export function hourOf(createdAt: string): number {
  return Math.floor(Date.parse(createdAt) / HOUR_MS);
}

/** The first hour of the row of this span that has an hour. */
export function startOf(hour: number, span: number): number {
  return hour - (hour % span);
}

type SeriesDimensions = UsageDimensions & { node_id: string };

const CHOSEN = ['app', 'tags', 'external_user'] as const;

interface NamedSeries {
  id: number;
  dimensions: SeriesDimensions;
}

interface Hour {
  values: Record<(typeof CHOSEN)[number], Set<string>>;
  series: Set<number>;
  /** By the values as callers set them. */
  named: Map<string, NamedSeries>;
  /** The last call of each key, and its series: the next one is often of the same. */
  last: Map<string, { dimensions: UsageDimensions; nodeId: string; named: NamedSeries }>;
}

/** Field by field: each settled call is compared with the one before it. */
function areSame(a: UsageDimensions, b: UsageDimensions): boolean {
  return (
    a.organization_id === b.organization_id &&
    a.workspace_id === b.workspace_id &&
    a.key_hash === b.key_hash &&
    a.user_id === b.user_id &&
    a.model === b.model &&
    a.provider_name === b.provider_name &&
    a.operation === b.operation &&
    a.status === b.status &&
    a.finish_reason === b.finish_reason &&
    a.app === b.app &&
    a.tags === b.tags &&
    a.external_user === b.external_user &&
    a.guardrails === b.guardrails
  );
}

/**
 * Names the series of calls, and bounds them: callers choose the application, the tags and the external user of a call. A process forgets
 * them at its end; the next one may add as many values to the same hour.
 */
export class SeriesNames {
  readonly #hours = new Map<string, Hour>();
  /** The hour of the last call. */
  #latest: { organizationId: string; hour: number; known: Hour } | undefined;
  readonly #ids = new Map<string, number>();

  /** The series of a call: its dimensions as they are kept, and its id. */
  of(dimensions: UsageDimensions, nodeId: string, hour: number): NamedSeries {
    const known = this.#hour(dimensions.organization_id, hour);
    const last = known.last.get(dimensions.key_hash);
    if (last !== undefined && last.nodeId === nodeId && areSame(last.dimensions, dimensions)) return last.named;
    const text = textOf(dimensions, nodeId);
    let named = known.named.get(text);
    if (named === undefined) {
      named = this.#name(dimensions, nodeId, known);
      if (known.named.size >= SERIES_OF_HOUR_MAX) known.named.clear();
      known.named.set(text, named);
    }
    if (known.last.size >= SERIES_OF_HOUR_MAX) known.last.clear();
    known.last.set(dimensions.key_hash, { dimensions, nodeId, named });
    return named;
  }

  #name(dimensions: UsageDimensions, nodeId: string, known: Hour): NamedSeries {
    const kept: SeriesDimensions = { ...dimensions, node_id: nodeId };
    for (const name of CHOSEN) {
      const value = kept[name];
      const values = known.values[name];
      if (value === '' || values.has(value)) continue;
      if (values.size < VALUES_OF_HOUR_MAX) values.add(value);
      else kept[name] = OTHER;
    }
    let id = this.#id(kept);
    if (!known.series.has(id)) {
      if (known.series.size < SERIES_OF_HOUR_MAX) known.series.add(id);
      else {
        for (const name of CHOSEN) if (kept[name] !== '') kept[name] = OTHER;
        id = this.#id(kept);
      }
    }
    return { id, dimensions: kept };
  }

  #hour(organizationId: string, hour: number): Hour {
    const latest = this.#latest;
    if (latest !== undefined && latest.hour === hour && latest.organizationId === organizationId) return latest.known;
    const name = `${organizationId} ${hour}`;
    let known = this.#hours.get(name);
    if (known === undefined) {
      known = {
        values: { app: new Set(), tags: new Set(), external_user: new Set() },
        series: new Set(),
        named: new Map(),
        last: new Map(),
      };
      const [oldest] = this.#hours.keys();
      if (this.#hours.size >= HOURS_MAX && oldest !== undefined) this.#hours.delete(oldest);
      this.#hours.set(name, known);
    }
    this.#latest = { organizationId, hour, known };
    return known;
  }

  /** 52 bits of the SHA-256 of all values: the same at every node and after every start, without a look into the store. */
  #id(dimensions: SeriesDimensions): number {
    const text = JSON.stringify(Object.values(seriesRow(0, dimensions)));
    let id = this.#ids.get(text);
    if (id === undefined) {
      id = Number.parseInt(hash('sha256', text).slice(0, 13), 16);
      if (this.#ids.size >= SERIES_IDS_MAX) this.#ids.clear();
      this.#ids.set(text, id);
    }
    return id;
  }
}

/** All values in one text; no value has a NUL character. */
function textOf(of: UsageDimensions, nodeId: string): string {
  const caller = `${nodeId}\0${of.workspace_id}\0${of.key_hash}\0${of.user_id}\0${of.app}\0${of.tags}\0${of.external_user}`;
  return `${caller}\0${of.model}\0${of.provider_name}\0${of.operation}\0${of.status}\0${of.finish_reason}\0${of.guardrails}`;
}

/** In the order of the columns. */
function seriesRow(id: number, dimensions: SeriesDimensions) {
  return {
    id,
    node_id: dimensions.node_id,
    organization_id: dimensions.organization_id,
    workspace_id: dimensions.workspace_id,
    key_hash: dimensions.key_hash,
    user_id: dimensions.user_id,
    model: dimensions.model,
    provider_name: dimensions.provider_name,
    operation: dimensions.operation,
    status: dimensions.status as string,
    finish_reason: dimensions.finish_reason,
    app: dimensions.app,
    tags: dimensions.tags,
    external_user: dimensions.external_user,
    guardrails: dimensions.guardrails,
  };
}

interface UsageRow extends UsageMeasures {
  span: number;
  start: number;
  series: number;
}

/** The columns of a row of histograms: the calls of each of its buckets. */
export const BUCKET_COLUMNS = [
  'calls_0',
  'calls_1',
  'calls_2',
  'calls_3',
  'calls_4',
  'calls_5',
  'calls_6',
  'calls_7',
  'calls_8',
  'calls_9',
  'calls_10',
  'calls_11',
  'calls_12',
  'calls_13',
  'calls_14',
  'calls_15',
] as const;
export const PART_BUCKETS = BUCKET_COLUMNS.length;

/** The calls in the buckets from `part * PART_BUCKETS` on. */
interface HistogramRow extends Record<(typeof BUCKET_COLUMNS)[number], number> {
  span: number;
  metric: number;
  start: number;
  series: number;
  part: number;
}

const NO_CALLS = Object.fromEntries(BUCKET_COLUMNS.map((name) => [name, 0])) as Pick<
  HistogramRow,
  (typeof BUCKET_COLUMNS)[number]
>;

/** Adds calls by part and bucket to the rows of one span, start and series. */
function addParts(
  rows: Map<string, HistogramRow>,
  { span, start, series }: UsageRow,
  counts: HourSums['buckets'],
): void {
  for (const [place, calls] of counts) {
    const bucket = place % METRIC_STEP;
    const at = bucket % PART_BUCKETS;
    const [metric, part] = [(place - bucket) / METRIC_STEP, (bucket - at) / PART_BUCKETS];
    const name = `${start} ${series} ${metric} ${part}`;
    let row = rows.get(name);
    if (row === undefined) {
      row = { span, metric, start, series, part, ...NO_CALLS };
      rows.set(name, row);
    }
    const column = BUCKET_COLUMNS[at];
    if (column !== undefined) row[column] += calls;
  }
}

/** A call to count: when it was admitted and what it adds. */
export interface CountedCall {
  id: string;
  created_at: string;
  usage: UsageFacts;
}

/** The sums of some calls, in one fixed order, and the series of each call. */
export interface CountedCalls {
  seriesOf: ReadonlyMap<string, number>;
  series: ReturnType<typeof seriesRow>[];
  hours: HourSums[];
  spent: SpentRow[];
}

/** The rows of sums of hours and days, each once and in one fixed order. */
export interface UsageRows {
  usage: UsageRow[];
  histograms: HistogramRow[];
}

/** The cost of an organization's calls at a node. */
interface SpentRow {
  organization_id: string;
  node_id: string;
  usage_nano: number;
}

function firstUsage(span: number, start: number, series: number, measures: UsageMeasures): UsageRow {
  return { span, start, series, ...measures };
}

/** The calls of one series in one hour. */
export interface HourSums {
  usage: UsageRow;
  /** Calls by metric and bucket, as `metric * METRIC_STEP + bucket`. */
  buckets: Map<number, number>;
}

/** More than any bucket. */
const METRIC_STEP = 1_000;

/** Sums calls by hour and series. */
export function countedCalls<Call extends CountedCall>(
  calls: readonly Call[],
  nodeOf: (call: Call) => string,
  names: SeriesNames,
): CountedCalls {
  const seriesOf = new Map<string, number>();
  const byHour = new Map<number, Map<number, HourSums>>();
  const series = new Map<number, ReturnType<typeof seriesRow>>();
  const spent = new Map<string, SpentRow>();
  for (const call of calls) {
    const { usage: facts } = call;
    const hour = hourOf(call.created_at);
    const { id, dimensions } = names.of(facts.dimensions, nodeOf(call), hour);
    seriesOf.set(call.id, id);
    let ofHour = byHour.get(hour);
    if (ofHour === undefined) {
      ofHour = new Map();
      byHour.set(hour, ofHour);
    }
    let sums = ofHour.get(id);
    if (sums === undefined) {
      sums = { usage: firstUsage(1, hour, id, facts.measures), buckets: new Map() };
      ofHour.set(id, sums);
      if (!series.has(id)) series.set(id, seriesRow(id, dimensions));
    } else addTo(sums.usage, facts.measures);
    for (const [metric, bucket] of facts.buckets) {
      const place = metric * METRIC_STEP + bucket;
      sums.buckets.set(place, (sums.buckets.get(place) ?? 0) + 1);
    }
  }
  const hours: HourSums[] = [];
  for (const ofHour of byHour.values()) {
    for (const sums of ofHour.values()) {
      hours.push(sums);
      const { organization_id = '', node_id = '' } = series.get(sums.usage.series) ?? {};
      const owner = `${organization_id} ${node_id}`;
      const paid = spent.get(owner) ?? { organization_id, node_id, usage_nano: 0 };
      paid.usage_nano += sums.usage.usage_nano;
      spent.set(owner, paid);
    }
  }
  return {
    seriesOf,
    series: [...series.values()].sort((a, b) => a.id - b.id),
    hours,
    spent: [...spent].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row),
  };
}

/** The rows of hours, each of which occurs once, and those of their days. */
export function usageRowsOf(hours: readonly HourSums[]): UsageRows {
  const days = new Map<string, UsageRow>();
  const usage: UsageRow[] = [];
  const hourParts = new Map<string, HistogramRow>();
  const dayParts = new Map<string, HistogramRow>();
  for (const { usage: row, buckets } of hours) {
    const { start: hour, series } = row;
    usage.push(row);
    const start = startOf(hour, DAY_HOURS);
    let day = days.get(`${start} ${series}`);
    if (day === undefined) {
      day = { ...row, span: DAY_HOURS, start };
      days.set(`${start} ${series}`, day);
    } else addTo(day, row);
    addParts(hourParts, row, buckets);
    addParts(dayParts, day, buckets);
  }
  return {
    usage: [...usage, ...days.values()].sort(byPlace),
    histograms: [...hourParts.values(), ...dayParts.values()].sort(
      (a, b) => a.span - b.span || a.metric - b.metric || byPlace(a, b) || a.part - b.part,
    ),
  };
}

/** A number for each field of a row of hours: its hour, its series, its measures, then pairs of a place and its calls. */
type EncodedHour = number[];

/** The sums of hours as one text. */
export function hoursText(hours: readonly HourSums[]): string {
  return JSON.stringify(
    hours.map(({ usage, buckets }) => {
      const fields: EncodedHour = [usage.start, usage.series];
      for (const name of MEASURES) fields.push(usage[name]);
      for (const [place, calls] of buckets) fields.push(place, calls);
      return fields;
    }),
  );
}

/** The sums of several texts of `hoursText`, each hour of a series once. */
export function hoursOf(texts: readonly string[]): HourSums[] {
  const hours = new Map<string, HourSums>();
  for (const text of texts) {
    for (const [start = 0, series = 0, ...fields] of JSON.parse(text) as EncodedHour[]) {
      const name = `${start} ${series}`;
      let sums = hours.get(name);
      if (sums === undefined) {
        sums = { usage: firstUsage(1, start, series, NO_USAGE), buckets: new Map() };
        hours.set(name, sums);
      }
      for (const [index, measure] of MEASURES.entries()) sums.usage[measure] += fields[index] ?? 0;
      for (let at = MEASURES.length; at < fields.length; at += 2) {
        const place = fields[at] ?? 0;
        sums.buckets.set(place, (sums.buckets.get(place) ?? 0) + (fields[at + 1] ?? 0));
      }
    }
  }
  return [...hours.values()];
}

function byPlace(a: Pick<UsageRow, 'span' | 'start' | 'series'>, b: Pick<UsageRow, 'span' | 'start' | 'series'>) {
  return a.span - b.span || a.start - b.start || a.series - b.series;
}

/** Field by field: a loop over `MEASURES` takes a microsecond for each settled call. */
function addTo(row: UsageMeasures, measures: UsageMeasures): void {
  row.requests += measures.requests;
  row.errors += measures.errors;
  row.byok_requests += measures.byok_requests;
  row.guardrail_requests += measures.guardrail_requests;
  row.usage_nano += measures.usage_nano;
  row.byok_usage_nano += measures.byok_usage_nano;
  row.cache_nano += measures.cache_nano;
  row.fees_nano += measures.fees_nano;
  row.web_nano += measures.web_nano;
  row.prompt_tokens += measures.prompt_tokens;
  row.completion_tokens += measures.completion_tokens;
  row.reasoning_tokens += measures.reasoning_tokens;
  row.cached_tokens += measures.cached_tokens;
  row.cache_write_tokens += measures.cache_write_tokens;
  row.audio_tokens += measures.audio_tokens;
  row.image_tokens += measures.image_tokens;
  row.latency_count += measures.latency_count;
  row.latency_ms += measures.latency_ms;
  row.ttft_count += measures.ttft_count;
  row.ttft_ms += measures.ttft_ms;
  row.timed_tokens += measures.timed_tokens;
  row.timed_ms += measures.timed_ms;
}

/** The series that a process has stored: their rows never change, and most batches have no other. */
export class StoredSeries {
  readonly #ids = new Set<number>();

  missing<Row extends { id: number }>(rows: readonly Row[]): Row[] {
    return rows.filter(({ id }) => !this.#ids.has(id));
  }

  add(rows: readonly { id: number }[]): void {
    if (this.#ids.size >= SERIES_IDS_MAX) this.#ids.clear();
    for (const { id } of rows) this.#ids.add(id);
  }

  clear(): void {
    this.#ids.clear();
  }
}

/** The columns of amounts. */
export const MEASURES = [
  'requests',
  'errors',
  'byok_requests',
  'guardrail_requests',
  'usage_nano',
  'byok_usage_nano',
  'cache_nano',
  'fees_nano',
  'web_nano',
  'prompt_tokens',
  'completion_tokens',
  'reasoning_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'audio_tokens',
  'image_tokens',
  'latency_count',
  'latency_ms',
  'ttft_count',
  'ttft_ms',
  'timed_tokens',
  'timed_ms',
] as const satisfies readonly (keyof UsageMeasures)[];

/** No usage at all. */
export const NO_USAGE = Object.fromEntries(MEASURES.map((name) => [name, 0])) as Record<keyof UsageMeasures, number>;

/** The statements that add counted rows to the store. */
export class UsageStatements {
  readonly #series = new BulkStatement<ReturnType<typeof seriesRow>>((tx, rows) =>
    tx
      .insertInto('analytics_series')
      .values(rows)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .compile(),
  );
  readonly #usage = new BulkStatement<UsageRow>((tx, rows) =>
    tx
      .insertInto('analytics_usage')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['span', 'start', 'series'])
          .doUpdateSet(
            Object.fromEntries(
              MEASURES.map((name) => [
                name,
                sql`${sql.ref(`analytics_usage.${name}`)} + ${sql.ref(`excluded.${name}`)}`,
              ]),
            ),
          ),
      )
      .compile(),
  );
  readonly #histograms = new BulkStatement<HistogramRow>((tx, rows) =>
    tx
      .insertInto('analytics_histograms')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['span', 'metric', 'start', 'series', 'part'])
          .doUpdateSet(
            Object.fromEntries(
              BUCKET_COLUMNS.map((name) => [
                name,
                sql`${sql.ref(`analytics_histograms.${name}`)} + ${sql.ref(`excluded.${name}`)}`,
              ]),
            ),
          ),
      )
      .compile(),
  );
  readonly #spent = new BulkStatement<SpentRow>((tx, rows) =>
    tx
      .insertInto('organization_usage')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['organization_id', 'node_id'])
          .doUpdateSet({ usage_nano: sql`organization_usage.usage_nano + excluded.usage_nano` }),
      )
      .compile(),
  );

  /** Adds sums to their rows. */
  sumSteps({ usage, histograms }: UsageRows): Step[] {
    return [this.#usage.step(usage), this.#histograms.step(histograms)];
  }

  /** The steps that store the series of calls and what they have spent. */
  callSteps({ series, spent }: Pick<CountedCalls, 'series' | 'spent'>): Step[] {
    return [this.#series.step(series), this.#spent.step(spent)];
  }
}
