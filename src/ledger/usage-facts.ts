import type { TokenClasses } from '../schemas/inner.ts';
import type { Stage } from '../schemas/routing-metadata.ts';
import { inputTokens, outputTokens } from '../schemas/usage.ts';
import { storedFact } from './listed-facts.ts';
import type { GenerationRecord } from './records.ts';

/** The values by which the usage of calls is grouped; an empty text if there is none. */
export interface UsageDimensions {
  organization_id: string;
  workspace_id: string;
  key_hash: string;
  user_id: string;
  model: string;
  provider_name: string;
  /** The operation, as `api_type` of the record. */
  operation: string;
  status: GenerationRecord['outcome'];
  finish_reason: string;
  /** The title of the calling application, else its address. */
  app: string;
  /** With commas between them, sorted. */
  tags: string;
  external_user: string;
  /** Ids of the guardrails that acted, with commas between them, sorted. */
  guardrails: string;
}

/** The amounts that are summed. Money is nano-USD. */
export interface UsageMeasures {
  requests: number;
  /** Calls that failed, or whose end is unknown. */
  errors: number;
  byok_requests: number;
  guardrail_requests: number;
  usage_nano: number;
  byok_usage_nano: number;
  /** Saved by the providers' caches; negative if writing them cost more. */
  cache_nano: number;
  /** The part of `usage_nano` that is fees of the gateway's tools and plugins, and that of web searches. */
  fees_nano: number;
  web_nano: number;
  prompt_tokens: number;
  completion_tokens: number;
  reasoning_tokens: number;
  cached_tokens: number;
  cache_write_tokens: number;
  audio_tokens: number;
  image_tokens: number;
  latency_count: number;
  latency_ms: number;
  ttft_count: number;
  ttft_ms: number;
  /** Output tokens, and the time they took, of calls with both. */
  timed_tokens: number;
  timed_ms: number;
}

/** The measures whose distribution is kept, as calls by `bucketOf`. */
export const HISTOGRAMS = { latency: 0, ttft: 1, throughput: 2 } as const;

const BUCKET_RATIO = Math.log(1.1);
/** The bucket of 10^9: nothing that is measured is larger. */
const BUCKET_MAX = 218;

/** The bucket of a value: its logarithm to the base 1.1, so that a percentile is wrong by at most 5 percent. */
function bucketOf(value: number): number {
  return value <= 1 ? 0 : Math.min(BUCKET_MAX, Math.round(Math.log(value) / BUCKET_RATIO));
}

/** The value in the middle of a bucket. */
export function middleOf(bucket: number): number {
  return Math.exp(bucket * BUCKET_RATIO);
}

/** The amounts that one settled call adds to the sums of usage. */
export interface UsageFacts {
  dimensions: UsageDimensions;
  measures: UsageMeasures;
  /** Pairs of a metric of `HISTOGRAMS` and a bucket. */
  buckets: readonly (readonly [metric: number, bucket: number])[];
}

const GUARDRAIL_IDS_MAX = 8;

const NO_GUARDRAILS = { acted: false, ids: '' };

function guardrailsOf(stages: readonly Stage[]): { acted: boolean; ids: string } {
  const ids = new Set<string>();
  let acted = false;
  for (const { type, guardrail_id } of stages) {
    if (type !== 'guardrail') continue;
    acted = true;
    if (guardrail_id !== undefined && ids.size < GUARDRAIL_IDS_MAX) ids.add(guardrail_id);
  }
  return { acted, ids: ids.size === 0 ? '' : [...ids].sort().join(',') };
}

function whole(milliseconds: number | null): number | undefined {
  return milliseconds === null || milliseconds < 0 ? undefined : Math.round(milliseconds);
}

/** The dimensions, amounts and buckets of a generation. `byokUsageNano`: see `Settle`. */
export function usageFactsOf(record: GenerationRecord, byokUsageNano: number): UsageFacts {
  const usage: TokenClasses = record.usage ?? {};
  const stages = record.routing?.pipeline;
  const guardrails = stages === undefined ? NO_GUARDRAILS : guardrailsOf(stages);
  const tokens = outputTokens(usage);
  const latency = whole(record.generation_time);
  const ttft = record.streamed ? whole(record.latency) : undefined;
  const isTimed = latency !== undefined && latency > 0 && tokens > 0;
  let feesNano = 0;
  let webNano = 0;
  for (const { name, cost_nano } of record.fees ?? []) {
    feesNano += cost_nano;
    if (name === 'web_search') webNano += cost_nano;
  }
  const buckets: [number, number][] = [];
  if (latency !== undefined) buckets.push([HISTOGRAMS.latency, bucketOf(latency)]);
  if (ttft !== undefined) buckets.push([HISTOGRAMS.ttft, bucketOf(ttft)]);
  if (isTimed) buckets.push([HISTOGRAMS.throughput, bucketOf((tokens / latency) * 1_000_000)]);
  return {
    dimensions: {
      organization_id: record.organization_id,
      workspace_id: record.workspace_id,
      key_hash: record.key_hash,
      user_id: record.user_id ?? '',
      model: record.model,
      provider_name: record.provider_name ?? '',
      operation: record.api_type,
      status: record.outcome,
      finish_reason: record.finish_reason ?? '',
      app: storedFact(record.title || record.http_referer),
      tags: record.tags?.join(',') ?? '',
      external_user: storedFact(record.external_user),
      guardrails: guardrails.ids,
    },
    measures: {
      requests: 1,
      errors: record.outcome === 'failed' || record.outcome === 'unknown' ? 1 : 0,
      byok_requests: record.is_byok ? 1 : 0,
      guardrail_requests: guardrails.acted ? 1 : 0,
      usage_nano: record.cost_nano,
      byok_usage_nano: byokUsageNano,
      cache_nano: Math.round(record.cache_discount_nano ?? 0),
      fees_nano: feesNano,
      web_nano: webNano,
      prompt_tokens: inputTokens(usage),
      completion_tokens: tokens,
      reasoning_tokens: usage.out_reasoning ?? 0,
      cached_tokens: usage.in_cache_read ?? 0,
      cache_write_tokens: (usage.in_cache_write_5m ?? 0) + (usage.in_cache_write_1h ?? 0),
      audio_tokens: (usage.in_audio ?? 0) + (usage.out_audio ?? 0),
      image_tokens: (usage.in_image ?? 0) + (usage.out_image ?? 0),
      latency_count: latency === undefined ? 0 : 1,
      latency_ms: latency ?? 0,
      ttft_count: ttft === undefined ? 0 : 1,
      ttft_ms: ttft ?? 0,
      timed_tokens: isTimed ? tokens : 0,
      timed_ms: isTimed ? latency : 0,
    },
    buckets,
  };
}
