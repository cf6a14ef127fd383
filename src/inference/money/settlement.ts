import type { Charge } from '../../ledger/prices/charge.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import type { AttemptRecord, FeeRecord, GenerationRecord, OpenRecord } from '../../ledger/records.ts';
import type { Candidate } from '../../routing/plan.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { FinishReason, TokenClasses } from '../../schemas/inner.ts';
import { toUsd } from '../../schemas/money.ts';
import { inputTokens, outputTokens, type PublicUsage, publicUsage, sumClasses } from '../../schemas/usage.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Clock } from '../call.ts';
import { routingRecord } from '../observe/routing-record.ts';
import type { Traffic } from '../observe/traffic.ts';
import type { RateLimitReservation } from '../plan/rate-limit-reservation.ts';
import { type Attempt, type CallState, recordedWork, type ToolUse } from '../state.ts';
import type { Prepared, SpendingRules } from './admission.ts';
import { boundedWord, closeRecord, type PricesOf, priceAttempt } from './generation.ts';
import { estimatePrompt, type Meter } from './meter.ts';
import type { UsualOutput } from './presumed-cost.ts';

/** The public usage with what it cost, in USD. */
export interface AnswerUsage extends PublicUsage {
  /** Absent where a price is not known, so that the cost is not either. */
  cost?: number;
  is_byok: boolean;
  cost_details?: {
    upstream_inference_cost: number | null;
    upstream_inference_prompt_cost: number;
    upstream_inference_completions_cost: number;
  };
  server_tool_use_details?: ToolUse;
}

/** What an answer says that nothing was used for. */
export const NO_USAGE: AnswerUsage = {
  ...publicUsage({}),
  cost: 0,
  is_byok: false,
  cost_details: {
    upstream_inference_cost: null,
    upstream_inference_prompt_cost: 0,
    upstream_inference_completions_cost: 0,
  },
};

/** How an attempt ended. */
export interface AttemptEnd {
  status: number | null;
  failure: string | null;
  /** It was sent, and nobody can say whether the provider answered and bills it. */
  is_unknown?: boolean;
  /** What of it was answered all the same, and is billed. */
  used?: TokenClasses | null | undefined;
}

/** How a call ends, and by which attempt. */
interface Closing {
  outcome: GenerationRecord['outcome'];
  finish_reason: FinishReason | undefined;
  answered: Attempt | undefined;
  candidate: Candidate;
}

/** Notes the attempts of a call and writes its record at the end. */
export interface Settlement {
  /** Notes that an attempt answers or has failed, and keeps aside what it may have cost. Sets its `record`. */
  note(state: CallState, attempt: Attempt, end: AttemptEnd): void;
  /** Another attempt is to be sent beside this one: until its end is noted it counts as if that end stayed unknown. */
  assume(state: CallState, attempt: Attempt): void;
  /** The other attempt is not sent after all. */
  unassume(state: CallState, attempt: Attempt): void;
  /** The usage and cost of an answer so far. */
  soFar(state: CallState, attempt: Attempt<Prepared, Meter>): { usage: TokenClasses; cost_nano: number };
  /** Charges an attempt whose answer broke off and is to be continued by another. */
  breakOff(state: CallState, attempt: Attempt, failure: string): void;
  /** Charges a step of the answer that is followed by another. */
  endStep(state: CallState, attempt: Attempt): void;
  /**
   * Writes the record, once for each call; it is durable when this resolves. `answered`: the attempt that answered, if it is not
   * charged yet. `finish_reason`: the end of the answer if its last attempt does not say it.
   */
  settle(
    state: CallState,
    outcome: GenerationRecord['outcome'],
    answered: Attempt | undefined,
    finish_reason?: FinishReason,
  ): Promise<AnswerUsage>;
}

/** How an attempt of which nothing more was heard stands in a record: as after a crash. */
const ASSUMED = 'gateway_gone';

/** Where what an operator should look at is told. */
export interface SettlementLog {
  warn(facts: object, message: string): void;
}

/** The tier that served an attempt: what the upstream told, else what it was sent. */
function tierOf({ meter, prepared }: Attempt): string | null {
  return meter.service_tier ?? prepared.service_tier ?? null;
}

