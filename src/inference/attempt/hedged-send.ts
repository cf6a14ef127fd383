import { GatewayError } from '../../errors.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { limits } from '../../limits.ts';
import { servedId } from '../../routing/candidate.ts';
import type { Health } from '../../routing/health.ts';
import { type Candidate, healthId } from '../../routing/plan.ts';
import type { Clock } from '../call.ts';
import type { CallState } from '../call-state.ts';
import type { Admission, Admitted, Prepared } from '../money/admission.ts';
import type { Settlement } from '../money/settlement.ts';
import type { TryOrder } from '../plan/try-order.ts';
import type { SpendBound } from '../prepare/fit-request.ts';
import type { Ended, Reached, Work } from './attempts.ts';
import { abortStopsBilling, goneAs } from './exchange.ts';
import { createHedgeShare, first, lateAfter, type Runner, run, within } from './hedge.ts';

/** What a session knows of an attempt that was sent. */
type UnderWay = Pick<
  CallState,
  | 'record'
  | 'grant'
  | 'report'
  | 'service_tier'
  | 'sent_ms'
  | 'waited_ms'
  | 'granted_nano'
  | 'assumed_at'
  | 'presumed_output'
  | 'is_hedge'
>;

function underWay(session: CallState): UnderWay {
  const { record, grant, report, service_tier, sent_ms, waited_ms, granted_nano, assumed_at } = session;
  const { presumed_output, is_hedge } = session;
  const sent = { record, grant, report, service_tier, sent_ms, waited_ms };
  return { ...sent, granted_nano, assumed_at, presumed_output, is_hedge };
}

/** One of two attempts that are under way at once. */
interface Beside<P, T> {
  runner: Runner<T>;
  candidate: Candidate;
  prepared: P;
  under_way: UnderWay;
}

