import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../limits.ts';
import type { Health, Percentiles } from '../../routing/health.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { type Cancellation, createCancellation } from '../call.ts';

/** Keeps hedges a bounded share of the calls that could have one, so that a slow provider does not double all traffic. */
export interface HedgeShare {
  /** Another call could have one. */
  earn(): void;
  /** Whether one may be sent now; it then counts. */
  take(): boolean;
}

export function createHedgeShare(share_max: () => number): HedgeShare {
  let credit = share_max() > 0 ? 1 : 0;
  return {
    earn() {
      credit = Math.min(limits.hedge_burst_max, credit + share_max());
    },
    take() {
      // A little less than one: ten tenths are not quite one.
      if (credit < 1 - 1e-9) return false;
      credit -= 1;
      return true;
    },
  };
}

/** The latency that one call in twenty passes: between the percentiles that are kept. */
function p95(of: Percentiles): number {
  return of.p90 + ((of.p99 - of.p90) * 5) / 9;
}

/** After how many milliseconds of silence an endpoint is late by its own measure; undefined: too little is known of it. */
export function lateAfter(health: Health, endpoint_id: string, now_ms: number): number | undefined {
  const { latency_ms, is_latency_thin } = health.performance(endpoint_id, now_ms);
  return latency_ms === null || is_latency_thin ? undefined : Math.max(limits.hedge_ms_min, p95(latency_ms));
}

/** What became of a send. */
type Sent<T> = { value: T } | { error: unknown };

/** One send of two that are under way, which can be given up by itself. */
export interface Runner<T> {
  /** Never rejects. */
  done: Promise<Sent<T>>;
  /** What `done` resolved with. */
  sent: Sent<T> | undefined;
  /** Gives it up, and says what it had come to use. Never rejects; waits for a bounded time. */
  abandon(used: (value: T) => TokenClasses | null): Promise<TokenClasses | null>;
}

/** Sends with a cancellation of its own, which follows the call's. */
export function run<T>(call: Cancellation, send: (cancellation: Cancellation) => Promise<T>): Runner<T> {
  const own = createCancellation();
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
      return await Promise.race([closed, sleep(limits.hedge_abort_ms_max, null, { ref: false })]);
    },
  };
  void runner.done.then((sent) => {
    runner.sent = sent;
  });
  return runner;
}

/** Waits for a send, for so long at most; undefined: it is still under way. */
export async function within<T>(runner: Runner<T>, ms: number): Promise<Sent<T> | undefined> {
  const late = new AbortController();
  try {
    return await Promise.race([runner.done, sleep(ms, undefined, { signal: late.signal }).catch(() => undefined)]);
  } finally {
    late.abort();
  }
}

/** Whichever of two ends first. */
export async function first<T>(one: Runner<T>, other: Runner<T>): Promise<Runner<T>> {
  return await Promise.race([one.done.then(() => one), other.done.then(() => other)]);
}
