import { listedFactsOf } from '../../ledger/listed-facts.ts';
import type { GenerationRecord } from '../../ledger/records.ts';
import type { GenerationRow } from '../../schemas/generation-list.ts';
import { toUsd } from '../../schemas/money.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';

/** A generation as lists show it. */
export function describeRow(record: GenerationRecord): GenerationRow {
  const { usage, attempts } = record;
  const listed = listedFactsOf(record);
  const isUnpriced = (own: boolean) => attempts.some(({ is_unpriced, is_byok }) => is_unpriced && is_byok === own);
  // If the outcome is unknown, a missing count is unknown, not zero.
  const counts = (side: 'in_' | 'out_') =>
    usage !== null && (record.outcome !== 'unknown' || Object.keys(usage).some((name) => name.startsWith(side)));
  const completion = usage !== null && counts('out_') ? outputTokens(usage) : null;
  const seconds = (record.generation_time ?? 0) / 1000;
  const ownNano = record.byok_cost_nano ?? (record.is_byok ? record.upstream_cost_nano : 0);
  return {
    id: record.id,
    created_at: record.created_at,
    api_type: record.api_type,
    request_id: record.request_id,
    api_key_hash: record.key_hash,
    user_id: record.user_id ?? null,
    workspace_id: record.workspace_id,
    external_user: record.external_user,
    session_id: record.session_id,
    app: record.title || record.http_referer || null,
    tags: [...(record.tags ?? [])],
    requested_model: record.requested_model,
    model: record.model,
    provider_name: record.provider_name,
    endpoint_id: record.endpoint_id,
    outcome: record.outcome,
    status: attempts.at(-1)?.status ?? null,
    attempts: attempts.length,
    failures: attempts.flatMap(({ failure }) => failure ?? []),
    guardrails: listed.guardrails?.split(',') ?? [],
    finish_reason: record.finish_reason,
    streamed: record.streamed,
    cancelled: record.cancelled,
    is_byok: record.is_byok,
    tokens_prompt: usage !== null && counts('in_') ? inputTokens(usage) : null,
    tokens_completion: completion,
    tokens_cached: usage?.in_cache_read ?? null,
    tokens_cache_write:
      usage?.in_cache_write_5m === undefined && usage?.in_cache_write_1h === undefined
        ? null
        : (usage.in_cache_write_5m ?? 0) + (usage.in_cache_write_1h ?? 0),
    tokens_reasoning: usage?.out_reasoning ?? null,
    latency: record.latency,
    generation_time: record.generation_time,
    tokens_per_second: completion && seconds > 0 ? Math.round((completion / seconds) * 10) / 10 : null,
    total_cost: isUnpriced(false) ? null : toUsd(record.cost_nano),
    upstream_inference_cost: ownNano === 0 || isUnpriced(true) ? null : toUsd(ownNano),
    cache_discount: record.cache_discount_nano === null ? null : toUsd(record.cache_discount_nano),
    service_tier: record.service_tier,
    estimated: usage?.estimated === true || attempts.some(({ estimated }) => estimated === true),
  };
}
