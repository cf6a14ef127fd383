import { GatewayError } from '../../errors.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import { servedId } from '../../routing/candidate.ts';
import { type Candidate, healthId, type Plan } from '../../routing/plan.ts';
import { withOne } from '../../schemas/append.ts';
import type { Call } from '../call.ts';
import type { Admission, Admitted, Prepared, SpendingRules } from '../money/admission.ts';
import type { UsualOutput } from '../money/attempt-cost.ts';
import { openRecord } from '../money/generation.ts';
import type { Settlement } from '../money/settlement.ts';
import type { Traffic } from '../observe/traffic.ts';
import { type Account, Attempt, type CallState } from '../state.ts';
import type { LogDecoderFault } from './failure.ts';
import { fallsOver, isOfEndpoint } from './failure.ts';
import { createHedges, Final, type HedgePlan, type HedgesOptions } from './hedge.ts';
import { abortStopsBilling, CallCancelled, cancellationFailure } from './upstream-call.ts';
import type { Ended, Reached, Work } from './work.ts';

/** A stream without a first token counts against its endpoint after this multiple of its 99th percentile, and at least this time. */
const SILENCE_FACTOR = 4;
const SILENCE_MS_MIN = 10_000;

/** Tries endpoints for one call, one after another: money, journal, send. */
export interface Attempts {
  /** Tries until an endpoint answers, and notes every attempt. Nothing is settled. Rejects only with a fault that lost the call. */
  tryEach<P extends Prepared, T, M extends Account>(
    state: CallState,
    candidates: readonly Candidate[],
    work: Work<P, T, M>,
  ): Promise<Reached<P, T, M> | Ended>;
  /** The endpoint answered to the end, or until the client left. Called by the reader of an answer if `Work.mayBreakOff`. */
  reportSuccess(attempt: Attempt): void;
  /** Counts a failure against the endpoint if it is the endpoint's fault. */
  reportFailure(attempt: Attempt, error: UpstreamError): void;
}

/**
 * Whether the provider may have answered and billed a failed attempt: it broke off or timed out without a status. A refused
 * connection, any status, also one inside a stream, and an answer that ended empty cost nothing.
 */
function mayHaveAnswered(error: UpstreamError): boolean {
  if (error.status !== null || error.never_sent || error.has_ended) return false;
  return error.failure === 'unavailable' || error.failure === 'timeout' || error.failure === 'no_tool_call';
}

/** Whether the provider may continue a stream after this error and bill all of it, because closing the connection does not stop it. */
export function mayGoOn(error: UpstreamError | CallCancelled, candidate: Candidate, call: Call): boolean {
  if (abortStopsBilling(candidate, call)) return false;
  if (error instanceof CallCancelled) return error.may_be_billed;
  // A stream that the provider ended or reported as failed does not continue. An unreadable one may.
  return !error.has_ended && (error.status === null || error.status < 400);
}

/**
 * The pipeline step that excludes an endpoint after a refusal before the send, if other endpoints may serve the call: another wire may
 * carry the request, an own credential or a cheaper endpoint may be affordable, another model may have a different rate limit.
 * Undefined if the refusal ends the call.
 */
export function stepPassed(error: unknown, candidate: Candidate, { attempts }: Plan): string | undefined {
  if (!(error instanceof GatewayError)) return undefined;
  if (error.status === 400) return 'Encode';
  const later = attempts.slice(attempts.indexOf(candidate) + 1);
  if (error.status === 429) {
    const isOther = ({ model, own }: Candidate) => model !== candidate.model || !own !== !candidate.own;
    return later.some(isOther) ? 'Rate Limit' : undefined;
  }
  if (error.status !== 402) return undefined;
  const mayServe = later.some((other) => other.own !== candidate.own || asksLess(other, candidate));
  return mayServe ? 'Admit' : undefined;
}

function asksLess({ endpoint: { pricing: one } }: Candidate, { endpoint: { pricing: other } }: Candidate): boolean {
  const prices = ['prompt', 'completion', 'audio_second'] as const;
  return prices.some((name) => (one[name] ?? 0) < (other[name] ?? 0));
}

/** Whether an endpoint rejected the reasoning state that the conversation carries: it may answer without it. */
function rejectsState(error: unknown): boolean {
  return error instanceof UpstreamError && error.failure === 'state_rejected';
}

