import { GatewayError, invalidField } from '../../errors.ts';
import { recordOf } from '../../ledger/journal/record-values.ts';
import { toSettle } from '../../ledger/settle.ts';
import type { UsageMeasures } from '../../ledger/usage-facts.ts';
import { isStorable } from '../../schemas/text.ts';
import { type AnalyticsStore, QueryTooLarge, type SeriesFilter, type UsageQuery } from '../../storage/analytics.ts';
import {
  type Buckets,
  DIMENSIONS,
  type Dimension,
  type Granularity,
  METRICS,
  type Metric,
  type OPERATORS,
} from './metrics.ts';
import { type Range, startsOf, timeField } from './time-range.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

type Scalar = string | number;

export interface Filter {
  field: string;
  operator: (typeof OPERATORS)[number];
  value: Scalar | Scalar[];
  include_unset?: boolean;
}

export interface Query {
  metrics: string[];
  dimensions: string[];
  filters: Filter[];
  granularity: Granularity | undefined;
  order_by: { field: string; direction: 'asc' | 'desc' } | undefined;
  limit: number;
  group_limit: number | undefined;
}

/** Bounds of the work of one query: rows of sums, groups of an answer of the store, and generations for minutes. */
export interface QueryBounds {
  rows_max: number;
  groups_max: number;
  calls_max: number;
}

export type Row = Record<string, string | number | null>;

/** A group of calls, with its sums and its buckets by metric. */
interface Group {
  start: number;
  values: readonly string[];
  sums: Record<string, number>;
  buckets: Map<number, number[]>;
}

const SCALAR_ONLY = new Set(['gt', 'gte', 'lt', 'lte']);

function valuesOf({ operator, value }: Filter, field: string): Scalar[] {
  const isArray = Array.isArray(value);
  if ((operator === 'in' || operator === 'not_in') !== isArray) {
    throw invalidField(
      `${field}.value`,
      isArray ? `must be a single value for ${operator}` : `must be a list for ${operator}`,
    );
  }
  return isArray ? value : [value];
}

/** The condition on a dimension. `hashOf`: the hash of a key by its number. */
async function seriesFilter(
  filter: Filter,
  dimension: Dimension,
  field: string,
  hashOf: (id: number) => Promise<string | undefined>,
): Promise<SeriesFilter> {
  const { operator, include_unset: includeUnset = false } = filter;
  if (SCALAR_ONLY.has(operator))
    throw invalidField(`${field}.operator`, 'must be eq, neq, in or not_in for a dimension');
  const values = await Promise.all(
    valuesOf(filter, field).map(async (value) => {
      if (dimension.column === 'key_hash' && /^\d{1,15}$/.test(String(value)))
        return (await hashOf(Number(value))) ?? '-';
      return String(value);
    }),
  );
  const is = operator === 'eq' || operator === 'in' ? 'in' : 'not_in';
  // A call without a value matches only if that is wanted.
  if ((is === 'in') === includeUnset) values.push('');
  return { column: dimension.column, isList: dimension.isList, is, values: values.filter(isStorable) };
}

type Having = (row: Row) => boolean;

function metricFilter(filter: Filter, field: string): Having {
  const { operator, field: name } = filter;
  const wanted = valuesOf(filter, field).map(Number);
  if (wanted.some((value) => !Number.isFinite(value)))
    throw invalidField(`${field}.value`, 'must be a number for a metric');
  const [first = 0] = wanted;
  const tests: Record<Filter['operator'], (value: number) => boolean> = {
    eq: (value) => value === first,
    neq: (value) => value !== first,
    in: (value) => wanted.includes(value),
    not_in: (value) => !wanted.includes(value),
    gt: (value) => value > first,
    gte: (value) => value >= first,
    lt: (value) => value < first,
    lte: (value) => value <= first,
  };
  return (row) => {
    const value = row[name];
    return typeof value === 'number' ? tests[operator](value) : filter.include_unset === true;
  };
}

function addSums(to: Group, sums: Readonly<Record<string, number>>): void {
  for (const name in sums) to.sums[name] = (to.sums[name] ?? 0) + (sums[name] ?? 0);
}

function addBucket(to: Group, metric: number, bucket: number, calls: number): void {
  let counts = to.buckets.get(metric);
  if (counts === undefined) {
    counts = [];
    to.buckets.set(metric, counts);
  }
  counts[bucket] = (counts[bucket] ?? 0) + calls;
}