/** What the client is told: of all parts of the answer, those at the organization's own accounts apart. */
function answerUsage(
  { usage, parts }: { usage: TokenClasses | null; parts: readonly Attempt[] },
  { own }: Candidate,
  { fees, toolCalls }: CallState,
): AnswerUsage {
  const is_byok = own !== undefined;
  let cost_nano = 0;
  for (const fee of fees) cost_nano += fee.cost_nano;
  if (usage === null) return { ...NO_USAGE, cost: toUsd(cost_nano), is_byok };
  let their_nano = 0;
  let theirs = 0;
  let input_nano = 0;
  let output_nano = 0;
  let is_unpriced = false;
  for (const { candidate, charge } of parts) {
    if (charge === undefined) continue;
    if (candidate.own === undefined) cost_nano += charge.cost_nano;
    else {
      theirs += 1;
      their_nano += charge.cost_nano;
    }
    input_nano += charge.input_nano;
    output_nano += charge.output_nano;
    is_unpriced ||= charge.is_unpriced;
  }
  const told = publicUsage(usage) as AnswerUsage;
  if (!is_unpriced || theirs === parts.length) told.cost = toUsd(cost_nano);
  told.is_byok = is_byok;
  if (!is_unpriced) {
    told.cost_details = {
      upstream_inference_cost: theirs === 0 ? null : toUsd(their_nano),
      upstream_inference_prompt_cost: toUsd(input_nano),
      upstream_inference_completions_cost: toUsd(output_nano),
    };
  }
  if (toolCalls !== undefined) {
    told.server_tool_use_details = {
      web_search_requests: usage.counts?.web_search ?? 0,
      tool_calls_requested: toolCalls.requested,
      tool_calls_executed: toolCalls.executed,
    };
  }
  return told;
}

/** Says to whoever follows a call that it has ended. */
function settledAs({ call, watch }: CallState, record: GenerationRecord | undefined): void {
  watch?.settled(record);
  call.settled?.(record);
}

/** What of a call was used in all: by what made the answer, and beside it. */
function allUsed(parts: readonly Attempt[], fees: readonly FeeRecord[]): TokenClasses | null {
  const [only] = parts;
  if (parts.length === 1 && fees.length === 0 && only !== undefined) return only.usage;
  const told: TokenClasses[] = [];
  for (const { usage } of parts) if (usage !== null) told.push(usage);
  for (const { counts } of fees) if (counts !== undefined) told.push({ counts });
  return told.length > 1 ? sumClasses(told) : (told[0] ?? null);
}

/** What rate limits count of a call: what came of it, or what was set aside where its client left before that is known. */
function endReservation(
  reservation: RateLimitReservation,
  { outcome, answered, candidate }: Closing,
  usage: TokenClasses | null,
): void {
  if (usage !== null) reservation.commit(inputTokens(usage) + outputTokens(usage), candidate.model.id);
  else if (answered === undefined && outcome === 'cancelled') reservation.commitInFull();
  else reservation.commit(0, undefined);
}

