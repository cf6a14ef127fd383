/** The records of a call, and its usage and expected cost as clients see them. */
import { pricesFor } from '../../catalog/price-list.ts';
import type { Hold } from '../../ledger/leases/hold.ts';
import { charge } from '../../ledger/prices/charge.ts';
import type {
  AttemptRecord,
  FeeRecord,
  GenerationRecord,
  OpenRecord,
  RecordedEndpoint,
  RoutingRecord,
} from '../../ledger/records.ts';
import { limits } from '../../limits.ts';
import type { Candidate, Plan } from '../../routing/plan.ts';
import { withOne } from '../../schemas/append.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { FinishReason, TokenClasses } from '../../schemas/inner.ts';
import { toUsd } from '../../schemas/money.ts';
import { isPriced } from '../../schemas/prices.ts';
import { inputTokens, publicUsage, sumClasses } from '../../schemas/usage.ts';
import type { Call } from '../call.ts';
import type { Account, Attempt, CallState } from '../state.ts';
import { type AnswerUsage, NO_USAGE } from './answer-usage.ts';
import { estimatePrompt } from './meter.ts';

/**
 * The last millisecond of a record, and its ISO form, which requests of one millisecond share. It is not joined from parts: V8 encodes a
 * record with a joined text in its slow way, which takes twice as long.
 */
let lastMs = Number.NaN;
let lastTime = '';

/** The record of a call whose outcome is not known yet, as the journal keeps it for an attempt. */
export function openRecord(
  call: Call,
  candidate: Candidate,
  { attempts, fees }: Pick<CallState, 'attempts' | 'fees'>,
): OpenRecord {
  const { request, principal, attribution } = call;
  const { media, sounds } = contentsOf(request);
  const ms = Math.floor(call.accepted_ms);
  if (ms !== lastMs) {
    lastTime = new Date(ms).toISOString();
    lastMs = ms;
  }
  const record: OpenRecord = {
    id: call.generation_id,
    request_id: call.request_id,
    api_type: call.api_type,
    created_at: lastTime,
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
    attempts: attempts.length === 0 ? [] : attempts.map(recordOf),
  };
  if (fees.length > 0) record.fees = fees;
  if (attribution.tags !== undefined) record.tags = attribution.tags;
  return record;
}

