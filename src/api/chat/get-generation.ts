import Type, { type Static } from 'typebox';
import { GatewayError } from '../../errors.ts';
import type { Principal } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import { attemptFacts } from '../../inference/attempt/attempt-facts.ts';
import type { GenerationRecord } from '../../ledger/records.ts';
import { estimatedOf } from '../../ledger/settle.ts';
import { errors } from '../../schemas/error.ts';
import { Generation } from '../../schemas/generation.ts';
import { toUsd } from '../../schemas/money.ts';
import { isStorable } from '../../schemas/text.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';
import { ownUserOf } from '../change.ts';
import { describeCharges } from './describe-charges.ts';
import { describeRouting, isRouter } from './describe-routing.ts';

/** Finds generations, first among those not yet flushed, then in the store. */
export interface GenerationSource {
  find(id: string, principal: Principal): GenerationRecord | undefined | Promise<GenerationRecord | undefined>;
  /** `retention.generations_days`; undefined: generations are kept for ever. */
  keptDays?: () => number | undefined;
}

/** The public form of a generation's record; with `owners` for callers who may see whose key it was. */
function describeGeneration(record: GenerationRecord, owners: boolean): Static<typeof Generation> {
  const { usage } = record;
  const isUnpriced = (own: boolean) =>
    record.attempts.some(({ is_unpriced, is_byok }) => is_unpriced && is_byok === own);
  const cost = isUnpriced(false) ? null : toUsd(record.cost_nano);
  const ownCost = isUnpriced(true) ? null : toUsd(record.byok_cost_nano ?? record.upstream_cost_nano);
  // The gateway's account may have continued an answer that broke off at the organization's own account.
  const hasOwnPart = record.attempts.some(
    (attempt) => attempt.is_byok && attempt.status === 200 && attempt.cost_nano > 0,
  );
  // If the outcome is unknown, a missing count is unknown, not zero.
  const counted = record.outcome === 'unknown' ? Object.keys(usage ?? {}) : undefined;
  const prompt =
    usage === null || counted?.some((name) => name.startsWith('in_')) === false ? null : inputTokens(usage);
  const completion =
    usage === null || counted?.some((name) => name.startsWith('out_')) === false ? null : outputTokens(usage);
  return {
    id: record.id,
    request_id: record.request_id,
    upstream_id: record.upstream_id,
    api_type: record.api_type,
    created_at: record.created_at,
    model: record.model,
    requested_model: record.requested_model,
    ...(owners ? { api_key_hash: record.key_hash, user_id: record.user_id ?? null } : {}),
    provider_name: record.provider_name,
    app_id: null,
    external_user: record.external_user,
    workspace_id: record.workspace_id,
    preset_id: null,
    data_region: 'global',
    session_id: record.session_id,
    http_referer: record.http_referer,
    title: record.title,
    categories: record.categories,
    tags: [...(record.tags ?? [])],
    user_agent: record.user_agent,
    origin: record.http_referer ?? '',
    router: isRouter(record.routing) ? record.requested_model : null,
    streamed: record.streamed,
    cancelled: record.cancelled,
    is_byok: record.is_byok,
    finish_reason: record.finish_reason,
    native_finish_reason: record.native_finish_reason,
    latency: record.latency,
    generation_time: record.generation_time,
    moderation_latency: null,
    tokens_prompt: prompt,
    tokens_completion: completion,
    native_tokens_prompt: prompt,
    native_tokens_completion: completion,
    native_tokens_reasoning: usage?.out_reasoning ?? null,
    native_tokens_cached: usage?.in_cache_read ?? null,
    token_classes: tokenClasses(record),
    native_tokens_completion_images: usage?.out_image ?? null,
    num_media_prompt: record.num_media_prompt,
    num_media_completion: null,
    num_input_audio_prompt: record.num_input_audio_prompt,
    num_search_results: resultsOf(record) ?? usage?.counts?.web_search ?? null,
    num_fetches: usage?.counts?.web_fetch ?? null,
    usage: cost,
    total_cost: cost,
    upstream_inference_cost: record.is_byok || hasOwnPart ? ownCost : null,
    cache_discount: record.cache_discount_nano === null ? null : toUsd(record.cache_discount_nano),
    service_tier: record.service_tier,
    web_search_engine: engineOf(record),
    response_cache_source_id: null,
    outcome: record.outcome,
    estimated: usage?.estimated === true || record.attempts.some(({ estimated }) => estimated === true),
    estimated_cost: cost === null ? null : toUsd(estimatedOf(record)),
    charges: describeCharges(record),
    routing: describeRouting(record),
    provider_responses: record.attempts.map((attempt) => ({
      model_permaslug: attempt.model_permaslug,
      provider_name: attempt.provider_name,
      status: attempt.status,
      is_byok: attempt.is_byok,
      byok_id: attempt.byok_id ?? null,
      ...shownFacts(attempt),
    })),
  };
}