export function createSettlement(options: {
  recorder: Recorder;
  clock: Clock;
  metrics: Metrics;
  log: SettlementLog;
  rules: SpendingRules;
  traffic: Traffic;
  usual: Pick<UsualOutput, 'note'>;
}): Settlement {
  const { clock, metrics, recorder, rules, log, traffic, usual } = options;

  // Rare (a provider that ran a second model inside a call), so a scan will do.
  function pricesOf({ catalog }: CallState): PricesOf {
    return (provider, upstream_model) => {
      for (const model of catalog.models()) {
        for (const endpoint of model.endpoints) {
          if (endpoint.provider === provider && endpoint.upstream_model === upstream_model) return endpoint;
        }
      }
      return undefined;
    };
  }

  function priceOf(
    state: CallState,
    attempt: Attempt,
    usage: TokenClasses | null,
    tier: string | null | undefined,
  ): Charge {
    return priceAttempt(usage, attempt.call.request, attempt.candidate, pricesOf(state), tier);
  }

  /** The money that is held for an attempt. */
  function heldFor({ hold }: CallState, { grantedNano }: Attempt): number {
    return grantedNano ?? hold.granted_nano;
  }

  /**
   * The cost of an attempt whose end is unknown: all that was held. If nothing was held, the prompt, and the usual answer if it is
   * still under way.
   */
  function unknownCost(state: CallState, attempt: Attempt, is_under_way = false): Partial<AttemptRecord> {
    const { call, grant, presumedOutput } = attempt;
    if (grant !== undefined && !(grant.mode === 'soft' && rules.unknown_outcome === 'metered')) {
      return { cost_nano: heldFor(state, attempt) };
    }
    const usage = call.estimate?.() ?? { in_uncached: estimatePrompt(call.request) };
    const is_whole = is_under_way && presumedOutput > 0;
    return usedCost(state, attempt, is_whole ? { ...usage, out_text: presumedOutput } : usage);
  }

  /**
   * A strict limit is charged what a provider reports, and of an estimate no more than was held: only a bill may pass a limit.
   * The reported part is the least.
   */
  function boundEstimate(
    state: CallState,
    attempt: Attempt,
    usage: TokenClasses | null,
    charge: Charge,
    reported_nano: number,
  ): Charge {
    if (usage?.estimated !== true || attempt.grant?.mode !== 'strict') return charge;
    const most_nano = Math.max(heldFor(state, attempt), reported_nano);
    if (charge.cost_nano <= most_nano) return charge;
    const input_nano = Math.min(charge.input_nano, most_nano);
    const output_nano = Math.min(charge.output_nano, most_nano - input_nano);
    return { ...charge, cost_nano: most_nano, input_nano, output_nano };
  }

  function usedCost(state: CallState, attempt: Attempt, usage: TokenClasses): Partial<AttemptRecord> {
    const counted = priceOf(state, attempt, usage, attempt.prepared.service_tier);
    const charge = boundEstimate(state, attempt, usage, counted, 0);
    return {
      cost_nano: charge.cost_nano,
      tokens: [inputTokens(usage), outputTokens(usage)],
      charges: charge.lines,
      ...(charge.is_unpriced ? { is_unpriced: true } : {}),
      ...(usage.estimated ? { estimated: true } : {}),
    };
  }

  /** The cost of an attempt that did not answer: its billed usage; if its end is unknown the most of both. */
  function endCost(
    state: CallState,
    attempt: Attempt,
    { failure, is_unknown = false, used }: AttemptEnd,
  ): Partial<AttemptRecord> | undefined {
    const billed = used ? usedCost(state, attempt, used) : undefined;
    if (!is_unknown) return billed;
    const unknown = unknownCost(state, attempt, failure === ASSUMED);
    const most = billed !== undefined && (billed.cost_nano ?? 0) > (unknown.cost_nano ?? 0) ? billed : unknown;
    return { ...most, estimated: true };
  }

  /** After a fault of the gateway's: its money does not stay held, nor uncounted. */
  function lost(state: CallState, fault: unknown): unknown {
    void recorder.lose(state.hold);
    settledAs(state, undefined);
    return fault;
  }

  const note: Settlement['note'] = (state, attempt, end) => {
    try {
      noteEnd(state, attempt, end);
    } catch (error) {
      throw lost(state, error);
    }
  };

  function noteEnd(state: CallState, attempt: Attempt, end: AttemptEnd): void {
    const { status, failure } = end;
    const { provider, model, endpoint, own } = attempt.candidate;
    const wait = Math.round(attempt.waitedMs);
    const record: AttemptRecord = {
      endpoint_id: endpoint.id,
      provider_name: provider.name,
      model_permaslug: model.canonical_slug,
      status,
      latency: Math.round(clock.monotonic_ms() - attempt.sentMs),
      is_byok: own !== undefined,
      upstream_id: null,
      failure,
      cost_nano: 0,
    };
    if (wait !== 0) record.wait = wait;
    if (own !== undefined) record.byok_id = own.id;
    if (attempt.continues) record.continues = true;
    if (attempt.step !== 1) record.step = attempt.step;
    if (attempt.isHedge) record.hedges = true;
    const cost = endCost(state, attempt, end);
    if (cost !== undefined) Object.assign(record, cost);
    const more_nano = record.cost_nano - (attempt.record?.cost_nano ?? 0);
    if (more_nano !== 0) recorder.keep(state.hold, more_nano, record.is_byok);
    if (attempt.record === undefined) state.attempts.push(attempt);
    attempt.record = record;
    // An answer may still break off: it is counted when its end is known.
    if (failure !== null && failure !== ASSUMED) metrics.attempt(provider.slug, failure);
  }

  const assume: Settlement['assume'] = (state, attempt) => {
    note(state, attempt, { status: null, failure: ASSUMED, is_unknown: true });
  };

  const unassume: Settlement['unassume'] = (state, attempt) => {
    const { record } = attempt;
    state.attempts.splice(state.attempts.indexOf(attempt), 1);
    attempt.record = undefined;
    if (record !== undefined && record.cost_nano !== 0) recorder.keep(state.hold, -record.cost_nano, record.is_byok);
  };

  const soFar: Settlement['soFar'] = (state, attempt) => {
    const usage = attempt.meter.progress(attempt.call.request);
    return { usage, cost_nano: priceOf(state, attempt, usage, tierOf(attempt)).cost_nano };
  };

  /** Reports an answer that cost more than was held: the provider ignores the output bound, or counts the prompt higher. */
  function reportOverrun(state: CallState, attempt: Attempt, usage: TokenClasses, cost_nano: number): void {
    const { grant, call, candidate, report } = attempt;
    if (grant === undefined) return;
    const tokens = outputTokens(usage);
    // An estimate may be off by some.
    const is_over = usage.estimated !== true && tokens > grant.output_tokens;
    const granted_nano = heldFor(state, attempt);
    if (!is_over && cost_nano <= granted_nano) return;
    metrics.overrun(candidate.provider.slug);
    const { output_tokens: bound, mode } = grant;
    const facts = { generation: call.generation_id, endpoint: candidate.endpoint.id, tokens, bound, mode };
    const message =
      usage.estimated === true && mode === 'strict'
        ? 'an answer without a reported usage is larger than was reserved for it; the limit is charged what was reserved'
        : 'an answer cost more than was reserved for it';
    log.warn({ ...facts, cost_nano, granted_nano }, message);
    if (!is_over) return;
    report.push({
      kind: 'changed',
      field: 'max_tokens',
      reason: `the provider produced ${tokens} tokens, more than ${bound}`,
    });
  }

  /**
   * Prices an attempt that answered and completes its record. One that may go on upstream costs at least what an unknown end does.
   * Returns the cost before the bound of an estimate.
   */
  function price(state: CallState, attempt: Attempt): number {
    const { meter, prepared, mayGoOn } = attempt;
    const record = attempt.record!;
    const usage = meter.usage(prepared.request);
    const tier = tierOf(attempt);
    const counted = priceOf(state, attempt, usage, tier);
    const { reported } = meter;
    const is_partial = usage?.estimated === true && reported !== undefined;
    const reported_nano = is_partial ? priceOf(state, attempt, reported, tier).cost_nano : 0;
    const counted_nano = counted.cost_nano;
    const charge = boundEstimate(state, attempt, usage, counted, reported_nano);
    if (mayGoOn) charge.cost_nano = Math.max(charge.cost_nano, unknownCost(state, attempt).cost_nano ?? 0);
    record.cost_nano = charge.cost_nano;
    if (usage !== null) record.tokens = [inputTokens(usage), outputTokens(usage)];
    if (usage?.estimated || mayGoOn) record.estimated = true;
    record.charges = charge.lines;
    if (charge.is_unpriced) record.is_unpriced = true;
    record.upstream_id = boundedWord(meter.upstream_id);
    attempt.usage = usage;
    attempt.charge = charge;
    return counted_nano;
  }

  /** Charges an attempt that made its part of the answer and keeps its cost aside. */
  function endPart(state: CallState, attempt: Attempt): number {
    const counted_nano = price(state, attempt);
    const { cost_nano, is_byok } = attempt.record!;
    if (cost_nano > 0) recorder.keep(state.hold, cost_nano, is_byok);
    state.parts.push(attempt);
    return counted_nano;
  }

  const breakOff: Settlement['breakOff'] = (state, attempt, failure) => {
    try {
      attempt.record!.failure = failure;
      endPart(state, attempt);
      metrics.attempt(attempt.candidate.provider.slug, failure);
    } catch (error) {
      throw lost(state, error);
    }
  };

  const endStep: Settlement['endStep'] = (state, attempt) => {
    try {
      const counted_nano = endPart(state, attempt);
      metrics.attempt(attempt.candidate.provider.slug, 'answered');
      if (attempt.usage !== null) reportOverrun(state, attempt, attempt.usage, counted_nano);
      observe(attempt, clock.monotonic_ms(), true);
    } catch (error) {
      throw lost(state, error);
    }
  };

  /** Counts a complete answer in the statistics of its endpoint. */
  function observe(attempt: Attempt, end_ms: number, is_completed: boolean): void {
    const { call, candidate, usage, meter } = attempt;
    // Of several answers to one request the length of each is unknown.
    if (usage !== null && is_completed && choicesOf(call.request) === 1) usual.note(candidate.endpoint.id, usage);
    traffic.answered(candidate, {
      is_streamed: call.request.stream === true,
      sent_ms: attempt.sentMs,
      first_token_ms: attempt.firstTokenMs,
      end_ms,
      usage,
      tool_calls: meter.toolCalls?.(),
      is_completed,
      is_error: meter.finish_reason === 'error',
    });
  }

  /** Prices the last attempt and makes the record of the ended call. */
  function close(state: CallState, record: OpenRecord, { outcome, answered, finish_reason }: Closing) {
    const { call, fees } = state;
    const now = clock.monotonic_ms();
    const counted_nano = answered === undefined ? 0 : price(state, answered);
    const parts = answered === undefined ? state.parts : [...state.parts, answered];
    const usage = allUsed(parts, fees);
    let discount_nano: number | null = null;
    for (const { charge } of parts) {
      const saved_nano = charge?.cache_discount_nano ?? null;
      if (saved_nano !== null) discount_nano = (discount_nano ?? 0) + saved_nano;
    }
    const [first] = parts;
    const latency = first?.firstTokenMs === undefined ? null : first.firstTokenMs - call.accepted_monotonic_ms;
    const closed = closeRecord(record, {
      meter: answered?.meter,
      usage,
      cache_discount_nano: discount_nano,
      attempts: recordedWork(state).attempts,
      fees,
      finish_reason: finish_reason ?? null,
      outcome,
      latency: latency === null ? null : Math.round(latency),
      generation_time: first === undefined ? null : Math.round(now - first.sentMs),
    });
    state.usage = usage;
    const { plan, hold } = state;
    state.routing = routingRecord({ call: state.lastSent?.call ?? call, plan, hold }, closed.model, usage);
    closed.routing = state.routing;
    return { closed, usage, parts, counted_nano, latency, end_ms: now };
  }

  /** Counts an ended call in metrics and statistics. */
  function count(state: CallState, { outcome, answered, candidate }: Closing, ended: ReturnType<typeof close>): void {
    const { closed, usage, counted_nano, latency, end_ms } = ended;
    if (answered !== undefined) {
      const { failure } = answered.record!;
      metrics.attempt(candidate.provider.slug, failure ?? 'answered');
      const cost_nano = Math.max(counted_nano, answered.record!.cost_nano);
      if (answered.usage !== null) reportOverrun(state, answered, answered.usage, cost_nano);
      if (failure === null) observe(answered, end_ms, outcome === 'completed');
    }
    metrics.generation({
      model: closed.model,
      provider: candidate.provider.slug,
      outcome,
      prompt_tokens: usage === null ? 0 : inputTokens(usage),
      completion_tokens: usage === null ? 0 : outputTokens(usage),
      cost_usd: toUsd(closed.cost_nano),
      first_token_s: latency === null ? undefined : latency / 1000,
    });
  }

  const settle: Settlement['settle'] = async (state, outcome, answered, finish_reason) => {
    const last = answered ?? state.parts.at(-1);
    const record = last === undefined ? state.record : last.opening;
    const candidate = last?.candidate ?? state.plan.attempts[0];
    if (record === undefined || candidate === undefined) {
      state.reservation.release();
      return NO_USAGE;
    }
    const closing = { outcome, finish_reason, answered, candidate };
    let ended: ReturnType<typeof close>;
    try {
      ended = close(state, record, closing);
      count(state, closing, ended);
      endReservation(state.reservation, closing, ended.usage);
    } catch (error) {
      throw lost(state, error);
    }
    try {
      await recorder.outcome(ended.closed, state.hold);
    } finally {
      settledAs(state, ended.closed);
    }
    return answerUsage(ended, candidate, state);
  };

  return { note, assume, unassume, soFar, breakOff, endStep, settle };
}