function recordOf({ record }: Attempt): AttemptRecord {
  return record!;
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
  const records = attempts.map(recordOf);
  let costNano = 0;
  let byokCostNano = 0;
  // By index: there is an object for each turn of these loops otherwise.
  for (let at = 0; at < records.length; at += 1) {
    const { is_byok, cost_nano } = records[at]!;
    if (is_byok) byokCostNano += cost_nano;
    else costNano += cost_nano;
  }
  for (let at = 0; at < fees.length; at += 1) costNano += fees[at]!.cost_nano;
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

/** The expected tokens of a call, at any endpoint. */
export interface ExpectedTokens {
  prompt: number;
  completion: number;
  /** The number of answers that `completion` covers. */
  choices: number;
}

/**
 * The prompt by the upstream's count if `usage` has it, otherwise by our estimate, and an answer of the usual length within the output
 * bound. Undefined for calls that are not chat.
 */
export function expectedTokens(
  { request, api_type }: Pick<Call, 'request' | 'api_type'>,
  usage: TokenClasses | null = null,
): ExpectedTokens | undefined {
  if (api_type === 'embeddings' || api_type === 'stt') return undefined;
  const { max_completion_tokens, max_tokens } = request;
  const most = max_completion_tokens ?? max_tokens ?? limits.expected_completion_tokens;
  return {
    choices: choicesOf(request),
    prompt: usage === null ? estimatePrompt(request) : inputTokens(usage),
    completion: Math.min(most, limits.expected_completion_tokens) * choicesOf(request),
  };
}

/** The cost at an endpoint with nothing cached, in nano-USD; undefined if a price is not known. */
export function expectedCost(
  { endpoint, tier }: Candidate,
  tokens: ExpectedTokens,
  serviceTier: string | null | undefined,
): number | undefined {
  const prices = pricesFor(endpoint, { prompt_tokens: tokens.prompt, service_tier: tier ?? serviceTier });
  if (!isPriced(prices)) return undefined;
  const completion = Math.min(tokens.completion, (endpoint.max_completion_tokens ?? Infinity) * tokens.choices);
  return charge([{ usage: { in_uncached: tokens.prompt, out_text: completion }, prices }]).cost_nano;
}

/** Endpoints of a plan, and excluded endpoints, that a generation's record keeps. */
export const ROUTING_RECORDED_MAX = 8;

/** How a call was routed, in the short form of its generation's record. Endpoints of `model` are named by their tag alone. */
export function routingRecord(
  { call, plan, hold }: { call: Call; plan: Plan; hold: Hold },
  model: string,
  usage: TokenClasses | null,
): RoutingRecord {
  const expected = expectedTokens(call, usage);
  let planned: readonly RecordedEndpoint[] = [];
  // By index: there is an object for each turn of these loops otherwise.
  for (let at = 0; at < plan.attempts.length && planned.length < ROUTING_RECORDED_MAX; at += 1) {
    const candidate = plan.attempts[at]!;
    if (candidate.excluded !== undefined) continue;
    const { endpoint, weight, because, own, tier } = candidate;
    const entry: RecordedEndpoint = { id: endpoint.model === model ? endpoint.tag : endpoint.id };
    if (tier !== undefined) entry.tier = tier;
    if (own !== undefined) entry.byok_id = own.id;
    if (weight !== undefined) entry.weight = Math.round(weight * 1000) / 1000;
    if (because !== undefined && because.length > 0) entry.because = because;
    const costNano = expected && expectedCost(candidate, expected, call.request.service_tier);
    if (costNano !== undefined) entry.expected_nano = costNano;
    planned = withOne(planned, entry);
  }
  const record: RoutingRecord = { strategy: plan.strategy, total: plan.candidates.length, plan: planned };
  if (plan.sort !== undefined) record.sort = plan.sort;
  let excludedCount = 0;
  for (let at = 0; at < plan.candidates.length; at += 1) {
    const { excluded, endpoint } = plan.candidates[at]!;
    if (excluded === undefined) continue;
    if (excludedCount === ROUTING_RECORDED_MAX) break;
    excludedCount += 1;
    record.excluded ??= {};
    record.excluded[excluded.step] ??= [];
    record.excluded[excluded.step]?.push(endpoint.model === model ? endpoint.tag : endpoint.id);
  }
  for (let at = 0; at < hold.lines.length; at += 1) {
    const { budget, granted } = hold.lines[at]!;
    if (granted <= 0) continue;
    record.hold_nano = hold.granted_nano;
    const counted = `${budget.scope} ${budget.reset_interval}`;
    if (record.held_in === undefined) record.held_in = [counted];
    else record.held_in.push(counted);
  }
  if (call.stages.length > 0) record.pipeline = call.stages;
  return record;
}

/** The public usage of an answer over all its parts. The cost at the organization's own accounts is shown apart. */
export function answerUsage(
  { usage, parts, fees, toolCalls }: Pick<CallState, 'usage' | 'parts' | 'fees' | 'toolCalls'>,
  { own }: Candidate,
): AnswerUsage {
  const isByok = own !== undefined;
  let costNano = 0;
  for (const fee of fees) costNano += fee.cost_nano;
  if (usage === null) return { ...NO_USAGE, cost: toUsd(costNano), is_byok: isByok };
  let theirNano = 0;
  let theirs = 0;
  let inputNano = 0;
  let outputNano = 0;
  let isUnpriced = false;
  for (let at = 0; at < parts.length; at += 1) {
    const { candidate, charge } = parts[at]!;
    if (charge === undefined) continue;
    if (candidate.own === undefined) costNano += charge.cost_nano;
    else {
      theirs += 1;
      theirNano += charge.cost_nano;
    }
    inputNano += charge.input_nano;
    outputNano += charge.output_nano;
    isUnpriced ||= charge.is_unpriced;
  }
  const shown = publicUsage(usage) as AnswerUsage;
  if (!isUnpriced || theirs === parts.length) shown.cost = toUsd(costNano);
  shown.is_byok = isByok;
  if (!isUnpriced) {
    shown.cost_details = {
      upstream_inference_cost: theirs === 0 ? null : toUsd(theirNano),
      upstream_inference_prompt_cost: toUsd(inputNano),
      upstream_inference_completions_cost: toUsd(outputNano),
    };
  }
  if (toolCalls !== undefined) {
    shown.server_tool_use_details = {
      web_search_requests: usage.counts?.web_search ?? 0,
      tool_calls_requested: toolCalls.requested,
      tool_calls_executed: toolCalls.executed,
    };
  }
  return shown;
}

/** The usage of all parts of an answer and of paid work beside them. */
export function allUsed(parts: readonly Attempt[], fees: readonly FeeRecord[]): TokenClasses | null {
  const used: TokenClasses[] = [];
  for (const { usage } of parts) if (usage !== null) used.push(usage);
  for (const { counts } of fees) if (counts !== undefined) used.push({ counts });
  return used.length > 1 ? sumClasses(used) : (used[0] ?? null);
}
