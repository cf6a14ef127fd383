import { GatewayError } from '../../errors.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import type { GenerationRecord } from '../../ledger/records.ts';
import { limits } from '../../limits.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import { servedId } from '../../routing/candidate.ts';
import { type Candidate, healthId, type Plan } from '../../routing/plan.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import type { Call, Cancellation } from '../call.ts';
import type { CallState } from '../call-state.ts';
import type { Admission, Admitted, Measure, Prepared, SpendingRules } from '../money/admission.ts';
import { openRecord } from '../money/generation.ts';
import { isMetered, presumedCost, presumedOutput, type UsualOutput } from '../money/presumed-cost.ts';
import type { Settlement } from '../money/settlement.ts';
import type { Traffic } from '../observe/traffic.ts';
import { TryOrder } from '../plan/try-order.ts';
import type { SpendBound } from '../prepare/fit-request.ts';
import type { LogDecoderFault } from './decoder-faults.ts';
import { abortStopsBilling, CallCancelled, goneAs } from './exchange.ts';
import { fallsOver, isOfEndpoint } from './failure.ts';
import { createHedges, Final, type HedgesOptions } from './hedged-send.ts';

/** One kind of call, as it is taken through the steps. */
export interface Work<P extends Prepared, T> {
  /** Gets ready what encoding for this endpoint needs. Throws `GatewayError` as `prepare` does, or `CallCancelled`. `is_beside`: for a second attempt, which is not sent where there is something to wait for. Absent: nothing is needed. */
  ready?(candidate: Candidate, is_beside?: boolean): Promise<void> | undefined;
  /** Encodes for one endpoint; a promise where that takes long. Throws `GatewayError` 400 for what its wire cannot carry: another's may. */
  prepare(candidate: Candidate, strip_state: boolean, spend?: SpendBound): P | Promise<P>;
  /** What it may cost. */
  measure: Measure<P>;
  /** Sends what is durable now, and waits until it is sure that this endpoint answers. Throws `UpstreamError` or `CallCancelled`. */
  send(prepared: P, cancellation?: Cancellation): Promise<T>;
  /** What `send` resolves with is the beginning of an answer, which may still break off. */
  mayBreakOff?: true;
  /** Its answer is held back on purpose, so that waiting for it says nothing of the endpoint: no second one is asked meanwhile. Absent: it is not. */
  holdsBack?(prepared: P): boolean;
  /** Closes an answer that is not wanted after all, and says what it has used. Absent: only one at a time may be sent. */
  discard?(value: T, prepared: P): TokenClasses | null;
  /** What the last attempt at an endpoint was answered all the same, though it failed, and is billed for. Absent: nothing ever is. */
  used?(candidate: Candidate): TokenClasses | null;
}

/** An endpoint that answered. */
export interface Reached<P, T> {
  value: T;
  prepared: P;
  candidate: Candidate;
}

/**
 * Why no endpoint answered. `unsent`: something stood against the next attempt before its send; `failed`: every attempt did;
 * `gone`: the client left; `internal`: a fault of ours.
 */
export interface Ended {
  ended: 'unsent' | 'failed' | 'gone' | 'internal';
  error: unknown;
}

/** Tries endpoints for one call, one after another: money, journal, send. */
export interface Attempts {
  /** Until one answers. What failed is noted, and nothing is settled. Never rejects. */
  tryEach<P extends Prepared, T>(
    session: CallState,
    candidates: readonly Candidate[],
    work: Work<P, T>,
  ): Promise<Reached<P, T> | Ended>;
  /** An endpoint answered to the end, or as long as it was listened to: told by whoever reads what `Work.mayBreakOff`. */
  credit(session: CallState, candidate: Candidate): void;
  /** An endpoint failed, if it was the endpoint's fault. */
  blame(session: CallState, candidate: Candidate, error: UpstreamError): void;
}

/**
 * Whether a failure leaves open if the provider answered, and bills it: it broke off or took too long without a status. A
 * refused connection, every status, also one told inside a stream, and an answer that was ended with nothing in it cost nothing.
 */
function mayHaveAnswered(error: UpstreamError): boolean {
  if (error.status !== null || error.never_sent || error.has_ended) return false;
  return error.failure === 'unavailable' || error.failure === 'timeout' || error.failure === 'no_tool_call';
}

/** Whether the provider may go on with a stream that ended like this for us, and bill it whole: closing it does not end that there. */
export function mayGoOn(error: UpstreamError | CallCancelled, candidate: Candidate, call: Call): boolean {
  if (abortStopsBilling(candidate, call)) return false;
  if (error instanceof CallCancelled) return error.may_be_billed;
  // What the provider itself ended, or says has failed, does not go on; what we cannot read may.
  return !error.has_ended && (error.status === null || error.status < 400);
}

/**
 * Where a refusal before the send leaves other attempts to try: another endpoint's wire may carry the request, and where
 * money is short a credential of the organization's own may serve, or an endpoint that asks for less; a rate limit is one
 * model's.
 */
