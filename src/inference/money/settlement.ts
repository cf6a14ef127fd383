import type { Recorder } from '../../ledger/recorder.ts';
import type { AttemptRecord, GenerationRecord, OpenRecord } from '../../ledger/records.ts';
import type { Candidate } from '../../routing/plan.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { FinishReason, TokenClasses } from '../../schemas/inner.ts';
import { toUsd } from '../../schemas/money.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Clock } from '../call.ts';
import { routingRecord } from '../observe/routing-record.ts';
import type { Traffic } from '../observe/traffic.ts';
import type { RateLimitReservation } from '../plan/rate-limit-reservation.ts';
import { type Attempt, type CallState, recordedWork } from '../state.ts';
import type { Prepared, SpendingRules } from './admission.ts';
import { type AnswerUsage, allUsed, answerUsage, NO_USAGE } from './answer-usage.ts';
import { ASSUMED, type AttemptEnd, endCost, heldFor, priceAnswer, priceOf, tierOf } from './attempt-cost.ts';
import { closeRecord } from './generation.ts';
import type { Meter } from './meter.ts';
import type { UsualOutput } from './presumed-cost.ts';

/** The end of a call, and the attempt that answered. */
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
   * charged yet. `finishReason`: the end of the answer if its last attempt does not say it.
   */
  settle(
    state: CallState,
    outcome: GenerationRecord['outcome'],
    answered: Attempt | undefined,
    finishReason?: FinishReason,
  ): Promise<AnswerUsage>;
}

/** The log of answers that an operator should look at. */
export interface SettlementLog {
  warn(facts: object, message: string): void;
}

/** Reports the end of a call to its followers. */
function reportEnd({ call, watch }: CallState, record: GenerationRecord | undefined): void {
  watch?.settled(record);
  call.settled?.(record);
}

/** Counts a call against rate limits: its usage, or its whole reservation if its client left before the usage is known. */
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

  /** After a fault of the gateway's: its money does not stay held, nor uncounted. */
  function lost(state: CallState, fault: unknown): unknown {
    void recorder.lose(state.hold);
    reportEnd(state, undefined);
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
    const cost = endCost(state, attempt, end, rules);
    if (cost !== undefined) Object.assign(record, cost);
    const moreNano = record.cost_nano - (attempt.record?.cost_nano ?? 0);
    if (moreNano !== 0) recorder.keep(state.hold, moreNano, record.is_byok);
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
  function reportOverrun(state: CallState, attempt: Attempt, usage: TokenClasses, costNano: number): void {
    const { grant, call, candidate, report } = attempt;
    if (grant === undefined) return;
    const tokens = outputTokens(usage);
    // An estimate may be off by some.
    const isOver = usage.estimated !== true && tokens > grant.output_tokens;
    const grantedNano = heldFor(state, attempt);
    if (!isOver && costNano <= grantedNano) return;
    metrics.overrun(candidate.provider.slug);
    const { output_tokens: bound, mode } = grant;
    const facts = { generation: call.generation_id, endpoint: candidate.endpoint.id, tokens, bound, mode };
    const message =
      usage.estimated === true && mode === 'strict'
        ? 'an answer without a reported usage is larger than was reserved for it; the limit is charged what was reserved'
        : 'an answer cost more than was reserved for it';
    log.warn({ ...facts, cost_nano: costNano, granted_nano: grantedNano }, message);
    if (!isOver) return;
    report.push({
      kind: 'changed',
      field: 'max_tokens',
      reason: `the provider produced ${tokens} tokens, more than ${bound}`,
    });
  }

  /** Charges an attempt that made its part of the answer and keeps its cost aside. */
  function endPart(state: CallState, attempt: Attempt): number {
    const countedNano = priceAnswer(state, attempt, rules);
    const { cost_nano, is_byok } = attempt.record!;
    if (cost_nano > 0) recorder.keep(state.hold, cost_nano, is_byok);
    state.parts.push(attempt);
    return countedNano;
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
      const countedNano = endPart(state, attempt);
      metrics.attempt(attempt.candidate.provider.slug, 'answered');
      if (attempt.usage !== null) reportOverrun(state, attempt, attempt.usage, countedNano);
      observe(attempt, clock.monotonic_ms(), true);
    } catch (error) {
      throw lost(state, error);
    }
  };

  /** Counts a complete answer in the statistics of its endpoint. */
  function observe(attempt: Attempt, endMs: number, isCompleted: boolean): void {
    const { call, candidate, usage, meter } = attempt;
    // Of several answers to one request the length of each is unknown.
    if (usage !== null && isCompleted && choicesOf(call.request) === 1) usual.note(candidate.endpoint.id, usage);
    traffic.answered(candidate, {
      is_streamed: call.request.stream === true,
      sent_ms: attempt.sentMs,
      first_token_ms: attempt.firstTokenMs,
      end_ms: endMs,
      usage,
      tool_calls: meter.toolCalls?.(),
      is_completed: isCompleted,
      is_error: meter.finish_reason === 'error',
    });
  }

  /** Prices the last attempt and makes the record of the ended call. */
  function close(state: CallState, record: OpenRecord, { outcome, answered, finish_reason }: Closing) {
    const { call, fees } = state;
    const now = clock.monotonic_ms();
    const countedNano = answered === undefined ? 0 : priceAnswer(state, answered, rules);
    const parts = answered === undefined ? state.parts : [...state.parts, answered];
    const usage = allUsed(parts, fees);
    let discountNano: number | null = null;
    for (const { charge } of parts) {
      const savedNano = charge?.cache_discount_nano ?? null;
      if (savedNano !== null) discountNano = (discountNano ?? 0) + savedNano;
    }
    const [first] = parts;
    const latency = first?.firstTokenMs === undefined ? null : first.firstTokenMs - call.accepted_monotonic_ms;
    const closed = closeRecord(record, {
      meter: answered?.meter,
      usage,
      cache_discount_nano: discountNano,
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
    return { closed, usage, parts, counted_nano: countedNano, latency, end_ms: now };
  }

  /** Counts an ended call in metrics and statistics. */
  function count(state: CallState, { outcome, answered, candidate }: Closing, ended: ReturnType<typeof close>): void {
    const { closed, usage, counted_nano, latency, end_ms } = ended;
    if (answered !== undefined) {
      const { failure } = answered.record!;
      metrics.attempt(candidate.provider.slug, failure ?? 'answered');
      const costNano = Math.max(counted_nano, answered.record!.cost_nano);
      if (answered.usage !== null) reportOverrun(state, answered, answered.usage, costNano);
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

  const settle: Settlement['settle'] = async (state, outcome, answered, finishReason) => {
    const last = answered ?? state.parts.at(-1);
    const record = last === undefined ? state.record : last.opening;
    const candidate = last?.candidate ?? state.plan.attempts[0];
    if (record === undefined || candidate === undefined) {
      state.reservation.release();
      return NO_USAGE;
    }
    const closing = { outcome, finish_reason: finishReason, answered, candidate };
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
      reportEnd(state, ended.closed);
    }
    return answerUsage(ended, candidate, state);
  };

  return { note, assume, unassume, soFar, breakOff, endStep, settle };
}