/** The counts by class; null if nothing was counted. */
function tokenClasses({ usage }: GenerationRecord): Record<string, number> | null {
  if (usage === null) return null;
  return Object.fromEntries(
    Object.entries(usage).filter((entry): entry is [string, number] => /^(in|out)_/.test(entry[0])),
  );
}

/** Clients of the public service require a text and a number here, or nothing. */
function shownFacts(attempt: GenerationRecord['attempts'][number]) {
  const { latency, ...facts } = attemptFacts(attempt);
  const { upstream_id } = attempt;
  return { ...facts, ...(upstream_id === null ? {} : { id: upstream_id }), ...(latency === null ? {} : { latency }) };
}

/** The engine that searched the web for the call; null if none did, or the provider did. */
function engineOf({ routing }: GenerationRecord): string | null {
  const engine = routing?.pipeline?.find(({ name }) => name === 'web-search')?.data?.['engine'];
  return typeof engine === 'string' ? engine : null;
}

/** The number of results of the operator's engines; undefined if none was used. Results of providers are unknown; their searches are counted. */
function resultsOf({ routing }: GenerationRecord): number | undefined {
  const counts = routing?.pipeline?.flatMap(({ name, data }) =>
    name === 'web-search' ? Number(data?.['results']) : [],
  );
  return counts?.length ? counts.reduce((sum, results) => sum + results, 0) : undefined;
}

/** `GET /generation?id=`: statistics of a finished request of the caller's organization. */
export function getGeneration(server: Server, { generations }: { generations: GenerationSource }): void {
  server.route({
    method: 'GET',
    url: '/generation',
    config: { access: 'any', forMembers: true },
    schema: {
      operationId: 'getGeneration',
      tags: ['Chat'],
      summary: 'Returns token counts and cost of a finished request.',
      querystring: Type.Object({ id: Type.String({ minLength: 1, maxLength: 200 }) }),
      response: { 200: Type.Object({ data: Generation }), ...errors(400, 401, 404, 500) },
    },
    handler: async (request) => {
      const { id } = request.query;
      const { principal } = request;
      const record = principal && isStorable(id) ? await generations.find(id, principal) : undefined;
      // A record of another organization is a 404; for an ordinary key, also one of another workspace; for a member, one of another member.
      const ownUser = principal && ownUserOf(principal);
      const visible =
        record !== undefined &&
        record.organization_id === principal?.organization_id &&
        (ownUser === undefined || record.user_id === ownUser) &&
        (principal.kind === 'management' || record.workspace_id === principal.workspace_id);
      if (!visible) {
        const days = generations.keptDays?.();
        const kept =
          days === undefined ? '' : `. Generations are deleted after ${days} days (retention.generations_days)`;
        throw new GatewayError(404, `Generation ${id} not found${kept}`);
      }
      return { data: describeGeneration(record, principal.kind === 'management') };
    },
  });
}