export function stepPassed(error: unknown, candidate: Candidate, { attempts }: Plan): string | undefined {
  if (!(error instanceof GatewayError)) return undefined;
  if (error.status === 400) return 'Encode';
  const later = attempts.slice(attempts.indexOf(candidate) + 1);
  if (error.status === 429) {
    const is_other = ({ model, own }: Candidate) => model !== candidate.model || !own !== !candidate.own;
    return later.some(is_other) ? 'Rate Limit' : undefined;
  }
  if (error.status !== 402) return undefined;
  const may_serve = later.some((other) => other.own !== candidate.own || asksLess(other, candidate));
  return may_serve ? 'Admit' : undefined;
}

function asksLess({ endpoint: { pricing: one } }: Candidate, { endpoint: { pricing: other } }: Candidate): boolean {
  const prices = ['prompt', 'completion', 'audio_second'] as const;
  return prices.some((name) => (one[name] ?? 0) < (other[name] ?? 0));
}

/** Which attempt of its call the next one is, work that was paid for beside them counted in: its name at the provider, and in the journal. */
export function attemptNumber({ attempts, fees }: Pick<CallState, 'attempts' | 'fees'>): number {
  return attempts.length + fees.length + 1;
}

/** What the journal must know of a call when the next of its work begins. */
export function journalProgress({ attempts, fees }: CallState): Pick<GenerationRecord, 'attempts' | 'fees'> {
  return { attempts, ...(fees.length === 0 ? {} : { fees }) };
}

