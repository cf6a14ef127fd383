import type { Recorder } from '../../ledger/recorder.ts';
import type { AttemptRecord, GenerationRecord, OpenRecord } from '../../ledger/records.ts';
import type { Candidate } from '../../routing/plan.ts';
import { withOne } from '../../schemas/append.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { FinishReason, TokenClasses } from '../../schemas/inner.ts';
import { toUsd } from '../../schemas/money.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Clock } from '../call.ts';
import type { Traffic } from '../observe/traffic.ts';
import type { Attempt, CallState } from '../state.ts';
import type { Grant, Prepared, SpendingRules } from './admission.ts';
import { type AnswerUsage, NO_USAGE } from './answer-usage.ts';
import {
  ASSUMED,
  type AttemptEnd,
  endCost,
  heldFor,
  priceAnswer,
  priceAttempt,
  type UsualOutput,
} from './attempt-cost.ts';
import { allUsed, answerUsage, closeRecord, routingRecord } from './generation.ts';
import type { Meter } from './meter.ts';

/** Notes the attempts of a call and writes its record at the end. */
export interface Settlement {
  /** Notes that an attempt answers or has failed, and keeps its possible cost held. Sets its `record`. */
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
   * Writes the record, once for each call; it is durable when this resolves. `attempt`: the one that answered; it is charged unless it
   * is already. `finishReason`: the end of the answer if its last attempt does not say it.
   */
  settle(
    state: CallState,
    outcome: GenerationRecord['outcome'],
    attempt: Attempt | undefined,
    finishReason?: FinishReason,
  ): Promise<AnswerUsage>;
}

/** The log of answers that an operator should look at. */
export interface SettlementLog {
  warn(facts: object, message: string): void;
}

/** The end of a call. */
interface Closing {
  outcome: GenerationRecord['outcome'];
  finish_reason: FinishReason | undefined;
  /** The attempt that answered and is to be charged, if there is one. */
  answered: Attempt | undefined;
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

  /** Ends a call after a fault of the gateway, so that its money stays neither held nor uncounted. */
  function lost({ hold, call }: CallState, fault: unknown): unknown {
    void recorder.lose(hold);
    call.outcome.isSettled = true;
    return fault;
  }

  const note: Settlement['note'] = (state, attempt, end) => {
    const { status, failure } = end;
    try {
      const { provider, model, endpoint, own } = attempt.candidate;
      const wait = Math.round(attempt.waitedMs);
      const record: AttemptRecord = {
        endpoint_id: endpoint.id,
        provider_name: provider.name,
        model_permaslug: model.canonical_slug,
        status,
        latency: Math.round(clock.monotonicMs() - attempt.sentMs),
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
      if (end.is_unknown || end.used) Object.assign(record, endCost(state, attempt, end, rules));
      const moreNano = record.cost_nano - (attempt.record?.cost_nano ?? 0);
      if (moreNano !== 0) recorder.keep(state.hold, moreNano, record.is_byok);
      if (attempt.record === undefined) state.attempts = withOne(state.attempts, attempt);
      attempt.record = record;
      // An answer may still break off: it is counted when its end is known.
      if (failure !== null && failure !== ASSUMED) metrics.attempt(provider.slug, failure);
    } catch (error) {
      throw lost(state, error);
    }
  };

  const assume: Settlement['assume'] = (state, attempt) => {
    note(state, attempt, { status: null, failure: ASSUMED, is_unknown: true });
  };

  const unassume: Settlement['unassume'] = (state, attempt) => {
    const { record } = attempt;
    state.attempts = state.attempts.filter((one) => one !== attempt);
    attempt.record = undefined;
    if (record !== undefined && record.cost_nano !== 0) recorder.keep(state.hold, -record.cost_nano, record.is_byok);
  };

  const soFar: Settlement['soFar'] = (state, attempt) => {
    const { call, candidate, meter, prepared } = attempt;
    const usage = meter.progress(call.request);
    const tier = meter.service_tier ?? prepared.service_tier;
    return { usage, cost_nano: priceAttempt(usage, call.request, candidate, state, tier).cost_nano };
  };

  /** Reports an answer that cost more than was held: the provider ignores the output bound, or counts the prompt higher. */
  function reportOverrun(
    state: CallState,
    attempt: Attempt,
    usage: TokenClasses,
    grant: Grant,
    costNano: number,
  ): void {
    const { call, candidate, report } = attempt;
    const { output_tokens: bound, mode } = grant;
    const tokens = outputTokens(usage);
    // An estimate may be off by some.
    const isOver = usage.estimated !== true && tokens > bound;
    const grantedNano = heldFor(state, attempt);
    if (!isOver && costNano <= grantedNano) return;
    metrics.overrun(candidate.provider.slug);
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
    state.parts = withOne(state.parts, attempt);
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
      countAttempt(state, attempt, { counted_nano: countedNano, end_ms: clock.monotonicMs(), is_completed: true });
    } catch (error) {
      throw lost(state, error);
    }
  };

