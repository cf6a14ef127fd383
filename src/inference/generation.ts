import type { EndpointPrices } from '../catalog/model.ts';
import { pricesFor } from '../catalog/price-list.ts';
import { type Charge, charge } from '../ledger/charge.ts';
import type { AttemptRecord, FeeRecord, GenerationRecord } from '../ledger/records.ts';
import { limits } from '../limits.ts';
import type { Candidate } from '../routing/plan.ts';
import type { ChatRequest, FinishReason, TokenClasses } from '../schemas/inner.ts';
import { inputTokens } from '../schemas/usage.ts';
import type { Call } from './call.ts';
import type { Account } from './settlement.ts';

/** What the request holds besides text. */
function mediaCounts(request: ChatRequest): { media: number; audio: number; images: number } {
  const found = { media: 0, audio: 0, images: 0 };
  for (const message of request.messages) {
    if (!Array.isArray(message.content)) continue;
    for (const part of message.content) {
      if (part.type === 'text' || part.type === 'native') continue;
      found.media += 1;
      if (part.type === 'input_audio') found.audio += 1;
      if (part.type === 'image_url') found.images += 1;
    }
  }
  return found;
}

/** The record of a call before anything is known of its outcome: what the journal keeps of an attempt. */
export function openRecord(call: Call, candidate: Candidate): GenerationRecord {
  const { request, principal, attribution } = call;
  const counts = mediaCounts(request);
  return {
    id: call.generation_id,
    request_id: call.request_id,
    upstream_id: null,
    api_type: call.api_type,
    created_at: new Date(call.accepted_ms).toISOString(),
    key_hash: principal.key_hash ?? '',
    workspace_id: principal.workspace_id,
    organization_id: principal.organization_id,
    user_id: principal.user_id,
    model: candidate.model.id,
    requested_model: request.model ?? null,
    provider_name: candidate.provider.name,
    endpoint_id: candidate.endpoint.id,
    outcome: 'unknown',
    streamed: request.stream === true,
    cancelled: false,
    is_byok: candidate.own !== undefined,
    finish_reason: null,
    native_finish_reason: null,
    external_user: request.user ?? null,
    session_id: request.session_id ?? null,
    http_referer: attribution.http_referer,
    title: attribution.title,
    categories: attribution.categories,
    user_agent: attribution.user_agent,
    service_tier: null,
    latency: null,
    generation_time: null,
    usage: null,
    cost_nano: 0,
    upstream_cost_nano: 0,
    cache_discount_nano: null,
    num_media_prompt: counts.media,
    num_input_audio_prompt: counts.audio,
    attempts: [],
  };
}

/** Prices of models that a provider ran on the side of a call, by its own name for them. */
export type PricesOf = (provider: string, upstream_model: string) => EndpointPrices | undefined;

/**
 * What one attempt costs: its own classes at its endpoint's prices in the tier that served, and work of other models at
 * theirs. `service_tier` is what the upstream told, else what it was sent.
 */
export function priceAttempt(
  usage: TokenClasses | null,
  request: ChatRequest,
  { endpoint, provider }: Candidate,
  pricesOf: PricesOf,
  service_tier?: string | null,
): Charge {
  if (usage === null) return charge([]);
  const prices = pricesFor(endpoint, { prompt_tokens: inputTokens(usage), service_tier });
  const images = prices.image === undefined ? 0 : mediaCounts(request).images;
  const others = (usage.extra ?? []).map(({ model, classes }) => {
    const asks = pricesOf(provider.slug, model);
    const side = asks && pricesFor(asks, { prompt_tokens: inputTokens(classes), service_tier });
    return { usage: classes, prices: side ?? prices, model };
  });
  return charge([{ usage, prices, images }, ...others]);
}

/** A word of an upstream's, not longer than a record should hold. */
export function boundedWord(word: string | null | undefined): string | null {
  return word?.slice(0, limits.upstream_word_chars_max) ?? null;
}

/** The finished record. */
export function closeRecord(
  open: GenerationRecord,
  facts: {
    meter: Account | undefined;
    usage: TokenClasses | null;
    cache_discount_nano: number | null;
    attempts: AttemptRecord[];
    fees: FeeRecord[];
    /** How it ended, where no attempt says so. */
    finish_reason: FinishReason | null;
    outcome: GenerationRecord['outcome'];
    latency: number | null;
    generation_time: number | null;
  },
): GenerationRecord {
  const { meter, usage, attempts, fees } = facts;
  const costOf = (is_byok: boolean) =>
    attempts.reduce((sum, attempt) => sum + (attempt.is_byok === is_byok ? attempt.cost_nano : 0), 0);
  const fee_nano = fees.reduce((sum, fee) => sum + fee.cost_nano, 0);
  const [cost_nano, byok_cost_nano] = [costOf(false) + fee_nano, costOf(true)];
  return {
    ...open,
    upstream_id: boundedWord(meter?.upstream_id),
    outcome: facts.outcome,
    cancelled: facts.outcome === 'cancelled',
    finish_reason: facts.outcome === 'failed' ? 'error' : (facts.finish_reason ?? meter?.finish_reason ?? null),
    native_finish_reason: boundedWord(meter?.native_finish_reason),
    service_tier: boundedWord(meter?.service_tier),
    latency: facts.latency,
    generation_time: facts.generation_time,
    usage,
    cost_nano,
    upstream_cost_nano: cost_nano + byok_cost_nano,
    byok_cost_nano,
    cache_discount_nano: facts.cache_discount_nano,
    attempts,
    ...(fees.length === 0 ? {} : { fees }),
  };
}
