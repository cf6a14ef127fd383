import { GatewayError } from '../errors.ts';
import type { Recorder } from '../ledger/recorder.ts';
import { limits } from '../limits.ts';
import { UpstreamError } from '../providers/dialect.ts';
import { wasNeverSent } from '../providers/upstream.ts';
import type { Health } from '../routing/health.ts';
import { type Candidate, healthId, type Plan } from '../routing/plan.ts';
import type { TokenClasses } from '../schemas/inner.ts';
import type { Admission, Admitted, Measure, Prepared } from './admission.ts';
import type { Cancellation, Clock } from './call.ts';
import { abortStopsBilling, ClientGone } from './exchange.ts';
import { fallsOver, isOfEndpoint } from './failure.ts';
import type { SpendBound } from './fit-request.ts';
import { openRecord } from './generation.ts';
import { createHedgeShare, first, lateAfter, type Runner, run, within } from './hedge.ts';
import type { Session, Settlement } from './settlement.ts';
import type { Traffic } from './traffic.ts';

/** One kind of call, as it is taken through the steps. */
export interface Work<P extends Prepared, T> {
  /** Gets ready what encoding for this endpoint needs. Throws `GatewayError` as `prepare` does, or `ClientGone`. Absent: nothing is needed. */
  ready?(candidate: Candidate): Promise<void> | undefined;
  /** Encodes for one endpoint. Throws `GatewayError` 400 for what its wire cannot carry: another's may. */
  prepare(candidate: Candidate, strip_state: boolean, spend?: SpendBound): P;
  /** What it may cost. */
  measure: Measure<P>;
  /** Sends what is durable now, and waits until it is sure that this endpoint answers. Throws `UpstreamError` or `ClientGone`. */
  send(prepared: P, cancellation?: Cancellation): Promise<T>;
  /** What `send` resolves with is the beginning of an answer, which may still break off. */
  goes_on?: true;
  /** Closes an answer that is not wanted after all, and says what it has used. Absent: only one at a time may be sent. */
  discard?(value: T, prepared: P): TokenClasses | null;
  /** What of an attempt that failed was answered all the same, and is billed. Absent: nothing ever is. */
  used?(): TokenClasses | null;
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
    session: Session,
    candidates: readonly Candidate[],
    work: Work<P, T>,
  ): Promise<Reached<P, T> | Ended>;
  /** An endpoint answered to the end, or as long as it was listened to: told by whoever reads what `Work.goes_on`. */
  credit(session: Session, candidate: Candidate): void;
  /** An endpoint failed, if it was the endpoint's fault. */
  blame(session: Session, candidate: Candidate, error: UpstreamError): void;
}

/**
 * Whether a failure leaves open if the provider answered, and bills it: it broke off or took too long without a status. A
 * refused connection and every status, also one told inside a stream, cost nothing.
 */
