import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '../../errors.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { limits } from '../../limits.ts';
import { servedId } from '../../routing/candidate.ts';
import type { Health, Percentiles } from '../../routing/health.ts';
import { type Candidate, healthId } from '../../routing/plan.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { CallCancellation, type Cancellation, type Clock } from '../call.ts';
import type { Admission, Admitted, Prepared } from '../money/admission.ts';
import type { Settlement } from '../money/settlement.ts';
import type { RoutingRules } from '../plan/caller-defaults.ts';
import { type Account, Attempt, type CallState } from '../state.ts';
import { abortStopsBilling, cancellationFailure } from './upstream-call.ts';
import type { Ended, Reached, Work } from './work.ts';

/** The most hedged calls in a row. */
const HEDGE_BURST_MAX = 10;
/** No endpoint counts as late before this time. */
export const HEDGE_MS_MIN = 20;
/** How long the end of an aborted attempt is awaited. */
const HEDGE_ABORT_MS_MAX = 250;
/** The most tries to hold the money for a second attempt. */
const HEDGE_TRIES_MAX = 8;

/** Keeps hedges a bounded share of the calls that could have one, so that a slow provider does not double all traffic. */
export interface HedgeShare {
  /** Counts a call that could be hedged. */
  earn(): void;
  /** Takes one hedge from the share. Returns false if none may be sent now. */
  take(): boolean;
}

export function createHedgeShare(shareMax: () => number): HedgeShare {
  let credit = shareMax() > 0 ? 1 : 0;
  return {
    earn() {
      credit = Math.min(HEDGE_BURST_MAX, credit + shareMax());
    },
    take() {
      // Slightly below one, since ten times 0.1 is less than 1 in floating point.
      if (credit < 1 - 1e-9) return false;
      credit -= 1;
      return true;
    },
  };
}

/** The 95th percentile of the latency, interpolated between the percentiles that are kept. */
function p95(of: Percentiles): number {
  return of.p90 + ((of.p99 - of.p90) * 5) / 9;
}

/** The milliseconds without an answer after which an endpoint is late by its own statistics. Undefined if these are too thin. */
export function lateAfter(health: Health, endpointId: string, nowMs: number): number | undefined {
  const { latency_ms, is_latency_thin } = health.performance(endpointId, nowMs);
  return latency_ms === null || is_latency_thin ? undefined : Math.max(HEDGE_MS_MIN, p95(latency_ms));
}

/** The result of a send. */
type Sent<T> = { value: T } | { error: unknown };

/** One of two running sends, which can be abandoned on its own. */
export interface Runner<T> {
  /** Never rejects. */
  done: Promise<Sent<T>>;
  /** The result of `done`. Undefined until it resolves. */
  sent: Sent<T> | undefined;
  /** Abandons the send and returns its usage. Never rejects; waits for a bounded time. */
  abandon(used: (value: T) => TokenClasses | null): Promise<TokenClasses | null>;
}

/** Starts a send with its own cancellation, which follows the call's. */
export function run<T>(call: Cancellation, send: (cancellation: Cancellation) => Promise<T>): Runner<T> {
  const own = new CallCancellation();
  call.onCancel(() => (call.stopped ? own.stop() : own.cancel()));
  call.onStop(() => own.stop());
  const runner: Runner<T> = {
    sent: undefined,
    done: send(own).then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    ),
    async abandon(used) {
      own.cancel();
      const closed = runner.done.then((sent) => ('value' in sent ? used(sent.value) : null));
      return await Promise.race([closed, sleep(HEDGE_ABORT_MS_MAX, null, { ref: false })]);
    },
  };
  void runner.done.then((sent) => {
    runner.sent = sent;
  });
  return runner;
}

/** Waits for a send, at most `ms` milliseconds. Undefined if it is still running. */
export async function within<T>(runner: Runner<T>, ms: number): Promise<Sent<T> | undefined> {
  const late = new AbortController();
  try {
    return await Promise.race([runner.done, sleep(ms, undefined, { signal: late.signal }).catch(() => undefined)]);
  } finally {
    late.abort();
  }
}