  /** Counts a charged attempt in metrics and in the statistics of its endpoint. `counted_nano`: see `priceAnswer`. */
  function countAttempt(
    state: CallState,
    attempt: Attempt,
    { counted_nano, end_ms, is_completed }: { counted_nano: number; end_ms: number; is_completed: boolean },
  ): void {
    const { call, candidate, usage, meter, grant } = attempt;
    const { failure, cost_nano } = attempt.record!;
    metrics.attempt(candidate.provider.slug, failure ?? 'answered');
    if (usage !== null && grant !== undefined)
      reportOverrun(state, attempt, usage, grant, Math.max(counted_nano, cost_nano));
    if (failure !== null) return;
    // Of several answers to one request the length of each is unknown.
    if (usage !== null && is_completed && choicesOf(call.request) === 1) usual.note(candidate, usage);
    traffic.answered(candidate, {
      is_streamed: call.request.stream === true,
      sent_ms: attempt.sentMs,
      first_token_ms: attempt.firstTokenMs,
      end_ms,
      usage,
      tool_calls: meter.calledTools?.count(meter.finish_reason),
      is_completed,
      is_error: meter.finish_reason === 'error',
    });
  }

  /** Prices the last attempt, makes the record of the ended call, and counts the call in metrics, statistics and rate limits. */
  function close(
    state: CallState,
    open: OpenRecord,
    candidate: Candidate,
    { outcome, answered, finish_reason }: Closing,
  ): GenerationRecord {
    const { call, fees, plan, hold, reservation } = state;
    const now = clock.monotonicMs();
    let countedNano = 0;
    if (answered !== undefined) {
      countedNano = priceAnswer(state, answered, rules);
      state.parts = withOne(state.parts, answered);
    }
    const { parts } = state;
    const first = parts[0];
    const usage = parts.length === 1 && fees.length === 0 ? first!.usage : allUsed(parts, fees);
    let discountNano: number | null = null;
    for (let at = 0; at < parts.length; at += 1) {
      const savedNano = parts[at]!.charge?.cache_discount_nano ?? null;
      if (savedNano !== null) discountNano = (discountNano ?? 0) + savedNano;
    }
    const latency = first?.firstTokenMs === undefined ? null : first.firstTokenMs - call.accepted_monotonic_ms;
    const closed = closeRecord(open, state, {
      meter: answered?.meter,
      usage,
      cache_discount_nano: discountNano,
      finish_reason: finish_reason ?? null,
      outcome,
      latency: latency === null ? null : Math.round(latency),
      generation_time: first === undefined ? null : Math.round(now - first.sentMs),
    });
    const routing = routingRecord({ call: state.lastSent?.call ?? call, plan, hold }, closed.model, usage);
    closed.routing = routing;
    state.usage = usage;
    state.routing = routing;
    if (answered !== undefined) {
      countAttempt(state, answered, { counted_nano: countedNano, end_ms: now, is_completed: outcome === 'completed' });
    }
    const promptTokens = usage === null ? 0 : inputTokens(usage);
    const completionTokens = usage === null ? 0 : outputTokens(usage);
    metrics.generation({
      model: closed.model,
      provider: candidate.provider.slug,
      outcome,
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      cost_usd: toUsd(closed.cost_nano),
      first_token_s: latency === null ? undefined : latency / 1000,
    });
    // Rate limits count the whole reservation if the client left before the usage is known.
    if (usage !== null) reservation?.commit(promptTokens + completionTokens, candidate.model.id);
    else if (answered === undefined && outcome === 'cancelled') reservation?.commitInFull();
    else reservation?.commit(0, undefined);
    return closed;
  }

  const settle: Settlement['settle'] = (state, outcome, attempt, finishReason) => {
    const answered = attempt?.isCharged === true ? undefined : attempt;
    const last = answered ?? state.parts.at(-1);
    const open = last === undefined ? state.record : last.opening;
    const candidate = last?.candidate ?? state.plan.attempts[0];
    if (open === undefined || candidate === undefined) {
      state.reservation?.release();
      return Promise.resolve(NO_USAGE);
    }
    let record: GenerationRecord;
    try {
      record = close(state, open, candidate, { outcome, answered, finish_reason: finishReason });
    } catch (error) {
      return Promise.reject(lost(state, error));
    }
    return recorder.outcome(record, state.hold).then(
      () => {
        noteSettled(state, record);
        return answerUsage(state, candidate);
      },
      (error: unknown) => {
        noteSettled(state, record);
        throw error;
      },
    );
  };

  function noteSettled({ call: { outcome } }: CallState, record: GenerationRecord): void {
    outcome.isSettled = true;
    outcome.record ??= record;
  }

  return { note, assume, unassume, soFar, breakOff, endStep, settle };
}