/** Whether an endpoint would not have the state that the conversation carries: it may answer without. */
function refusesState(error: unknown): boolean {
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
  const { clock, health, recorder, traffic, rules, usual, logDecoderFault } = options;
  const { admit } = admission;
  const { note } = settlement;

  /** What the journal keeps of the session's next attempt before it is sent. */
  function openAttempt(
    session: CallState,
    candidate: Candidate,
    { hold, grant, prepared }: Admitted<Prepared>,
  ): Parameters<Recorder['attempt']>[0] {
    const { call } = session;
    const record = openRecord(call, candidate, session);
    const id = call.generation_id;
    const opened = { id, attempt: attemptNumber(session), endpoint: candidate.endpoint.id, record, hold };
    session.presumed_output = 0;
    if (grant !== undefined) return opened;
    if (!isMetered(call, rules)) session.presumed_output = presumedOutput(call, candidate, prepared, usual);
    return { ...opened, least: presumedCost(call, candidate, prepared.service_tier, session.presumed_output) };
  }

  const hedges = createHedges(options, admission, settlement, { openAttempt, failed });

  async function tryEach<P extends Prepared, T>(
    session: CallState,
    candidates: readonly Candidate[],
    work: Work<P, T>,
  ): Promise<Reached<P, T> | Ended> {
    const order = new TryOrder(session, candidates);
    while (order.next()) {
      const { candidate } = order;
      const turn = health.begin(healthId(candidate), clock.now_ms());
      // Another call is just trying whether it is well again: until that is known, the others go before it.
      if (turn === 'busy' && order.putOff()) continue;
      // Twice at most: a second time without the state that it would not have.
      for (let strip_state = false; ; strip_state = true) {
        try {
          const may_hedge = turn === 'open' && !strip_state;
          return await attempt(session, order, work, strip_state, may_hedge);
        } catch (error) {
          const is_again = !strip_state && order.awaited === candidate && refusesState(error);
          // Where it tells nothing of the endpoint, the next call may try it.
          if (turn === 'trial' && !is_again) health.left(healthId(candidate));
          const ended = session.is_sent ? afterSend(session, order, work, error) : beforeSend(session, order, error);
          if (ended !== undefined) return ended;
          if (!is_again) break;
        }
      }
    }
    // What providers said is told rather than why others were not asked, unless money was short for them.
    const { refused } = order;
    const is_refused = session.failed.length === 0 || refused?.status === 402;
    return refused && is_refused ? { ended: 'unsent', error: refused } : { ended: 'failed', error: undefined };
  }

  /**
   * Encodes for an endpoint, sets aside what the attempt may cost, makes it durable, and sends it: to a second one as well, where
   * that may be and the first is late. What it set aside is the session's, for the next attempt too, until the call is settled.
   */
  async function attempt<P extends Prepared, T>(
    session: CallState,
    order: TryOrder,
    work: Work<P, T>,
    strip_state: boolean,
    may_hedge: boolean,
  ): Promise<Reached<P, T>> {
    const { call } = session;
    const { candidate } = order;
    session.is_sent = false;
    const begun_ms = clock.monotonic_ms();
    const entering = session.reservation.acquire(candidate);
    if (entering !== undefined) await entering;
    const waiting = work.ready?.(candidate);
    if (waiting !== undefined) await waiting;
    const admitting = admit({
      call,
      hold: session.hold,
      is_byok: candidate.own !== undefined,
      prepare: (spend) => work.prepare(candidate, strip_state, spend),
      measure: work.measure,
    });
    const admitted = admitting instanceof Promise ? await admitting : admitting;
    const { prepared, hold, grant } = admitted;
    session.hold = hold;
    session.grant = grant;
    if (call.cancellation.cancelled) throw new CallCancelled({ may_be_billed: false });
    const opened = openAttempt(session, candidate, admitted);
    await recorder.attempt(opened);
    session.record = opened.record;
    session.report = prepared.report;
    session.service_tier = prepared.service_tier;
    session.granted_nano = undefined;
    session.assumed_at = undefined;
    session.is_hedge = false;
    session.sent_ms = clock.monotonic_ms();
    session.waited_ms = session.sent_ms - begun_ms;
    session.is_sent = true;
    call.store_wait?.renew();
    if (call.cancellation.cancelled) throw new CallCancelled({ may_be_billed: false });
    const holds_back = work.holdsBack?.(prepared) === true;
    const silence = call.request.stream === true && !holds_back ? listen(session, candidate) : undefined;
    try {
      const hedge = may_hedge && !holds_back ? hedges.plan(session, order, work) : undefined;
      const reached =
        hedge === undefined
          ? { value: await work.send(prepared), prepared, candidate }
          : await hedges.send(session, { candidate, prepared }, work, hedge, order);
      const sent_ms = sentAt(session);
      const answered = healthId(reached.candidate);
      health.heard(answered, sent_ms);
      if (work.mayBreakOff !== true) health.succeeded(answered, clock.now_ms(), sent_ms);
      return reached;
    } finally {
      if (silence !== undefined) clearTimeout(silence);
    }
  }

  /** What follows an attempt that something stood against before its send: the end of the call, or the next one's turn. */
  function beforeSend(session: CallState, order: TryOrder, error: unknown): Ended | undefined {
    const { candidate } = order;
    const step = stepPassed(error, candidate, session.plan);
    if (!(error instanceof GatewayError) || step === undefined) return { ended: 'unsent', error };
    candidate.excluded = { step, reason: error.message };
    order.refused = error;
    return undefined;
  }

  /** What follows an attempt that was sent and did not answer: the end of the call, or another attempt. */
  function afterSend<P extends Prepared, T>(
    session: CallState,
    order: TryOrder,
    work: Work<P, T>,
    error: unknown,
  ): Ended | undefined {
    const ended = error instanceof Final ? error.ended : failed(session, order.awaited, work, error);
    return ended?.ended === 'failed' && order.leaveModel() ? undefined : ended;
  }

  /** Notes an attempt that was sent and did not answer; what comes back ends the call. */
  function failed<P extends Prepared, T>(
    session: CallState,
    candidate: Candidate,
    work: Work<P, T>,
    error: unknown,
  ): Ended | undefined {
    if (error instanceof CallCancelled) {
      const end = { status: null, failure: goneAs(session.call), is_unknown: error.may_be_billed };
      note(session, candidate, { ...end, used: work.used?.(candidate) });
      return { ended: 'gone', error };
    }
    if (!(error instanceof UpstreamError)) {
      note(session, candidate, { status: null, failure: 'internal', is_unknown: true });
      return { ended: 'internal', error };
    }
    const { status, failure } = error;
    note(session, candidate, { status, failure, is_unknown: mayHaveAnswered(error), used: work.used?.(candidate) });
    session.failed.push({ provider: candidate.provider, own: candidate.own, error });
    if (failure !== 'state_rejected') blame(session, candidate, error);
    return fallsOver(failure) ? undefined : { ended: 'failed', error };
  }

  /**
   * An endpoint that is silent for much longer than it ever was gets no further calls for a while, unless it answers others. The
   * call goes on waiting: its own time limit is for those that think long. What comes back is cleared when there is an answer, or none any more.
   */
  function listen(session: CallState, candidate: Candidate): NodeJS.Timeout | undefined {
    const { latency_ms, is_latency_thin } = health.performance(servedId(candidate), clock.now_ms());
    if (latency_ms === null || is_latency_thin) return undefined;
    const sent_ms = sentAt(session);
    return setTimeout(
      () => health.silent(healthId(candidate), clock.now_ms(), sent_ms),
      Math.max(limits.silence_ms_min, latency_ms.p99 * limits.silence_factor),
    );
  }

  /** When the last attempt was sent, by the wall clock of now. */
  function sentAt({ sent_ms }: CallState): number {
    return clock.now_ms() - (clock.monotonic_ms() - sent_ms);
  }

  function credit(session: CallState, candidate: Candidate): void {
    health.succeeded(healthId(candidate), clock.now_ms(), sentAt(session));
  }

  function blame(session: CallState, candidate: Candidate, error: UpstreamError): void {
    logDecoderFault(error, candidate);
    if (!isOfEndpoint(error, session.call.request)) return;
    health.failed(healthId(candidate), error.failure, error.retry_after_ms, clock.now_ms(), sentAt(session));
    traffic.failed(candidate, error);
  }

  return { tryEach, blame, credit };
}
