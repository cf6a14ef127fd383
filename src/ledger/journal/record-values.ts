// The stored form of records, in journal and store: lists of values without field names, which were a third of the bytes.
// The order never changes: new values are added at the end of their list. Missing values are null, or cut off at the end.

import type { AttemptRecord, Charged, ChargeLine, GenerationRecord, OpenRecord } from '../records.ts';

/** The values up to the last that is set. */
export function list<Values extends unknown[]>(...values: Values): Values {
  while (values.at(-1) === undefined) values.pop();
  return values;
}

/** The fields that are set. */
export function present<Fields extends object>(fields: Fields): { [Name in keyof Fields]?: NonNullable<Fields[Name]> } {
  const set: { [Name in keyof Fields]?: NonNullable<Fields[Name]> } = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== null && value !== undefined) set[name] = value;
  }
  return set;
}

function lineValues(line: ChargeLine) {
  return list(line.class, line.units, line.unit_price_pico, line.price_units, line.discount_ppm, line.model);
}

function lineOf(values: ReturnType<typeof lineValues>): ChargeLine {
  const [name, units, unitPricePico, priceUnits, discountPpm, model] = values;
  return {
    class: name,
    units,
    unit_price_pico: unitPricePico,
    ...present({ price_units: priceUnits, discount_ppm: discountPpm, model }),
  };
}

export function attemptValues(attempt: AttemptRecord) {
  return list(
    attempt.endpoint_id,
    attempt.provider_name,
    attempt.model_permaslug,
    attempt.status,
    attempt.latency,
    attempt.is_byok,
    attempt.upstream_id,
    attempt.failure,
    attempt.cost_nano,
    attempt.wait,
    attempt.tokens,
    attempt.charges?.map(lineValues),
    attempt.byok_id,
    attempt.estimated,
    attempt.is_unpriced,
    attempt.continues,
    attempt.hedges,
    attempt.step,
  );
}

export function attemptOf(values: ReturnType<typeof attemptValues>): AttemptRecord {
  const [
    endpointId,
    providerName,
    modelPermaslug,
    status,
    latency,
    isByok,
    upstreamId,
    failure,
    costNano,
    wait,
    tokens,
    charges,
    byokId,
    estimated,
    isUnpriced,
    continues,
    hedges,
    step,
  ] = values;
  return {
    ...{
      endpoint_id: endpointId,
      provider_name: providerName,
      model_permaslug: modelPermaslug,
      status,
      latency,
      is_byok: isByok,
      upstream_id: upstreamId,
      failure,
      cost_nano: costNano,
    },
    ...present({ wait, tokens, charges: charges?.map(lineOf), byok_id: byokId }),
    ...present({ estimated, is_unpriced: isUnpriced, continues, hedges, step }),
  };
}

/** The values of a record at the beginning of an attempt. */
function openValues(record: OpenRecord) {
  return list(
    record.id,
    record.request_id,
    record.api_type,
    record.created_at,
    record.key_hash,
    record.workspace_id,
    record.organization_id,
    record.user_id,
    record.model,
    record.requested_model,
    record.provider_name,
    record.endpoint_id,
    record.streamed,
    record.is_byok,
    record.external_user,
    record.session_id,
    record.http_referer,
    record.title,
    record.categories,
    record.user_agent,
    record.num_media_prompt,
    record.num_input_audio_prompt,
    record.attempts.map(attemptValues),
    record.fees,
    record.tags,
  );
}

export type OpenValues = ReturnType<typeof openValues>;

/** The inverse of `openValues`. */
export function openOf(values: OpenValues): OpenRecord {
  const [
    id,
    requestId,
    apiType,
    createdAt,
    keyHash,
    workspaceId,
    organizationId,
    userId,
    model,
    requestedModel,
    providerName,
    endpointId,
    streamed,
    isByok,
    externalUser,
    sessionId,
    httpReferer,
    title,
    categories,
    userAgent,
    numMediaPrompt,
    numInputAudioPrompt,
    attempts,
    fees,
    tags,
  ] = values;
  return {
    ...{
      id,
      request_id: requestId,
      api_type: apiType,
      created_at: createdAt,
      key_hash: keyHash,
      workspace_id: workspaceId,
      organization_id: organizationId,
      user_id: userId ?? null,
    },
    ...{
      model,
      requested_model: requestedModel,
      provider_name: providerName,
      endpoint_id: endpointId,
      streamed,
      is_byok: isByok,
      external_user: externalUser,
      session_id: sessionId,
    },
    ...{
      http_referer: httpReferer,
      title,
      categories,
      user_agent: userAgent,
      num_media_prompt: numMediaPrompt,
      num_input_audio_prompt: numInputAudioPrompt,
    },
    attempts: attempts.map(attemptOf),
    ...present({ fees, tags }),
  };
}

function generationValues(record: GenerationRecord) {
  return list(
    openValues(record),
    record.upstream_id,
    record.outcome,
    record.cancelled,
    record.finish_reason,
    record.native_finish_reason,
    record.service_tier,
    record.latency,
    record.generation_time,
    record.usage,
    record.cost_nano,
    record.upstream_cost_nano,
    record.cache_discount_nano,
    record.byok_cost_nano,
    record.routing,
    record.is_resolved,
  );
}

export type GenerationValues = ReturnType<typeof generationValues>;

/** The inverse of the values in `recordText`. */
export function generationOf(values: GenerationValues): GenerationRecord {
  const [
    open,
    upstreamId,
    outcome,
    cancelled,
    finishReason,
    nativeFinishReason,
    serviceTier,
    latency,
    generationTime,
    usage,
    costNano,
    upstreamCostNano,
    cacheDiscountNano,
    byokCostNano,
    routing,
    isResolved,
  ] = values;
  return {
    ...openOf(open),
    ...{
      upstream_id: upstreamId,
      outcome,
      cancelled,
      finish_reason: finishReason,
      native_finish_reason: nativeFinishReason,
      service_tier: serviceTier,
      latency,
      generation_time: generationTime,
    },
    ...{ usage, cost_nano: costNano, upstream_cost_nano: upstreamCostNano, cache_discount_nano: cacheDiscountNano },
    ...present({ byok_cost_nano: byokCostNano, routing, is_resolved: isResolved }),
  };
}

/** The stored form of a generation record. */
export function recordText(record: GenerationRecord): string {
  return JSON.stringify(generationValues(record));
}

/** The inverse of `recordText`; older versions stored the record as an object. */
export function recordOf(text: string): GenerationRecord {
  const stored = JSON.parse(text) as GenerationRecord | GenerationValues;
  return Array.isArray(stored) ? generationOf(stored) : stored;
}

export type ChargedValues = [budget_id: string, window_start: string, amount: number, cover: number];

/** The inverse of the values in `chargesText`. */
export function chargedOf([budgetId, windowStart, amount, cover]: ChargedValues): Charged {
  return { budget_id: budgetId, window_start: windowStart, amount, cover };
}

/** The stored form of an outcome's charges. */
export function chargesText(charges: readonly Charged[]): string {
  if (charges.length === 0) return '[]';
  return JSON.stringify(
    charges.map((charge): ChargedValues => [charge.budget_id, charge.window_start, charge.amount, charge.cover]),
  );
}