/** Groups by time and values; calls with several values of a dimension are in the group of each. */
class Groups {
  readonly #groups = new Map<string, Group>();
  readonly #dimensions: readonly Dimension[];
  readonly #hasLists: boolean;

  constructor(dimensions: readonly Dimension[]) {
    this.#dimensions = dimensions;
    this.#hasLists = dimensions.some(({ isList }) => isList);
  }

  of(start: number, values: readonly string[]): Group[] {
    if (!this.#hasLists) return [this.#one(start, values)];
    let combinations: string[][] = [[]];
    for (const [index, { isList }] of this.#dimensions.entries()) {
      const value = values[index] ?? '';
      const each = isList ? value.split(',') : [value];
      combinations = combinations.flatMap((combination) => each.map((one) => [...combination, one]));
    }
    return combinations.map((combination) => this.#one(start, combination));
  }

  #one(start: number, values: readonly string[]): Group {
    // No value has a NUL character.
    const name = `${start}\0${values.join('\0')}`;
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { start, values, sums: {}, buckets: new Map() };
      this.#groups.set(name, group);
    }
    return group;
  }

  all(): Group[] {
    return [...this.#groups.values()];
  }
}

const NO_BUCKETS: Buckets = [];

function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  // Rows without a value come last in both directions.
  if (a === null) return 1;
  if (b === null) return -1;
  return a < b ? -1 : 1;
}

/** Checks a query and answers it. */
export async function runQuery(
  query: Query,
  options: {
    range: Range;
    organization_id: string;
    /** The member whose calls alone are counted. */
    ownUser: string | undefined;
    store: AnalyticsStore;
    bounds: QueryBounds;
  },
): Promise<{ rows: Row[]; truncated: boolean }> {
  const { range, organization_id, ownUser, store, bounds } = options;
  const { granularity } = query;
  const dimensions = query.dimensions.map((name) => [name, DIMENSIONS.get(name)!] as const);
  const metrics = query.metrics.map((name) => [name, METRICS.get(name)!] as const);
  const filters: SeriesFilter[] = [];
  if (ownUser !== undefined) filters.push({ column: 'user_id', isList: false, is: 'in', values: [ownUser] });
  const having: Having[] = [];
  const hashOf = (id: number) => store.findKeyHash(organization_id, id);
  for (const [index, filter] of query.filters.entries()) {
    const field = `filters[${index}]`;
    const dimension = DIMENSIONS.get(filter.field);
    if (dimension !== undefined) filters.push(await seriesFilter(filter, dimension, field, hashOf));
    else if (query.metrics.includes(filter.field)) having.push(metricFilter(filter, field));
    else
      throw invalidField(
        `${field}.field`,
        'must be a dimension, or a metric of the query (GET /analytics/meta lists them)',
      );
  }
  const time = granularity === undefined ? undefined : timeField(granularity);
  const columns = [...(time === undefined ? [] : [time.name]), ...query.dimensions, ...query.metrics];
  if (query.order_by !== undefined && !columns.includes(query.order_by.field)) {
    throw invalidField('order_by.field', `must be one of the fields of the rows: ${columns.join(', ')}`);
  }
  const groups = new Groups(dimensions.map(([, dimension]) => dimension));
  await collect(groups, metrics, {
    organization_id,
    filters,
    groups: dimensions.map(([, { column }]) => column),
    range,
    granularity,
    store,
    bounds,
  });
  /** The text of each time, since many rows share one. */
  const texts = new Map<number, string>();
  let rows = groups.all().map(({ start, values, sums, buckets }): Row => {
    const row: Row = {};
    if (time !== undefined) {
      let text = texts.get(start);
      if (text === undefined) {
        text = time.textOf(start);
        texts.set(start, text);
      }
      row[time.name] = text;
    }
    for (const [index, [name]] of dimensions.entries()) row[name] = values[index] || null;
    for (const [name, metric] of metrics) {
      row[name] = metric.value(sums, buckets.get(metric.histogram ?? -1) ?? NO_BUCKETS);
    }
    return row;
  });
  rows = rows.filter((row) => having.every((test) => test(row)));
  const [byMetric] = query.metrics;
  const orders: [string, 1 | -1][] = [
    ...(query.order_by === undefined
      ? []
      : [[query.order_by.field, query.order_by.direction === 'asc' ? 1 : -1] as [string, 1 | -1]]),
    ...(time === undefined ? [] : [[time.name, 1] as [string, 1]]),
    ...(byMetric === undefined ? [] : [[byMetric, -1] as [string, -1]]),
    ...query.dimensions.map((name) => [name, 1] as [string, 1]),
  ];
  rows.sort((a, b) => {
    for (const [name, direction] of orders) {
      const [left = null, right = null] = [a[name], b[name]];
      const order = compare(left, right);
      if (order !== 0) return left === null || right === null ? order : order * direction;
    }
    return 0;
  });
  const all = rows.length;
  if (query.group_limit !== undefined) rows = limitGroups(rows, query.dimensions, query.group_limit);
  rows = rows.slice(0, query.limit);
  await addNames(rows, dimensions, store, organization_id);
  return { rows, truncated: rows.length < all };
}

