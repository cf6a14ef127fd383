/** What the page of usage asks for, and the shapes that it makes of the answers. */
import type { AnalyticsMeta, AnalyticsQuery } from './api.gen.ts';
import { call } from './api.ts';
import { SERIES_MAX, type Series } from './chart.tsx';
import { count, milliseconds, percent, usd } from './format.ts';
import { callsOf } from './links.tsx';

/** A row of an answer of analytics. */
export type Row = Record<string, string | number | null>;
/** A metric of analytics. */
export type Metric = AnalyticsMeta['metrics'][number];
/** A step of time. */
export type Granularity = 'minute' | 'hour' | 'day' | 'week' | 'month';

/** A day. */
export const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** The steps, with the longest range in days that the API sums by each of them. */
const GRANULARITIES: Readonly<Record<Granularity, number>> = { minute: 1, hour: 31, day: 366, week: 366, month: 366 };
/** The fields with the names of ids. */
export const NAMES: Record<string, string> = {
  api_key_id: 'api_key_name',
  user: 'user_email',
  workspace: 'workspace_name',
  guardrail: 'guardrail_name',
};

/** The ranges that the page offers. */
export const RANGES = {
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  '90d': 'Last 90 days',
  '365d': 'Last 365 days',
  custom: 'Days …',
} as const;
type RangeName = keyof typeof RANGES;
const LENGTHS: Record<Exclude<RangeName, 'custom'>, number> = {
  '1h': 1 / 24,
  '24h': 1,
  '7d': 7,
  '30d': 30,
  '90d': 90,
  '365d': 365,
};

interface Range {
  start: number;
  end: number;
}

/** A word at the beginning of a label. */
export const capital = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
/** A moment as analytics reads it. */
export const iso = (moment: number) => `${new Date(moment).toISOString().slice(0, 19)}Z`;
/** The UTC day of a moment. */
export const day = (moment: number) => new Date(moment).toISOString().slice(0, 10);

/** The parameters of the address, with defaults for missing ones. */
export function readState(query: URLSearchParams, meta: AnalyticsMeta) {
  const one = <T extends string>(name: string, values: readonly T[], fallback: T): T => {
    const value = query.get(name) as T;
    return values.includes(value) ? value : fallback;
  };
  const dimensions = meta.dimensions.map(({ name }) => name);
  const range = one('range', Object.keys(RANGES) as RangeName[], '30d');
  const metric = one(
    'metric',
    meta.metrics.map(({ name }) => name),
    'credits_usage',
  );
  const by = one('by', [...dimensions, 'none'], 'model');
  const second = one('by2', [...dimensions, ''], '');
  const tomorrow = Math.floor(Date.now() / DAY_MS + 1) * DAY_MS;
  const from = Date.parse(query.get('from') ?? '');
  const text = query.get('to') ?? '';
  // A day is included; a time is the end.
  const to = Date.parse(text) + (text.includes('T') ? 0 : DAY_MS);
  const end =
    range === 'custom'
      ? Number.isNaN(to)
        ? tomorrow
        : to
      : range === '1h'
        ? Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS
        : range === '24h'
          ? Math.ceil(Date.now() / HOUR_MS) * HOUR_MS
          : tomorrow;
  const start = range === 'custom' ? (Number.isNaN(from) ? end - 7 * DAY_MS : from) : end - LENGTHS[range] * DAY_MS;
  const days = (end - start) / DAY_MS;
  const steps = (Object.keys(GRANULARITIES) as Granularity[]).filter((step) => days <= GRANULARITIES[step]);
  const usual = days <= 1 / 24 ? 'minute' : days <= 2 ? 'hour' : days > 90 ? 'week' : 'day';
  return {
    range,
    times: { start, end } satisfies Range,
    metric: meta.metrics.find(({ name }) => name === metric),
    by: [...new Set([by, second].filter((name) => name !== 'none' && name !== ''))],
    first: by,
    second,
    steps,
    granularity: one('step', steps, usual),
    compares: query.get('compare') === 'on',
    filters: dimensions.flatMap((name) => {
      const value = query.get(name);
      return value === null ? [] : [{ name, value }];
    }),
  };
}

/** The text of a value of a metric. */
export function formatOf({ display_format }: Metric): (value: number | null) => string {
  return (value) => {
    if (value === null) return '–';
    if (display_format === 'currency') return usd(value);
    if (display_format === 'percent') return percent(value * 100);
    if (display_format === 'latency') return milliseconds(value);
    if (display_format === 'throughput') return `${value.toFixed(1)} tok/s`;
    return count(value);
  };
}
/** The name of a group, from its row. */
function groupName(row: Row, by: readonly string[]): string {
  if (by.length === 0) return 'All';
  return by.map((name) => String(row[NAMES[name] ?? name] ?? shortId(row[name] ?? null))).join(' · ');
}

/** An id that has no name. */
export const shortId = (value: string | number | null) => {
  if (value === null) return '(none)';
  const text = String(value);
  return /^[0-9a-f-]{32,}$/.test(text) ? `${text.slice(0, 8)}…` : text;
};

