/** Links from a sum to the calls or the usage that it sums. */
import type { ComponentChildren } from 'preact';
import type { AnalyticsQuery } from './api.gen.ts';
import { dayBefore } from './format.ts';
import { Money } from './ui.tsx';

type Filter = Record<string, string | undefined>;

const address = (page: string, filter: Filter): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, value);
  return query.size === 0 ? page : `${page}?${query}`;
};

/** The logs of these filters, as the address of that page names them. */
export const logsOf = (filter: Filter): string => address('logs', filter);

/** The usage of these dimensions by model: in a range of UTC days, both included, or by `range` of the page. */
export const usageOf = (filter: Filter, days?: { from: string; to?: string }): string =>
  address('usage', { ...filter, ...(days && { range: 'custom', from: days.from, to: days.to ?? dayBefore(0) }) });

/** Dimensions of usage, with the names of the same filters in the address of the logs, and those of `without`. */
const DIMENSIONS: Readonly<Record<string, string>> = {
  model: 'model',
  provider: 'provider',
  api_key_id: 'key',
  user: 'user',
  workspace: 'workspace',
  app: 'app',
  tag: 'tag',
  external_user: 'external',
  status: 'result',
  finish_reason: 'finish',
  guardrail: 'guardrail',
  operation: 'operation',
};
const STATUSES = ['completed', 'failed', 'cancelled', 'unknown'];
/** Metrics that count some of the calls alone, with the result of the logs that lists them. */
const RESULTS: Readonly<Record<string, string>> = {
  error_count: 'error',
  error_rate: 'error',
  guardrail_invoked_count: 'guardrail',
  guardrail_invoked_rate: 'guardrail',
};

/** The calls that analytics sums for values of dimensions (null for calls without one) in a range of time. */
export function callsOf(
  values: readonly (readonly [dimension: string, value: string | number | null])[],
  { start, end }: { start: string; end: string },
  metric = '',
): string {
  const filter: Filter = { result: RESULTS[metric], from: start, to: end };
  const without: string[] = [];
  for (const [dimension, value] of values) {
    if (value === null) without.push(dimension);
    else filter[DIMENSIONS[dimension] ?? dimension] = String(value);
  }
  if (without.length > 0) filter['without'] = without.join(',');
  return logsOf(filter);
}

/** The usage of the filters in the address of the logs, in their days. */
export function usageOfLogs(query: URLSearchParams): string {
  const filter: Filter = {};
  for (const [dimension, name] of Object.entries(DIMENSIONS)) {
    const value = query.get(name);
    if (value && (name !== 'result' || STATUSES.includes(value))) filter[dimension] = value;
  }
  const day = (text: string | null) => (text === null ? undefined : text.slice(0, 10));
  const [from, to] = [day(query.get('from')), query.get('to')];
  // The last day of usage is included, the end of logs is not.
  const last = to === null ? undefined : day(new Date(Date.parse(to) - 1).toISOString());
  return usageOf(filter, from === undefined ? undefined : { from, ...(last === undefined ? {} : { to: last }) });
}

/** Filters of the logs that usage has no dimension for, or not the same values. */
const ONLY_LOGS = ['requested', 'session', 'failure', 'endpoint', 'cost', 'latency'];

/** The longest range that analytics sums. */
const SUMMED_MS_MAX = 366 * 86_400_000;

/** The usage of the filters in the address of the logs, if analytics can sum exactly these calls. */
export function sumsOfLogs(query: URLSearchParams): AnalyticsQuery | undefined {
  const start = Date.parse(query.get('from') ?? '');
  const to = query.get('to');
  // No call is admitted after the hour that runs.
  const end = to === null ? Math.floor(Date.now() / 3_600_000 + 1) * 3_600_000 : Date.parse(to);
  const isHour = (moment: number) => moment % 3_600_000 === 0;
  const result = query.get('result');
  if (!isHour(start) || !isHour(end) || end - start > SUMMED_MS_MAX || ONLY_LOGS.some((name) => query.get(name)))
    return undefined;
  if (result && !STATUSES.includes(result)) return undefined;
  const iso = (moment: number) => `${new Date(moment).toISOString().slice(0, 19)}Z`;
  const filters: NonNullable<AnalyticsQuery['filters']> = [];
  for (const [field, name] of Object.entries(DIMENSIONS)) {
    const value = query.get(name);
    if (value) filters.push({ field, operator: 'eq', value });
  }
  for (const field of query.get('without')?.split(',') ?? []) {
    filters.push({ field, operator: 'eq', value: '', include_unset: true });
  }
  return { metrics: ['request_count', 'credits_usage'], time_range: { start: iso(start), end: iso(end) }, filters };
}

/** The first UTC day of the current window of a limit; undefined if it never resets. */
function windowStart(interval: 'daily' | 'weekly' | 'monthly' | null): string | undefined {
  if (interval === null) return undefined;
  const today = dayBefore(0);
  if (interval === 'daily') return today;
  if (interval === 'monthly') return `${today.slice(0, 7)}-01`;
  return dayBefore((new Date().getUTCDay() + 6) % 7);
}

/** The usage that counts in the current window of a limit; in all, the calls. */
export function spentOf(
  filter: Record<string, string>,
  {
    reset_interval,
    include_byok = false,
  }: { reset_interval: 'daily' | 'weekly' | 'monthly' | null; include_byok?: boolean },
): string {
  const from = windowStart(reset_interval);
  if (from === undefined) {
    return logsOf(Object.fromEntries(Object.entries(filter).map(([name, value]) => [DIMENSIONS[name] ?? name, value])));
  }
  return usageOf({ ...filter, metric: include_byok ? 'total_usage' : 'credits_usage' }, { from });
}

/** A number with a link to what it sums. */
export function Link({ href, children }: { href: string; children: ComponentChildren }) {
  return (
    <a class="sum" href={href} data-page>
      {children}
    </a>
  );
}

/** An amount with a link to what it sums. */
export function Sum({ usd, href }: { usd: number; href: string | undefined }) {
  if (href === undefined) return <Money usd={usd} />;
  return (
    <Link href={href}>
      <Money usd={usd} />
    </Link>
  );
}