/** Thrown where two attempts have ended in a way that ends the call, and are noted. */
export class Final extends Error {
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

export interface HedgesOptions {
  clock: Clock;
  health: Health;
  recorder: Recorder;
  /** Whether calls that do not say so are hedged, and which share of them at most. */
  hedging(): { hedge: boolean; hedge_share_max: number };
}

/** What hedges share with every other attempt. */
interface Ways {
  /** What the journal is told of the session's next attempt before it is sent. */
  openAttempt(
    session: CallState,
    candidate: Candidate,
    admitted: Admitted<Prepared>,
  ): Parameters<Recorder['attempt']>[0];
  /** Notes an attempt that was sent and did not answer; what comes back ends the call. */
  failed<P extends Prepared, T>(
    session: CallState,
    candidate: Candidate,
    work: Work<P, T>,
    error: unknown,
  ): Ended | undefined;
}

/** When a call may be sent to a second endpoint, and to which. */
interface HedgePlan {
  next: Candidate;
  after_ms: number;
}

/** Sends a call to a second endpoint where the first is late. */
export interface Hedges {
  /** Undefined: the call may not be sent to two. */
  plan<P extends Prepared, T>(session: CallState, order: TryOrder, work: Work<P, T>): HedgePlan | undefined;
  /**
   * Who answers first, answers; the other is given up. `order` is told whose end is waited for. Throws what `send` of that one
   * throws, which is not noted yet, or `Final`.
   */
  send<P extends Prepared, T>(
    session: CallState,
    sent: { candidate: Candidate; prepared: P },
    work: Work<P, T>,
    plan: HedgePlan,
    order: TryOrder,
  ): Promise<Reached<P, T>>;
}

export function createHedges(
  { clock, health, recorder, hedging }: HedgesOptions,
  { admitBeside }: Pick<Admission, 'admitBeside'>,
  { note, assume, unassume }: Pick<Settlement, 'note' | 'assume' | 'unassume'>,
  { openAttempt, failed }: Ways,
): Hedges {
  const share = createHedgeShare(() => hedging().hedge_share_max);

  function plan<P extends Prepared, T>(
    session: CallState,
    order: TryOrder,
    { discard }: Work<P, T>,
  ): HedgePlan | undefined {
    const { call, grant } = session;
    const { provider: wishes } = call.request;
    if (discard === undefined || wishes?.allow_fallbacks === false || !(wishes?.hedge ?? hedging().hedge))
      return undefined;
    // A part of the answer that is not paid for yet is paid for by the last attempt that was let in.
    if (grant !== undefined && grant.paid_tokens < grant.output_tokens) return undefined;
    const isFit = (one: Candidate) => one.own === undefined && abortStopsBilling(one, call);
    const { candidate } = order;
    if (!isFit(candidate)) return undefined;
    const next = order
      .later()
      .find((one) => one.model === candidate.model && one.endpoint !== candidate.endpoint && isFit(one));
    const now_ms = clock.now_ms();
    if (next === undefined || health.coolingUntil(healthId(next), now_ms) > 0) return undefined;
    const after_ms = lateAfter(health, servedId(candidate), now_ms);
    return after_ms === undefined ? undefined : { next, after_ms };
  }

  async function send<P extends Prepared, T>(
    session: CallState,
    { candidate, prepared }: { candidate: Candidate; prepared: P },
    work: Work<P, T>,
    { next, after_ms }: HedgePlan,
    order: TryOrder,
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
        order.waitFor(next);
        return await firstOf(session, one, two, work, order);
      }
    }
    const { value } = orThrow(await one.runner.done);
    return { value, prepared, candidate };
  }

  /** Sets aside what a second attempt may cost on top of the first, makes it durable and sends it; undefined: that cannot be. */
  async function beginBeside<P extends Prepared, T>(
    session: CallState,
    one: Beside<P, T>,
    next: Candidate,
    work: Work<P, T>,
  ): Promise<Beside<P, T> | undefined> {
    const { call, hold } = session;
    const needs = work.ready?.(next, true);
    if (needs !== undefined) {
      void needs.catch(() => {});
      return undefined;
    }
    const granted_nano = hold.granted_nano;
    const begun_ms = clock.monotonic_ms();
    const at = assume(session, one.candidate);
    const prepare = (spend?: SpendBound) => work.prepare(next, false, spend);
    try {
      const admitted = await admitBeside({ call, hold, prepare, measure: work.measure });
      if (admitted !== undefined) {
        one.under_way.granted_nano ??= granted_nano;
        one.under_way.assumed_at = at;
        const { prepared, grant } = admitted;
        const attempt = openAttempt(session, next, admitted);
        await recorder.attempt(attempt);
        if (one.runner.sent === undefined && !call.cancellation.cancelled) {
          const sent_ms = clock.monotonic_ms();
          const under_way: UnderWay = {
            record: attempt.record,
            grant,
            report: prepared.report,
            service_tier: prepared.service_tier,
            sent_ms,
            waited_ms: sent_ms - begun_ms,
            granted_nano: undefined,
            assumed_at: undefined,
            presumed_output: session.presumed_output,
            is_hedge: true,
          };
          const runner = run(call.cancellation, (own) => work.send(prepared, own));
          return { runner, candidate: next, prepared, under_way };
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
    session: CallState,
    one: Beside<P, T>,
    two: Beside<P, T>,
    work: Work<P, T>,
    order: TryOrder,
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
      await giveUp(session, late, work, ended.ended === 'gone' ? goneAs(session.call) : undefined);
      throw new Final(ended);
    }
    order.waitFor(late.candidate);
    const last = await late.runner.done;
    Object.assign(session, late.under_way);
    return { value: orThrow(last).value, prepared: late.prepared, candidate: late.candidate };
  }

  /** Ends an attempt that is not wanted any more; what came of it until then is paid for. */
  async function giveUp<P extends Prepared, T>(
    session: CallState,
    { runner, candidate, prepared, under_way }: Beside<P, T>,
    work: Work<P, T>,
    failure = 'hedge_lost',
  ): Promise<void> {
    const answered = await runner.abandon((value) => work.discard?.(value, prepared) ?? null);
    const used = answered ?? work.used?.(candidate);
    Object.assign(session, under_way);
    note(session, candidate, { status: null, failure, used });
  }

  return { plan, send };
}
