import type { EndpointPrices } from '../../catalog/model.ts';
import { pricesFor } from '../../catalog/price-list.ts';
import { type Charge, charge, type Work } from '../../ledger/prices/charge.ts';
import type { AttemptRecord, GenerationRecord, OpenRecord } from '../../ledger/records.ts';
import { limits } from '../../limits.ts';
import type { Candidate } from '../../routing/plan.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, FinishReason, TokenClasses } from '../../schemas/inner.ts';
import { inputTokens } from '../../schemas/usage.ts';
import type { Call } from '../call.ts';
import type { Account, CallState } from '../state.ts';

/** The last second of a record, and its ISO form up to the fraction: formatting a date costs more than the rest of a record. */
let lastSecond = Number.NaN;
let lastPrefix = '';

/** The record of a call whose outcome is not known yet, as the journal keeps it for an attempt. */
export function openRecord(
  call: Call,
  candidate: Candidate,
  { attempts, fees }: Pick<CallState, 'attempts' | 'fees'>,
): OpenRecord {
  const { request, principal, attribution } = call;
  const { media, sounds } = contentsOf(request);
  const second = Math.floor(call.accepted_ms / 1000);
  if (second !== lastSecond) {
    lastPrefix = new Date(second * 1000).toISOString().slice(0, -'000Z'.length);
    lastSecond = second;
  }
  const ms = Math.floor(call.accepted_ms) - second * 1000;
  const record: OpenRecord = {
    id: call.generation_id,
    request_id: call.request_id,
    api_type: call.api_type,
    created_at: `${lastPrefix}${ms < 10 ? '00' : ms < 100 ? '0' : ''}${ms}Z`,
    key_hash: principal.key_hash ?? '',
    workspace_id: principal.workspace_id,
    organization_id: principal.organization_id,
    user_id: principal.user_id,
    model: candidate.model.id,
    requested_model: request.model ?? null,
    provider_name: candidate.provider.name,
    endpoint_id: candidate.endpoint.id,
    streamed: request.stream === true,
    is_byok: candidate.own !== undefined,
    external_user: request.user ?? null,
    session_id: request.session_id ?? null,
    http_referer: attribution.http_referer,
    title: attribution.title,
    categories: attribution.categories,
    user_agent: attribution.user_agent,
    num_media_prompt: media,
    num_input_audio_prompt: sounds,
    attempts: attempts.length === 0 ? [] : attempts.map((attempt) => attempt.record!),
  };
  if (fees.length > 0) record.fees = fees;
  if (attribution.tags !== undefined) record.tags = attribution.tags;
  return record;
}

/** Prices of models that a provider ran beside the called one, by the provider's names of them. */
export type PricesOf = (provider: string, upstreamModel: string) => EndpointPrices | undefined;

/**
 * The cost of one attempt: its classes at the endpoint's prices in the tier that served it, and other models' classes at their
 * prices. `serviceTier`: as reported by the upstream, otherwise as sent.
 */
export function priceAttempt(
  usage: TokenClasses | null,
  request: ChatRequest,
  { endpoint, provider }: Candidate,
  pricesOf: PricesOf,
  serviceTier?: string | null,
): Charge {
  if (usage === null) return charge([]);
  const prices = pricesFor(endpoint, { prompt_tokens: inputTokens(usage), service_tier: serviceTier });
  const images = prices.image === undefined ? 0 : contentsOf(request).images;
  const works: Work[] = [{ usage, prices, images }];
  for (const { model, classes } of usage.extra ?? []) {
    const list = pricesOf(provider.slug, model);
    const own = list && pricesFor(list, { prompt_tokens: inputTokens(classes), service_tier: serviceTier });
    works.push({ usage: classes, prices: own ?? prices, model });
  }
  return charge(works);
}

/** The finished record. */
export function closeRecord(
  open: OpenRecord,
  { attempts, fees }: Pick<CallState, 'attempts' | 'fees'>,
  facts: {
    meter: Account | undefined;
    usage: TokenClasses | null;
    cache_discount_nano: number | null;
    /** Why the answer ended, if that differs from the last attempt's reason. */
    finish_reason: FinishReason | null;
    outcome: GenerationRecord['outcome'];
    latency: number | null;
    generation_time: number | null;
  },
): GenerationRecord {
  const { meter, usage } = facts;
  const word = limits.upstream_word_chars_max;
  const records: AttemptRecord[] = [];
  let costNano = 0;
  let byokCostNano = 0;
  for (const { record } of attempts) {
    records.push(record!);
    if (record!.is_byok) byokCostNano += record!.cost_nano;
    else costNano += record!.cost_nano;
  }
  for (const fee of fees) costNano += fee.cost_nano;
  // Field by field: a spread costs several times as much.
  const closed: GenerationRecord = {
    id: open.id,
    request_id: open.request_id,
    api_type: open.api_type,
    created_at: open.created_at,
    key_hash: open.key_hash,
    workspace_id: open.workspace_id,
    organization_id: open.organization_id,
    user_id: open.user_id,
    model: open.model,
    requested_model: open.requested_model,
    provider_name: open.provider_name,
    endpoint_id: open.endpoint_id,
    streamed: open.streamed,
    is_byok: open.is_byok,
    external_user: open.external_user,
    session_id: open.session_id,
    http_referer: open.http_referer,
    title: open.title,
    categories: open.categories,
    user_agent: open.user_agent,
    num_media_prompt: open.num_media_prompt,
    num_input_audio_prompt: open.num_input_audio_prompt,
    upstream_id: meter?.upstream_id?.slice(0, word) ?? null,
    outcome: facts.outcome,
    cancelled: facts.outcome === 'cancelled',
    finish_reason: facts.outcome === 'failed' ? 'error' : (facts.finish_reason ?? meter?.finish_reason ?? null),
    native_finish_reason: meter?.native_finish_reason?.slice(0, word) ?? null,
    service_tier: meter?.service_tier?.slice(0, word) ?? null,
    latency: facts.latency,
    generation_time: facts.generation_time,
    usage,
    cost_nano: costNano,
    upstream_cost_nano: costNano + byokCostNano,
    byok_cost_nano: byokCostNano,
    cache_discount_nano: facts.cache_discount_nano,
    attempts: records,
  };
  if (fees.length > 0) closed.fees = fees;
  if (open.tags !== undefined) closed.tags = open.tags;
  return closed;
}