/** The first of two sends to end. */
export async function first<T>(one: Runner<T>, other: Runner<T>): Promise<Runner<T>> {
  return await Promise.race([one.done.then(() => one), other.done.then(() => other)]);
}

/** One of two attempts that run at once. */
interface Running<P extends Prepared, T, M extends Account> {
  runner: Runner<T>;
  attempt: Attempt<P, M>;
}

/** Thrown if two attempts have ended, are noted, and end the call. */
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
  routing(): Pick<RoutingRules, 'hedge' | 'hedge_share_max'>;
}

/** The steps that a hedge shares with every other attempt. */
interface Steps {
  /** Takes over the terms of an admitted attempt and makes it durable. */
  open<P extends Prepared>(state: CallState, attempt: Attempt<P>, admitted: Admitted<P>): Promise<void>;
  /** Notes a sent attempt that did not answer. Returns the end of the call, or undefined if another attempt may follow. */
  failed(state: CallState, attempt: Attempt, error: unknown): Ended | undefined;
}

/** When a call may be sent to a second endpoint, and to which. */
export interface HedgePlan {
  next: Candidate;
  after_ms: number;
}

/** Sends a call to a second endpoint if the first is late. */
export interface Hedges {
  /** When a call that wants a hedge gets one; undefined if it may not be sent to two endpoints. */
  plan<P extends Prepared, T, M extends Account>(
    state: CallState,
    attempt: Attempt<P, M>,
    work: Work<P, T, M>,
  ): HedgePlan | undefined;
  /**
   * The endpoint that answers first serves the call; the other attempt is abandoned. Sets the attempt that `state` waits for.
   * Throws the error of that attempt, which is not noted yet, or `Final`.
   */
  send<P extends Prepared, T, M extends Account>(
    state: CallState,
    attempt: Attempt<P, M>,
    work: Work<P, T, M>,
    plan: HedgePlan,
  ): Promise<Reached<P, T, M>>;
}