/** The values of a group, as one text. */
export const keyOf = (row: Row, by: readonly string[]) => JSON.stringify(by.map((name) => row[name]));

/** The beginnings of the groups of a range. */
export function timesOf({ start, end }: Range, granularity: Granularity): string[] {
  const times: string[] = [];
  for (let at = start; at < end; ) {
    const date = new Date(at);
    if (granularity === 'hour' || granularity === 'minute') times.push(iso(at));
    else if (granularity === 'day') times.push(day(at));
    else if (granularity === 'month') times.push(`${day(at).slice(0, 7)}-01`);
    else times.push(day(at - ((date.getUTCDay() + 6) % 7) * DAY_MS));
    if (granularity === 'minute') at += MINUTE_MS;
    else if (granularity === 'hour') at += HOUR_MS;
    else if (granularity === 'month') at = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
    else if (granularity === 'day') at = (Math.floor(at / DAY_MS) + 1) * DAY_MS;
    else at = Date.parse(times.at(-1) ?? '') + 7 * DAY_MS;
  }
  return times;
}

/** The range of the same length before. */
export const beforeOf = ({ start, end }: Range): Range => ({ start: start - (end - start), end: start });

/** The field with the beginning of a step. */
export const timeName = (granularity: Granularity) =>
  `${granularity === 'hour' || granularity === 'minute' ? 'created_at' : 'date'}__${granularity}`;

async function ask(
  query: AnalyticsQuery,
  signal: AbortSignal,
): Promise<{ rows: Row[]; truncated: boolean; warnings: string[] }> {
  const { data } = await call('queryAnalytics', { body: query }, signal);
  return { rows: data.data as Row[], truncated: data.metadata.truncated, warnings: data.warnings ?? [] };
}

/** The values by time and group, those of the whole range, and those of the period before. */
export function load(state: ReturnType<typeof readState>, signal: AbortSignal) {
  const { metric, by, granularity, times, filters } = state;
  const query = (range: Range, more: Partial<AnalyticsQuery>): AnalyticsQuery => ({
    metrics: [metric?.name ?? 'credits_usage'] as AnalyticsQuery['metrics'],
    time_range: { start: iso(range.start), end: iso(range.end) },
    filters: filters.map(({ name, value }) => ({ field: name, operator: 'eq' as const, value })),
    limit: 10_000,
    ...more,
  });
  const dimensions = by as NonNullable<AnalyticsQuery['dimensions']>;
  const before = beforeOf(times);
  const none = Promise.resolve({ rows: [] as Row[], truncated: false, warnings: [] as string[] });
  return Promise.all([
    ask(query(times, { dimensions, granularity }), signal),
    ask(query(times, { dimensions }), signal),
    ask(query(times, {}), signal),
    state.compares ? ask(query(before, { dimensions }), signal) : none,
    state.compares ? ask(query(before, {}), signal) : none,
  ]);
}

/** The time after that of a group. */
function endOf(start: number, granularity: Granularity): number {
  const date = new Date(start);
  if (granularity === 'minute') return start + MINUTE_MS;
  if (granularity === 'hour') return start + HOUR_MS;
  if (granularity === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  return start + (granularity === 'day' ? 1 : 7) * DAY_MS;
}

/** The calls of a group, in the whole range or in one of its times. */
export function callsIn(state: ReturnType<typeof readState>, row: Row, time?: string): string {
  const { times, by, filters, granularity, metric } = state;
  const start = time === undefined ? times.start : Math.max(times.start, Date.parse(time));
  const end = time === undefined ? times.end : Math.min(times.end, endOf(Date.parse(time), granularity));
  const values = [
    ...filters.filter(({ name }) => !by.includes(name)).map(({ name, value }) => [name, value] as const),
    ...by.map((name) => [name, row[name] ?? null] as const),
  ];
  return callsOf(values, { start: iso(start), end: iso(end) }, metric?.name);
}

/** The largest groups as series, the others as one where they can be added. */
export function seriesOf(rows: Row[], groups: Row[], state: ReturnType<typeof readState>, times: string[]): Series[] {
  const { by, metric, granularity } = state;
  const name = metric?.name ?? '';
  const places = new Map(times.map((time, index) => [time, index]));
  const shown = groups.slice(0, groups.length > SERIES_MAX ? SERIES_MAX - 1 : SERIES_MAX);
  const series = new Map(
    shown.map((row) => [
      keyOf(row, by),
      {
        name: groupName(row, by),
        values: times.map((): number | null => null),
        hrefs: times.map((time) => callsIn(state, row, time)),
      },
    ]),
  );
  const others: Series = { name: 'All others', values: times.map(() => null) };
  for (const row of rows) {
    const index = places.get(String(row[timeName(granularity)]));
    const value = row[name];
    if (index === undefined || typeof value !== 'number') continue;
    const own = series.get(keyOf(row, by));
    if (own !== undefined) own.values[index] = value;
    else others.values[index] = (others.values[index] ?? 0) + value;
  }
  const hasOthers = metric?.is_rate === false && groups.length > shown.length;
  return [...series.values(), ...(hasOthers ? [others] : [])];
}
