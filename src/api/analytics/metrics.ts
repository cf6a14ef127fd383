import { HISTOGRAMS, middleOf, type UsageMeasures } from '../../ledger/usage-facts.ts';
import { toUsd } from '../../schemas/money.ts';
import type { SeriesColumn } from '../../storage/analytics.ts';

type Measure = keyof UsageMeasures;
type Sums = Readonly<Record<string, number>>;
/** Calls by bucket; none where a bucket is missing. */
export type Buckets = readonly (number | undefined)[];

/** One metric: the sums that it reads, and the function of its value. */
export interface Metric {
  label: string;
  format: 'number' | 'currency' | 'percent' | 'latency' | 'throughput';
  /** Not a sum: values of groups cannot be added. */
  isRate: boolean;
  reads: readonly Measure[];
  /** The metric of `HISTOGRAMS` that it reads. */
  histogram?: number;
  /** Null if no call counts. */
  value(sums: Sums, buckets: Buckets): number | null;
}

function sum(label: string, ...reads: Measure[]): Metric {
  return {
    label,
    format: 'number',
    isRate: false,
    reads,
    value: (sums) => reads.reduce((total, name) => total + (sums[name] ?? 0), 0),
  };
}

function money(label: string, ...reads: Measure[]): Metric {
  const nano = sum(label, ...reads);
  return { ...nano, format: 'currency', value: (sums, buckets) => toUsd(nano.value(sums, buckets) ?? 0) };
}

function ratio(label: string, format: Metric['format'], part: Measure, whole: Measure, factor = 1): Metric {
  return {
    label,
    format,
    isRate: true,
    reads: [part, whole],
    value: (sums) => (sums[whole] ? ((sums[part] ?? 0) / sums[whole]) * factor : null),
  };
}

/** The value that a share of the calls does not exceed, to within 5 percent. */
function percentileOf(buckets: Buckets, share: number): number | null {
  let calls = 0;
  for (const count of buckets) calls += count ?? 0;
  if (calls === 0) return null;
  let left = Math.ceil(calls * share);
  for (const [bucket, count] of buckets.entries()) {
    left -= count ?? 0;
    if (left <= 0) return middleOf(bucket);
  }
  return null;
}

function percentile(label: string, format: Metric['format'], histogram: number, share: number): Metric {
  const round = (value: number) => (format === 'throughput' ? Math.round(value / 10) / 100 : Math.round(value));
  return {
    label,
    format,
    isRate: true,
    reads: [],
    histogram,
    value: (_sums, buckets) => {
      const value = percentileOf(buckets, share);
      return value === null ? null : round(value);
    },
  };
}

const PERCENTILES = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 } as const;

function percentiles(name: keyof typeof HISTOGRAMS, label: string, format: Metric['format']): [string, Metric][] {
  return Object.entries(PERCENTILES).map(([prefix, share]) => [
    `${prefix}_${name}`,
    percentile(`${label}, ${prefix}`, format, HISTOGRAMS[name], share),
  ]);
}

/** All metrics by name. */
export const METRICS: ReadonlyMap<string, Metric> = new Map([
  ['request_count', sum('Requests', 'requests')],
  ['error_count', sum('Errors', 'errors')],
  ['error_rate', ratio('Error rate', 'percent', 'errors', 'requests')],
  ['byok_request_count', sum('Requests with own credentials', 'byok_requests')],
  ['total_usage', money('Spend, own accounts included', 'usage_nano', 'byok_usage_nano')],
  ['credits_usage', money('Spend', 'usage_nano')],
  ['byok_usage', money('Spend of own accounts', 'byok_usage_nano')],
  ['usage_cache', money('Saved by caches', 'cache_nano')],
  ['usage_fees', money('Fees of tools and plugins', 'fees_nano')],
  ['usage_web', money('Fees of web searches', 'web_nano')],
  ['tokens_total', sum('Tokens', 'prompt_tokens', 'completion_tokens')],
  ['tokens_prompt', sum('Input tokens', 'prompt_tokens')],
  ['tokens_completion', sum('Output tokens', 'completion_tokens')],
  ['reasoning_tokens', sum('Reasoning tokens', 'reasoning_tokens')],
  ['cached_tokens', sum('Cached input tokens', 'cached_tokens')],
  ['cache_write_tokens', sum('Tokens written to caches', 'cache_write_tokens')],
  ['audio_tokens', sum('Audio tokens', 'audio_tokens')],
  ['image_tokens', sum('Image tokens', 'image_tokens')],
  ['cache_hit_rate', ratio('Cache share of input tokens', 'percent', 'cached_tokens', 'prompt_tokens')],
  ['guardrail_invoked_count', sum('Requests with guardrail action', 'guardrail_requests')],
  ['guardrail_invoked_rate', ratio('Share with guardrail action', 'percent', 'guardrail_requests', 'requests')],
  ['avg_latency', ratio('Duration, average', 'latency', 'latency_ms', 'latency_count')],
  ...percentiles('latency', 'Duration', 'latency'),
  ['avg_ttft', ratio('Time to first token, average', 'latency', 'ttft_ms', 'ttft_count')],
  ...percentiles('ttft', 'Time to first token', 'latency'),
  ['avg_throughput', ratio('Tokens per second, average', 'throughput', 'timed_tokens', 'timed_ms', 1_000)],
  ...percentiles('throughput', 'Tokens per second', 'throughput'),
]);

/** A dimension: the column that has it. `isList`: a call may have several values, and counts for each. */
export interface Dimension {
  label: string;
  column: SeriesColumn;
  isList: boolean;
  /** The field that names its values beside their ids. */
  nameField?: string;
}

/** All dimensions by name. */
export const DIMENSIONS: ReadonlyMap<string, Dimension> = new Map([
  ['model', { label: 'Model', column: 'model', isList: false }],
  ['provider', { label: 'Provider', column: 'provider_name', isList: false }],
  ['api_key_id', { label: 'API key', column: 'key_hash', isList: false, nameField: 'api_key_name' }],
  ['user', { label: 'User', column: 'user_id', isList: false, nameField: 'user_email' }],
  ['workspace', { label: 'Workspace', column: 'workspace_id', isList: false, nameField: 'workspace_name' }],
  ['app', { label: 'Application', column: 'app', isList: false }],
  ['tag', { label: 'Tag', column: 'tags', isList: true }],
  ['external_user', { label: 'External user', column: 'external_user', isList: false }],
  ['status', { label: 'Status', column: 'status', isList: false }],
  ['finish_reason', { label: 'Finish reason', column: 'finish_reason', isList: false }],
  ['guardrail', { label: 'Guardrail', column: 'guardrails', isList: true, nameField: 'guardrail_name' }],
  ['operation', { label: 'Operation', column: 'operation', isList: false }],
] satisfies [string, Dimension][]);

export const GRANULARITIES = ['minute', 'hour', 'day', 'week', 'month'] as const;
export type Granularity = (typeof GRANULARITIES)[number];

/** Comparisons with a list have `array` values. The last four compare metrics. */
export const OPERATORS = ['eq', 'neq', 'in', 'not_in', 'gt', 'gte', 'lt', 'lte'] as const;