export function createHedges(
  { clock, health, routing }: HedgesOptions,
  { admitBeside }: Pick<Admission, 'admitBeside'>,
  { note, assume, unassume }: Pick<Settlement, 'note' | 'assume' | 'unassume'>,
  { open, failed }: Steps,
): Hedges {
  const share = createHedgeShare(() => routing().hedge_share_max);

  function plan<P extends Prepared, T, M extends Account>(
    { order, turn }: CallState,
    { call, grant, candidate }: Attempt<P, M>,
    { discard }: Work<P, T, M>,
  ): HedgePlan | undefined {
    if (discard === undefined || call.request.provider?.allow_fallbacks === false) return undefined;
    // A part of the answer that is not paid for yet is paid for by the last attempt that was admitted.
    if (grant !== undefined && grant.paid_tokens < grant.output_tokens) return undefined;
    const isFit = (one: Candidate) => one.own === undefined && abortStopsBilling(one, call);
    if (!isFit(candidate)) return undefined;
    const next = order
      .slice(turn + 1)
      .find((one) => one.model === candidate.model && one.endpoint !== candidate.endpoint && isFit(one));
    const nowMs = clock.nowMs();
    if (next === undefined || health.coolingUntil(healthId(next), nowMs) > 0) return undefined;
    const afterMs = lateAfter(health, servedId(candidate), nowMs);
    return afterMs === undefined ? undefined : { next, after_ms: afterMs };
  }

  async function send<P extends Prepared, T, M extends Account>(
    state: CallState,
    attempt: Attempt<P, M>,
    work: Work<P, T, M>,
    { next, after_ms }: HedgePlan,
  ): Promise<Reached<P, T, M>> {
    const { cancellation } = attempt.call;
    share.earn();
    const one = { runner: run(cancellation, (own) => work.send(attempt, own)), attempt };
    await within(one.runner, after_ms);
    const isLate = () => one.runner.sent === undefined && !cancellation.cancelled;
    if (isLate() && share.take()) {
      // If this node does not have the money for both, a request for it to the store is running.
      for (let tries = 0; tries < HEDGE_TRIES_MAX && isLate(); tries += 1) {
        if (tries > 0) await within(one.runner, limits.recall_ask_ms);
        const two = isLate() ? await beginBeside(state, one, next, work) : undefined;
        if (two === undefined) continue;
        state.waitFor(two.attempt);
        return await firstOf(state, one, two, work);
      }
    }
    const { value } = orThrow(await one.runner.done);
    return { value, attempt };
  }

  /** Holds the additional cost of a second attempt, makes it durable and sends it. Undefined if it cannot be sent. */
  async function beginBeside<P extends Prepared, T, M extends Account>(
    state: CallState,
    one: Running<P, T, M>,
    next: Candidate,
    work: Work<P, T, M>,
  ): Promise<Running<P, T, M> | undefined> {
    const { call } = work;
    const { hold } = state;
    const needs = work.ready?.(next, true);
    if (needs !== undefined) {
      void needs.catch(() => {});
      return undefined;
    }
    const grantedNano = hold.granted_nano;
    const begunMs = clock.monotonicMs();
    assume(state, one.attempt);
    try {
      const prepare = (spend?: Parameters<typeof work.prepare>[2]) => work.prepare(next, false, spend);
      const admitted = await admitBeside({ call, hold, prepare, measure: work.measure });
      if (admitted !== undefined) {
        one.attempt.grantedNano ??= grantedNano;
        const attempt = new Attempt<P, M>(call, next, state);
        attempt.isHedge = true;
        await open(state, attempt, admitted);
        if (one.runner.sent === undefined && !call.cancellation.cancelled) {
          attempt.sentMs = clock.monotonicMs();
          attempt.waitedMs = attempt.sentMs - begunMs;
          attempt.isSent = true;
          return { runner: run(call.cancellation, (own) => work.send(attempt, own)), attempt };
        }
      }
    } catch (error) {
      if (!(error instanceof GatewayError)) {
        unassume(state, one.attempt);
        throw error;
      }
    }
    unassume(state, one.attempt);
    return undefined;
  }

  /** Waits for the first answer of two. The other attempt is abandoned; both are noted except for the one that is returned or thrown. */
  async function firstOf<P extends Prepared, T, M extends Account>(
    state: CallState,
    one: Running<P, T, M>,
    two: Running<P, T, M>,
    work: Work<P, T, M>,
  ): Promise<Reached<P, T, M>> {
    const isOne = (await first(one.runner, two.runner)) === one.runner;
    const [early, late] = isOne ? [one, two] : [two, one];
    const sent = await early.runner.done;
    if ('value' in sent) {
      await abandon(state, late, work);
      state.lastSent = early.attempt;
      state.record = early.attempt.opening;
      return { value: sent.value, attempt: early.attempt };
    }
    const ended = failed(state, early.attempt, sent.error);
    state.lastSent = late.attempt;
    state.record = late.attempt.opening;
    if (ended !== undefined) {
      await abandon(state, late, work, ended.ended === 'cancelled' ? cancellationFailure(state.call) : undefined);
      throw new Final(ended);
    }
    state.waitFor(late.attempt);
    return { ...orThrow(await late.runner.done), attempt: late.attempt };
  }

  /** Ends an attempt whose answer is not needed. Its output so far is charged. */
  async function abandon<P extends Prepared, T, M extends Account>(
    state: CallState,
    { runner, attempt }: Running<P, T, M>,
    work: Work<P, T, M>,
    failure = 'hedge_lost',
  ): Promise<void> {
    const produced = await runner.abandon((value) => work.discard?.(value, attempt) ?? null);
    note(state, attempt, { status: null, failure, used: produced ?? attempt.used });
  }

  return { plan, send };
}