function mayHaveAnswered(error: UpstreamError): boolean {
  if (error.status !== null || wasNeverSent(error)) return false;
  return error.failure === 'unavailable' || error.failure === 'timeout';
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

/** Whether the client gave the order: nothing that happens meanwhile changes it. */
function isOrdered({ call }: Session): boolean {
  return (call.request.provider?.order?.length ?? 0) > 0;
}

/** What a session knows of an attempt that was sent. */
type UnderWay = Pick<
  Session,
  'record' | 'grant' | 'report' | 'service_tier' | 'sent_ms' | 'waited_ms' | 'granted_nano' | 'assumed_at' | 'is_hedge'
>;

function underWay(session: Session): UnderWay {
  const { record, grant, report, service_tier, sent_ms, waited_ms, granted_nano, assumed_at, is_hedge } = session;
  return { record, grant, report, service_tier, sent_ms, waited_ms, granted_nano, assumed_at, is_hedge };
}

/** One of two attempts that are under way at once. */
interface Beside<P, T> {
  runner: Runner<T>;
  candidate: Candidate;
  prepared: P;
  under_way: UnderWay;
}

/** Thrown where two attempts have ended in a way that ends the call, and are noted. */
class Final extends Error {
  readonly ended: Ended;

  constructor(ended: Ended) {
    super();
    this.ended = ended;
  }
}

function orThrow<T>(sent: { value: T } | { error: unknown }): { value: T } {
  if ('error' in sent) throw sent.error;
  return sent;
}

/** What `createAttempts` works with. */
interface AttemptsOptions {
  clock: Clock;
  health: Health;
  recorder: Recorder;
  traffic: Traffic;
  /** Whether calls that do not say so are hedged, and which share of them at most. */
  hedging(): { hedge: boolean; hedge_share_max: number };
}

export function createAttempts(
  { clock, health, recorder, traffic, hedging }: AttemptsOptions,
  { admit, admitBeside }: Pick<Admission, 'admit' | 'admitBeside'>,
  { note, assume, unassume }: Pick<Settlement, 'note' | 'assume' | 'unassume'>,
): Attempts {
  const share = createHedgeShare(() => hedging().hedge_share_max);

  /** Encodes for an endpoint, sets aside what the attempt may cost, and makes it durable. */
  async function begin<P extends Prepared, T>(
    session: Session,
    candidate: Candidate,
    strip_state: boolean,
    work: Work<P, T>,
  ): Promise<P> {
    const { call } = session;
    const begun_ms = clock.monotonic_ms();
    const entering = session.passage.enter(candidate);
    if (entering !== undefined) await entering;
    const waiting = work.ready?.(candidate);
    if (waiting !== undefined) await waiting;
    const admitted = await admit({
      call,
      hold: session.hold,
      is_byok: candidate.own !== undefined,
      prepare: (spend) => work.prepare(candidate, strip_state, spend),
      measure: work.measure,
    });
    session.hold = admitted.hold;
    session.grant = admitted.grant;
    if (call.cancellation.cancelled) throw new ClientGone({ may_be_billed: false });
    Object.assign(session, await makeDurable(session, candidate, admitted), {
      waited_ms: clock.monotonic_ms() - begun_ms,
      is_sent: true,
    });
    if (call.cancellation.cancelled) throw new ClientGone({ may_be_billed: false });
    return admitted.prepared;
  }

  /** Writes an attempt to the journal; what comes back is what the session knows of it from now on. */
  async function makeDurable<P extends Prepared>(
    session: Session,
    candidate: Candidate,
    { prepared, hold, grant }: Admitted<P>,
  ): Promise<UnderWay> {
    const record = openRecord(session.call, candidate);
    await recorder.attempt({
      id: session.call.generation_id,
      attempt: session.attempts.length + 1,
      endpoint: candidate.endpoint.id,
      record: { ...record, attempts: session.attempts },
      hold,
    });
    return {
      record,
      grant,
      report: prepared.report,
      service_tier: prepared.service_tier,
      sent_ms: clock.monotonic_ms(),
      waited_ms: 0,
      granted_nano: undefined,
      assumed_at: undefined,
      is_hedge: false,
    };
  }

  async function tryEach<P extends Prepared, T>(
    session: Session,
    candidates: readonly Candidate[],
    work: Work<P, T>,
  ): Promise<Reached<P, T> | Ended> {
    let refused: GatewayError | undefined;
    let order = candidates;
    for (let at = 0; at < order.length; at += 1) {
      const candidate = order[at] as Candidate;
      const turn = health.begin(healthId(candidate), clock.now_ms());
      // Another call is just trying whether it is well again: until that is known, the others go before it.
      if (turn === 'busy' && at < candidates.length && at + 1 < order.length && !isOrdered(session)) {
        order = [...order, candidate];
        continue;
      }
      for (let strip_state = false; ; strip_state = true) {
        session.is_sent = false;
        /** Who is waited for: a hedge, perhaps, in the end. */
        let last = candidate;
        try {
          const prepared = await begin(session, candidate, strip_state, work);
          const hedge =
            turn === 'open' && !strip_state ? hedgeOf(session, candidate, order.slice(at + 1), work) : undefined;
          const reached =
            hedge === undefined
              ? { value: await work.send(prepared), prepared, candidate }
              : await sendHedged(session, { candidate, prepared }, work, hedge, (other) => {
                  last = other;
                  order = order.filter((one, nth) => nth <= at || one !== other);
                });
          if (work.goes_on !== true) credit(session, reached.candidate);
          return reached;
        } catch (error) {
          if (error instanceof Final) return error.ended;
          const is_again =
            last === candidate && error instanceof UpstreamError && error.failure === 'state_rejected' && !strip_state;
          // Where it tells nothing of the endpoint, the next call may try it.
          if (turn === 'trial' && !is_again) health.left(healthId(candidate));
          if (!session.is_sent) {
            const step = stepPassed(error, candidate, session.plan);
            if (!(error instanceof GatewayError) || step === undefined) return { ended: 'unsent', error };
            candidate.excluded = { step, reason: error.message };
            refused = error;
            break;
          }
          const ended = failed(session, last, work, error);
          if (ended !== undefined) return ended;
          if (is_again) continue;
          break;
        }
      }
    }
    const is_refused = session.failed.length === 0 || refused?.status === 402;
    return refused && is_refused ? { ended: 'unsent', error: refused } : { ended: 'failed', error: undefined };
  }

  /** Notes an attempt that was sent and did not answer; what comes back ends the call. */
  function failed<P extends Prepared, T>(
    session: Session,
    candidate: Candidate,
    work: Work<P, T>,
    error: unknown,
  ): Ended | undefined {
    if (error instanceof ClientGone) {
      const end = { status: null, failure: 'client_gone', is_unknown: error.may_be_billed };
      note(session, candidate, { ...end, used: work.used?.() });
      return { ended: 'gone', error };
    }
    if (!(error instanceof UpstreamError)) {
      note(session, candidate, { status: null, failure: 'internal', is_unknown: true });
      return { ended: 'internal', error };
    }
    const { status, failure } = error;
    note(session, candidate, { status, failure, is_unknown: mayHaveAnswered(error), used: work.used?.() });
    session.failed.push({ provider: candidate.provider, own: candidate.own, error });
    if (failure !== 'state_rejected') blame(session, candidate, error);
    return fallsOver(failure) ? undefined : { ended: 'failed', error };
  }

  /** When a call may be sent to a second endpoint, and to which; undefined: it may not. */
  function hedgeOf<P extends Prepared, T>(
    session: Session,
    candidate: Candidate,
    later: readonly Candidate[],
    { discard }: Work<P, T>,
  ): { next: Candidate; after_ms: number } | undefined {
    const { call, grant } = session;
    const { provider: wishes } = call.request;
    if (discard === undefined || wishes?.allow_fallbacks === false || !(wishes?.hedge ?? hedging().hedge))
      return undefined;
    // A part of the answer that is not paid for yet is paid for by the last attempt that was let in.
    if (grant !== undefined && grant.paid_tokens < grant.output_tokens) return undefined;
    const isFit = (one: Candidate) => one.own === undefined && abortStopsBilling(one, call);
    const next = later.find(
      (one) => one.model === candidate.model && one.endpoint !== candidate.endpoint && isFit(one),
    );
    const now_ms = clock.now_ms();
    if (next === undefined || !isFit(candidate) || health.coolingUntil(healthId(next), now_ms) > 0) return undefined;
    const after_ms = lateAfter(health, candidate.endpoint.id, now_ms);
    return after_ms === undefined ? undefined : { next, after_ms };
  }

  /** Sends, and where nothing came in time sends to a second endpoint as well: who answers first, answers; the other is given up. */
  async function sendHedged<P extends Prepared, T>(
    session: Session,
    { candidate, prepared }: { candidate: Candidate; prepared: P },
    work: Work<P, T>,
    { next, after_ms }: { next: Candidate; after_ms: number },
    waitsFor: (candidate: Candidate) => void,
  ): Promise<Reached<P, T>> {
    const { cancellation } = session.call;
    share.earn();
    const one = {
      runner: run(cancellation, (own) => work.send(prepared, own)),
      candidate,
      prepared,
      under_way: underWay(session),
    };
    await within(one.runner, after_ms);
    const is_late = () => one.runner.sent === undefined && !cancellation.cancelled;
    if (is_late() && share.take()) {
      // Where this node has not the money for both, the store is being asked for it.
      for (let tries = 0; tries < limits.hedge_tries_max && is_late(); tries += 1) {
        if (tries > 0) await within(one.runner, limits.recall_ask_ms);
        const two = is_late() ? await beginBeside(session, one, next, work) : undefined;
        if (two === undefined) continue;
        waitsFor(next);
        return await firstOf(session, one, two, work, waitsFor);
      }
    }
    const { value } = orThrow(await one.runner.done);
    return { value, prepared, candidate };
  }

  /** Sets aside what a second attempt may cost on top of the first, makes it durable and sends it; undefined: that cannot be. */
  async function beginBeside<P extends Prepared, T>(
    session: Session,
    one: Beside<P, T>,
    next: Candidate,
    work: Work<P, T>,
  ): Promise<Beside<P, T> | undefined> {
    const { call, hold } = session;
    const needs = work.ready?.(next);
    if (needs !== undefined) {
      void needs.catch(() => {});
      return undefined;
    }
    const granted_nano = hold.granted_nano;
    const begun_ms = clock.monotonic_ms();
    const at = assume(session, one.candidate);
    const prepare = (spend?: SpendBound) => work.prepare(next, false, spend);
    try {
      const admitted = admitBeside({ call, hold, prepare, measure: work.measure });
      if (admitted !== undefined) {
        one.under_way.granted_nano = granted_nano;
        one.under_way.assumed_at = at;
        const under_way = await makeDurable(session, next, admitted);
        Object.assign(under_way, { waited_ms: clock.monotonic_ms() - begun_ms, is_hedge: true });
        if (one.runner.sent === undefined && !call.cancellation.cancelled) {
          const runner = run(call.cancellation, (own) => work.send(admitted.prepared, own));
          return { runner, candidate: next, prepared: admitted.prepared, under_way };
        }
      }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
    }
    unassume(session, at);
    Object.assign(session, one.under_way, { assumed_at: undefined });
    return undefined;
  }

  /** Whoever of two answers first; the other is given up, and both are noted but for the one that comes back. */
  async function firstOf<P extends Prepared, T>(
    session: Session,
    one: Beside<P, T>,
    two: Beside<P, T>,
    work: Work<P, T>,
    waitsFor: (candidate: Candidate) => void,
  ): Promise<Reached<P, T>> {
    const is_one = (await first(one.runner, two.runner)) === one.runner;
    const [early, late] = is_one ? [one, two] : [two, one];
    const sent = await early.runner.done;
    if ('value' in sent) {
      await giveUp(session, late, work);
      Object.assign(session, early.under_way);
      return { value: sent.value, prepared: early.prepared, candidate: early.candidate };
    }
    Object.assign(session, early.under_way);
    const ended = failed(session, early.candidate, work, sent.error);
    if (ended !== undefined) {
      await giveUp(session, late, work, ended.ended === 'gone' ? 'client_gone' : undefined);
      throw new Final(ended);
    }
    waitsFor(late.candidate);
    const last = await late.runner.done;
    Object.assign(session, late.under_way);
    return { value: orThrow(last).value, prepared: late.prepared, candidate: late.candidate };
  }

  /** Ends an attempt that is not wanted any more; what came of it until then is paid for. */
  async function giveUp<P extends Prepared, T>(
    session: Session,
    { runner, candidate, prepared, under_way }: Beside<P, T>,
    { discard }: Work<P, T>,
    failure = 'hedge_lost',
  ): Promise<void> {
    const used = await runner.abandon((value) => discard?.(value, prepared) ?? null);
    Object.assign(session, under_way);
    note(session, candidate, { status: null, failure, used });
  }

  /** When the last attempt was sent, by the wall clock of now. */
  function sentAt({ sent_ms }: Session): number {
    return clock.now_ms() - (clock.monotonic_ms() - sent_ms);
  }

  function credit(session: Session, candidate: Candidate): void {
    health.succeeded(healthId(candidate), clock.now_ms(), sentAt(session));
  }

  function blame(session: Session, candidate: Candidate, error: UpstreamError): void {
    if (!isOfEndpoint(error, session.call.request)) return;
    health.failed(healthId(candidate), error.failure, error.retry_after_ms, clock.now_ms(), sentAt(session));
    traffic.failed(candidate, error);
  }

  return { tryEach, blame, credit };
}