export function createAttempts(
  options: {
    traffic: Traffic;
    rules: SpendingRules;
    usual: UsualOutput;
    logDecoderFault: LogDecoderFault;
  } & HedgesOptions,
  admission: Pick<Admission, 'admit' | 'admitBeside'>,
  settlement: Pick<Settlement, 'note' | 'assume' | 'unassume'>,
): Attempts {
  const { clock, health, recorder, traffic, logDecoderFault, routing, usual, rules } = options;
  const { admit } = admission;
  const { note } = settlement;

  /** Takes over the terms of an admitted attempt and makes it durable. */
  function open<P extends Prepared>(
    state: CallState,
    attempt: Attempt<P>,
    { hold, grant, prepared }: Admitted<P>,
  ): Promise<void> {
    const { call, candidate } = attempt;
    attempt.prepared = prepared;
    attempt.grant = grant;
    attempt.report = prepared.report;
    attempt.number = state.attempts.length + state.fees.length + 1;
    attempt.opening = openRecord(call, candidate, state);
    const facts = { attempt: attempt.number, endpoint: candidate.endpoint.id, record: attempt.opening, hold };
    if (grant !== undefined) return recorder.attempt({ id: call.generation_id, ...facts });
    const { outputTokens, least } = usual.presume(call, candidate, prepared, rules);
    attempt.presumedOutput = outputTokens;
    return recorder.attempt({ id: call.generation_id, ...facts, least });
  }

  const hedges = createHedges(options, admission, settlement, { open, failed });

  async function tryEach<P extends Prepared, T, M extends Account>(
    state: CallState,
    candidates: readonly Candidate[],
    work: Work<P, T, M>,
  ): Promise<Reached<P, T, M> | Ended> {
    state.order = candidates;
    state.plannedTurns = candidates.length;
    /** The last refusal before a send after which others could still be tried. */
    let refused: GatewayError | undefined;
    for (state.turn = 0; state.turn < state.order.length; state.turn += 1) {
      const candidate = state.order[state.turn]!;
      const turn = health.begin(healthId(candidate), clock.nowMs());
      // Another call is testing whether the endpoint has recovered. Until its result, the other endpoints are tried first.
      if (turn === 'busy' && state.putOff()) continue;
      // Twice at most: the second time without the reasoning state that the endpoint rejected.
      for (let stripState = false; ; stripState = true) {
        const attempt = new Attempt<P, M>(work.call, candidate, state);
        state.current = attempt;
        state.awaited = attempt;
        let reached: Reached<P, T, M>;
        try {
          reached = await send(state, attempt, work, stripState, turn === 'open' && !stripState);
        } catch (error) {
          const isAgain = !stripState && state.awaited === attempt && rejectsState(error);
          // If the failure says nothing about the endpoint, the next call may try it.
          if (turn === 'trial' && !isAgain) health.left(healthId(candidate));
          const ended = attempt.isSent ? afterSend(state, error) : beforeSend(state, candidate, error);
          if (ended !== undefined) return ended;
          if (!attempt.isSent) refused = error as GatewayError;
          // The next endpoint has its turn.
          if (!isAgain) break;
          continue;
        }
        reached.attempt.firstTokenMs = clock.monotonicMs();
        note(state, reached.attempt, { status: 200, failure: null });
        return reached;
      }
    }
    // Failures of providers come before refusals of the others, unless money was short for those.
    const isRefused = state.failed.length === 0 || refused?.status === 402;
    return refused && isRefused ? { ended: 'unsent', error: refused } : { ended: 'failed', error: undefined };
  }

  /**
   * Encodes for an endpoint, holds what the attempt may cost, makes it durable, and sends it: to a second endpoint as well, if the
   * call may be hedged and the first one is late. The hold stays for the next attempt until the call is settled.
   */
  async function send<P extends Prepared, T, M extends Account>(
    state: CallState,
    attempt: Attempt<P, M>,
    work: Work<P, T, M>,
    stripState: boolean,
    mayHedge: boolean,
  ): Promise<Reached<P, T, M>> {
    const begunMs = clock.monotonicMs();
    const entering = state.reservation?.acquire(attempt.candidate);
    if (entering !== undefined) await entering;
    const waiting = work.needsNothing === true ? undefined : work.ready?.(attempt.candidate);
    if (waiting !== undefined) await waiting;
    const admitting = prepare(state, attempt, work, stripState);
    const admitted = admitting instanceof Promise ? await admitting : admitting;
    state.hold = admitted.hold;
    requireClient(attempt.call);
    await open(state, attempt, admitted);
    noteSend(state, attempt, begunMs);
    requireClient(attempt.call);
    const silence = watchSilence(attempt);
    try {
      const hedge = mayHedge ? hedgeOf(state, attempt, work) : undefined;
      const reached =
        hedge === undefined
          ? { value: await work.send(attempt), attempt }
          : await hedges.send(state, attempt, work, hedge);
      noteAnswer(reached.attempt, work.mayBreakOff === true);
      return reached;
    } finally {
      if (silence !== undefined) clearTimeout(silence);
    }
  }

  /** Encodes an attempt, and holds what it may cost if a budget counts it. */
  function prepare<P extends Prepared, T, M extends Account>(
    { hold }: CallState,
    { call, candidate }: Attempt<P, M>,
    work: Work<P, T, M>,
    stripState: boolean,
  ): Admitted<P> | Promise<Admitted<P>> {
    if (call.principal.budgets.length > 0) {
      return admit({
        call,
        hold,
        is_byok: candidate.own !== undefined,
        prepare: (spend) => work.prepare(candidate, stripState, spend),
        measure: work.measure,
      });
    }
    const preparing = work.prepare(candidate, stripState);
    return preparing instanceof Promise
      ? preparing.then((prepared) => ({ prepared, hold, grant: undefined }))
      : { prepared: preparing, hold, grant: undefined };
  }

  /** Throws if the call was cancelled. */
  function requireClient({ cancellation }: Call): void {
    if (cancellation.cancelled) throw new CallCancelled({ may_be_billed: false });
  }

  /** Notes that a durable attempt is sent now. */
  function noteSend(state: CallState, attempt: Attempt, begunMs: number): void {
    attempt.sentMs = clock.monotonicMs();
    attempt.waitedMs = attempt.sentMs - begunMs;
    attempt.isSent = true;
    state.lastSent = attempt;
    state.record = attempt.opening;
    attempt.call.store_wait?.renew();
  }

  /** When the attempt gets a hedge; undefined if it gets none. */
  function hedgeOf<P extends Prepared, T, M extends Account>(
    state: CallState,
    attempt: Attempt<P, M>,
    work: Work<P, T, M>,
  ): HedgePlan | undefined {
    const isWanted = attempt.prepared.holds_back !== true && (attempt.call.request.provider?.hedge ?? routing().hedge);
    return isWanted ? hedges.plan(state, attempt, work) : undefined;
  }

  /** Notes that an endpoint answers. */
  function noteAnswer({ candidate, sentMs }: Attempt, mayBreakOff: boolean): void {
    const nowMs = clock.nowMs();
    const wallSentMs = nowMs - (clock.monotonicMs() - sentMs);
    const id = healthId(candidate);
    health.answered(id, wallSentMs);
    if (!mayBreakOff) health.succeeded(id, nowMs, wallSentMs);
  }

  /** After a refusal before the send: the end of the call, or undefined to try the next endpoint. */
  function beforeSend(state: CallState, candidate: Candidate, error: unknown): Ended | undefined {
    const step = stepPassed(error, candidate, state.plan);
    if (!(error instanceof GatewayError) || step === undefined) return { ended: 'unsent', error };
    candidate.excluded = { step, reason: error.message };
    return undefined;
  }

  /** After a sent attempt that did not answer: the end of the call, or undefined to try the next endpoint. */
  function afterSend(state: CallState, error: unknown): Ended | undefined {
    const ended = error instanceof Final ? error.ended : failed(state, state.awaited!, error);
    return ended?.ended === 'failed' && state.leaveModel() ? undefined : ended;
  }

  /** Notes a sent attempt that did not answer. Returns the end of the call, or undefined if another attempt may follow. */
  function failed(state: CallState, attempt: Attempt, error: unknown): Ended | undefined {
    const { used } = attempt;
    if (error instanceof CallCancelled) {
      note(state, attempt, {
        status: null,
        failure: cancellationFailure(state.call),
        is_unknown: error.may_be_billed,
        used,
      });
      return { ended: 'cancelled', error };
    }
    if (!(error instanceof UpstreamError)) {
      note(state, attempt, { status: null, failure: 'internal', is_unknown: true });
      return { ended: 'internal', error };
    }
    const { status, failure } = error;
    note(state, attempt, { status, failure, is_unknown: mayHaveAnswered(error), used });
    state.failed = withOne(state.failed, { provider: attempt.candidate.provider, own: attempt.candidate.own, error });
    if (failure !== 'state_rejected') reportFailure(attempt, error);
    return fallsOver(failure) ? undefined : { ended: 'failed', error };
  }

  /**
   * An endpoint that is silent for much longer than its usual latency gets no further calls for a while, unless it answers others. The
   * call itself continues to wait. Called at the send; the caller clears the timer at the answer. Undefined for an answer that is not
   * streamed, or held back.
   */
  function watchSilence({ candidate, call, prepared }: Attempt): NodeJS.Timeout | undefined {
    if (call.request.stream !== true || prepared.holds_back === true) return undefined;
    const sentMs = clock.nowMs();
    const { latency_ms, is_latency_thin } = health.performance(servedId(candidate), sentMs);
    if (latency_ms === null || is_latency_thin) return undefined;
    return setTimeout(
      () => health.silent(healthId(candidate), clock.nowMs(), sentMs),
      Math.max(SILENCE_MS_MIN, latency_ms.p99 * SILENCE_FACTOR),
    );
  }

  function reportSuccess({ candidate, sentMs }: Attempt): void {
    const nowMs = clock.nowMs();
    health.succeeded(healthId(candidate), nowMs, nowMs - (clock.monotonicMs() - sentMs));
  }

  function reportFailure(attempt: Attempt, error: UpstreamError): void {
    const { candidate, call, sentMs } = attempt;
    logDecoderFault(error, candidate);
    if (!isOfEndpoint(error, call.request)) return;
    const nowMs = clock.nowMs();
    const wallSentMs = nowMs - (clock.monotonicMs() - sentMs);
    health.failed(healthId(candidate), error.failure, error.retry_after_ms, nowMs, wallSentMs);
    traffic.failed(candidate, error);
  }

  return { tryEach, reportSuccess, reportFailure };
}