function limitGroups(rows: readonly Row[], dimensions: readonly string[], most: number): Row[] {
  const counts = new Map<string, number>();
  return rows.filter((row) => {
    const name = JSON.stringify(dimensions.map((dimension) => row[dimension]));
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count <= most;
  });
}

interface Collection extends Pick<UsageQuery, 'organization_id' | 'filters' | 'groups'> {
  range: Range;
  granularity: Granularity | undefined;
  store: AnalyticsStore;
  bounds: QueryBounds;
}

/** Reads the sums of all groups: of minutes from the generations, otherwise from what was summed. */
async function collect(
  groups: Groups,
  metrics: readonly (readonly [string, Metric])[],
  { range, granularity, store, bounds, ...which }: Collection,
): Promise<void> {
  const measures = [...new Set(metrics.flatMap(([, { reads }]) => reads))] as (keyof UsageMeasures)[];
  const histograms = [...new Set(metrics.flatMap(([, { histogram }]) => histogram ?? []))];
  try {
    if (granularity === 'minute') {
      const moments = { from: new Date(range.from).toISOString(), to: new Date(range.to).toISOString() };
      for (const { created_at, record, values } of await store.listCalls(which, moments, bounds.calls_max)) {
        const { usage } = toSettle(recordOf(record), []);
        const start = Math.floor(Date.parse(created_at) / MINUTE_MS) * MINUTE_MS;
        for (const group of groups.of(start, values)) {
          addSums(group, { ...usage.measures });
          for (const [metric, bucket] of usage.buckets) addBucket(group, metric, bucket, 1);
        }
      }
      return;
    }
    const query: UsageQuery = {
      ...which,
      from: range.from / HOUR_MS,
      to: range.to / HOUR_MS,
      starts:
        granularity === undefined
          ? 'whole'
          : granularity === 'hour'
            ? 'hours'
            : granularity === 'day'
              ? 'days'
              : startsOf(granularity, range).map((moment) => moment / HOUR_MS),
      measures,
      histograms,
      rows_max: bounds.rows_max,
      groups_max: bounds.groups_max,
    };
    for (const { start, values, sums } of await store.sum(query)) {
      for (const group of groups.of(start * HOUR_MS, values)) addSums(group, sums);
    }
    for (const { start, values, metric, first, calls } of await store.sumBuckets(query)) {
      for (const group of groups.of(start * HOUR_MS, values)) {
        for (const [at, count] of calls.entries()) if (count > 0) addBucket(group, metric, first + at, count);
      }
    }
  } catch (error) {
    if (!(error instanceof QueryTooLarge)) throw error;
    throw new GatewayError(408, `${error.message}. Shorten time_range, or ask for fewer or other dimensions.`);
  }
}

/** Adds the names of ids to the rows. */
async function addNames(
  rows: readonly Row[],
  dimensions: readonly (readonly [string, Dimension])[],
  store: AnalyticsStore,
  organizationId: string,
): Promise<void> {
  for (const [name, { column, nameField }] of dimensions) {
    if (nameField === undefined) continue;
    const ids = [...new Set(rows.flatMap((row) => row[name] ?? []))].map(String);
    const names = await store.namesOf(column, ids, organizationId);
    for (const row of rows) row[nameField] = names.get(String(row[name])) ?? null;
  }
}
