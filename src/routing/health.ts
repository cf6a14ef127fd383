import { limits } from '../limits.ts';
import type { FailureClass } from '../providers/dialect.ts';

/** The cool-down of an endpoint whose failure names no wait. */
export const COOL_DOWN_MS_DEFAULT = 10_000;
/** The longest cool-down. Longer ones cost more than the failures that they avoid (`npm run bench -- --only routing`). */
export const COOL_DOWN_MS_MAX = 120_000;
/** The longest wait for the outcome of the trial, the one attempt that is sent after a cool-down. */
export const COOL_DOWN_TRIAL_MS_MAX = 30_000;
/** The time for which an outage is recent, and the share of failed attempts that makes it one. */
export const OUTAGE_RECENT_MS = 30_000;
const OUTAGE_SHARE_MIN = 0.05;

/** `pN`: N percent of calls reach or exceed this value. */
export interface Percentiles {
  p50: number;
  p75: number;
  p90: number;
  p99: number;
}

/** The recent performance of an endpoint, over all nodes, at the gateway's own account. Null if there are too few calls. */
export interface Performance {
  /** To the first token, in milliseconds. */
  latency_ms: Percentiles | null;
  /** Tokens per second: nine of ten answers reach the p90, so that higher percentiles are slower, as for latency. */
  throughput: Percentiles | null;
  /** Percent of the calls that were answered. */
  uptime_5m: number | null;
  uptime_30m: number | null;
  uptime_1d: number | null;
  /** The share of tool calls whose arguments are JSON, from 0 to 1. */
  tool_success: number | null;
  /** Set if `latency_ms` is of few calls: good for comparing endpoints, not for detecting a late call. */
  is_latency_thin?: true;
}

/** The performance of an endpoint without calls. */
export const NO_PERFORMANCE: Performance = {
  latency_ms: null,
  throughput: null,
  uptime_5m: null,
  uptime_30m: null,
  uptime_1d: null,
  tool_success: null,
};

/** Failures of the endpoint rather than of the request. */
const COUNTED: ReadonlySet<FailureClass> = new Set([
  'rate_limited',
  'overloaded',
  'unavailable',
  'timeout',
  'credential',
  'payment',
  'not_found',
  'invalid_response',
]);

/** The role of an attempt: an ordinary one; the trial whether the endpoint has recovered; or an attempt during such a trial. */
export type AttemptRole = 'open' | 'trial' | 'busy';

/** `refused`: the gateway's credential or account is refused; `failing` and `rate_limited`: the endpoint cools down. */
export type Condition = 'well' | 'rate_limited' | 'failing' | 'refused';

/**
 * The cool-downs and performance of endpoints. A cool-down lowers an endpoint's rank and never excludes it: the last endpoint left is
 * still tried. After it, one attempt at a time tries whether the endpoint has recovered; for others it cools down until then. The
 * caller passes the time.
 */
export interface Health {
  /**
   * Call before an attempt is sent. `trial`: others wait for its outcome, which must be reported by `failed`, `succeeded` or `left`.
   * `busy`: another trial is in progress; prefer other endpoints.
   */
  begin(healthId: string, nowMs: number): AttemptRole;
  /** Reports a failure. `sentMs` is when the attempt was sent: attempts sent before a failure that fail as well count as the same failure. */
  failed(
    healthId: string,
    failure: FailureClass,
    retryAfterMs: number | undefined,
    nowMs: number,
    sentMs?: number,
  ): void;
  /**
   * Reports that a call has no answer for much longer than its endpoint ever took. Counts as a failure, unless a call that was sent no
   * earlier was answered: then the call itself is slow.
   */
  silent(healthId: string, nowMs: number, sentMs: number): void;
  /** Reports that a call is answered, or begins to be: ends the effect of `silent`. */
  answered(healthId: string, sentMs: number): void;
  /** Reports a success. `sentMs` is when the attempt was sent: one from before the failure does not end the cool-down. */
  succeeded(healthId: string, nowMs: number, sentMs?: number): void;
  /** Ends a trial without a result. */
  left(healthId: string): void;
  /** Removes the records of endpoints that changed: another credential, another address. */
  forget(hasChanged: (endpointId: string) => boolean): void;
  /** When the cool-down or trial ends; 0 if there is none. */
  coolingUntil(healthId: string, nowMs: number): number;
  /** Whether its recent failures exceed the allowed share. */
  hadOutage(healthId: string, nowMs: number): boolean;
  /** The condition of an endpoint, as known to this process. */
  condition(healthId: string, nowMs: number): Condition;
  /** The failures of an endpoint since it last answered; undefined if it is well. */
  failures(healthId: string, nowMs: number): Failures | undefined;
  /** The performance of an endpoint, for all credentials. Cheap: computed at most once per second. */
  performance(endpointId: string, nowMs: number): Performance;
}

/** Failures in a row: the class of the last one, and the times of the first and the last. */
export interface Failures {
  failure: FailureClass;
  since_ms: number;
  last_ms: number;
}

/** The record of an endpoint's recent failures. */
interface Memory {
  failure: FailureClass;
  cool_until_ms: number;
  /** The part of it that the upstream requested: kept even after an answer. */
  requested_until_ms: number;
  /** The end of the current trial; 0 if there is none. */
  trial_until_ms: number;
  /** Failures in a row, or soon after it had recovered. */
  consecutive: number;
  /** Whether it has answered since. */
  is_well: boolean;
  failed_ms: number;
  /** The first failure since it last answered. */
  failing_since_ms: number;
  /** The record before it fell silent, unless it has failed otherwise since. */
  before_silence: Memory | 'nothing' | undefined;
  /** Since `since_ms`, halved over time. */
  outages: number;
  answers: number;
  since_ms: number;
  outage_ms: number;
}

/** Shifts the record if the clock was set back, so that waits do not become longer: the last failure is now. */
function setBack(memory: Memory, nowMs: number): void {
  const byMs = memory.failed_ms - nowMs;
  memory.cool_until_ms -= byMs;
  memory.requested_until_ms -= byMs;
  memory.trial_until_ms -= byMs;
  memory.failed_ms -= byMs;
  memory.failing_since_ms -= byMs;
  memory.since_ms -= byMs;
  memory.outage_ms -= byMs;
}

function newMemory(failure: FailureClass, nowMs: number): Memory {
  return {
    failure,
    cool_until_ms: 0,
    requested_until_ms: 0,
    trial_until_ms: 0,
    consecutive: 0,
    is_well: false,
    failed_ms: nowMs,
    failing_since_ms: nowMs,
    before_silence: undefined,
    outages: 0,
    answers: 0,
    since_ms: nowMs,
    outage_ms: Number.NEGATIVE_INFINITY,
  };
}

/** Keeps the counts to about the last `OUTAGE_RECENT_MS`. */
function age(memory: Memory, nowMs: number): void {
  if (nowMs - memory.since_ms < OUTAGE_RECENT_MS) return;
  const isLong = nowMs - memory.since_ms >= 2 * OUTAGE_RECENT_MS;
  memory.outages = isLong ? 0 : memory.outages / 2;
  memory.answers = isLong ? 0 : memory.answers / 2;
  memory.since_ms = nowMs;
}

/** The parameters of a failure. */
interface Failed {
  failure: FailureClass;
  retry_after_ms: number | undefined;
  now_ms: number;
  sent_ms: number;
}

/** The wait after a number of failures in a row, in milliseconds. */
function waitAfter(consecutive: number): number {
  return Math.min(COOL_DOWN_MS_DEFAULT * 2 ** Math.min(consecutive - 1, 10), COOL_DOWN_MS_MAX);
}

/** The time after its last failure until an endpoint counts as recovered: twice its cool-down, and a recent outage's time. */
function steadyAfter({ consecutive, outage_ms: outageMs }: Memory): number {
  if (outageMs === Number.NEGATIVE_INFINITY) return 0;
  return 2 * waitAfter(consecutive) + OUTAGE_RECENT_MS;
}

/**
 * Records recent failures of endpoints: the wait that the upstream requests, else a wait that doubles with each failure in a row, except
 * for rate limits, which end by the clock. An endpoint that fails again before it was well for as long as it had been down continues its
 * row: unstable endpoints are avoided for longer and longer.
 */
export function createHealth(
  performance: (endpointId: string, nowMs: number) => Performance = () => NO_PERFORMANCE,
): Health {
  const records = new Map<string, Memory>();
  /** For each endpoint, when its latest answered call was sent. */
  const answered = new Map<string, number>();

  function recordOf(healthId: string, nowMs: number): Memory | undefined {
    const memory = records.size === 0 ? undefined : records.get(healthId);
    if (memory !== undefined && nowMs < memory.failed_ms) setBack(memory, nowMs);
    return memory;
  }

  function put<V>(into: Map<string, V>, healthId: string, value: V): void {
    into.delete(healthId);
    // A provider that accepts any model name has any number of endpoints: the oldest are removed.
    if (into.size >= limits.health_endpoints_max) into.delete(into.keys().next().value ?? '');
    into.set(healthId, value);
  }

  function fail(
    memory: Memory,
    { failure, retry_after_ms: retryAfterMs, now_ms: nowMs, sent_ms: sentMs }: Failed,
  ): void {
    age(memory, nowMs);
    memory.before_silence = undefined;
    const isLimit = failure === 'rate_limited';
    if (!isLimit) {
      memory.outages += 1;
      memory.outage_ms = nowMs;
    }
    if (retryAfterMs !== undefined) {
      const until = nowMs + Math.min(retryAfterMs, limits.retry_after_ms_max);
      memory.requested_until_ms = Math.max(memory.requested_until_ms, until);
      memory.cool_until_ms = Math.max(memory.cool_until_ms, until);
    }
    // It was in progress when another failed: the same failure.
    if (memory.consecutive > 0 && sentMs < memory.failed_ms) return;
    if (memory.is_well || memory.consecutive === 0) memory.failing_since_ms = nowMs;
    memory.failure = failure;
    memory.failed_ms = nowMs;
    memory.trial_until_ms = 0;
    memory.is_well = false;
    if (!isLimit || memory.consecutive === 0) memory.consecutive += 1;
    const hasRequestedWait = retryAfterMs !== undefined && retryAfterMs > 0;
    if (hasRequestedWait && (isLimit || memory.consecutive === 1)) return;
    // The upstream failed again after its requested wait, so that wait is not trusted.
    const wait = isLimit ? COOL_DOWN_MS_DEFAULT : waitAfter(memory.consecutive - (hasRequestedWait ? 1 : 0));
    memory.cool_until_ms = Math.max(memory.cool_until_ms, nowMs + wait);
  }

  function condition(healthId: string, nowMs: number): Condition {
    const memory = recordOf(healthId, nowMs);
    // After a cool-down the condition stays until an attempt was made.
    if (memory === undefined || memory.consecutive === 0 || memory.is_well) return 'well';
    const { failure } = memory;
    if (failure === 'credential' || failure === 'payment') return 'refused';
    if (failure !== 'rate_limited') return 'failing';
    return memory.cool_until_ms > nowMs ? 'rate_limited' : 'well';
  }

  return {
    begin(healthId, nowMs) {
      const memory = recordOf(healthId, nowMs);
      if (memory === undefined || memory.consecutive === 0 || memory.is_well || memory.cool_until_ms > nowMs)
        return 'open';
      if (memory.trial_until_ms > nowMs) return 'busy';
      memory.trial_until_ms = nowMs + COOL_DOWN_TRIAL_MS_MAX;
      return 'trial';
    },
    failed(healthId, failure, retryAfterMs, nowMs, sentMs = nowMs) {
      if (!COUNTED.has(failure)) return;
      const memory = recordOf(healthId, nowMs) ?? newMemory(failure, nowMs);
      fail(memory, { failure, retry_after_ms: retryAfterMs, now_ms: nowMs, sent_ms: sentMs });
      put(records, healthId, memory);
    },
    silent(healthId, nowMs, sentMs) {
      const memory = recordOf(healthId, nowMs);
      // In progress during another failure, as in `fail`.
      if (memory !== undefined && memory.consecutive > 0 && sentMs < memory.failed_ms) return;
      if ((answered.get(healthId) ?? Number.NEGATIVE_INFINITY) >= sentMs) return;
      const before = memory?.before_silence ?? (memory === undefined ? 'nothing' : { ...memory });
      const silentRecord = memory ?? newMemory('timeout', nowMs);
      fail(silentRecord, { failure: 'timeout', retry_after_ms: undefined, now_ms: nowMs, sent_ms: sentMs });
      silentRecord.before_silence = before;
      put(records, healthId, silentRecord);
    },
    answered(healthId, sentMs) {
      const last = answered.get(healthId);
      if (last === undefined || sentMs > last) put(answered, healthId, sentMs);
      const before = records.size === 0 ? undefined : records.get(healthId)?.before_silence;
      if (before === 'nothing') records.delete(healthId);
      else if (before !== undefined) records.set(healthId, before);
    },
    succeeded(healthId, nowMs, sentMs = nowMs) {
      const memory = recordOf(healthId, nowMs);
      if (memory === undefined) return;
      age(memory, nowMs);
      memory.answers += 1;
      // A call that was sent before the failure does not show a recovery.
      if (sentMs < memory.failed_ms) return;
      memory.trial_until_ms = 0;
      memory.cool_until_ms = memory.requested_until_ms;
      if (memory.requested_until_ms > nowMs) return;
      memory.is_well = true;
      if (nowMs - memory.failed_ms < steadyAfter(memory)) return;
      memory.consecutive = 0;
      if (memory.outage_ms + OUTAGE_RECENT_MS <= nowMs) records.delete(healthId);
    },
    left(healthId) {
      const memory = records.get(healthId);
      if (memory !== undefined) memory.trial_until_ms = 0;
    },
    forget(hasChanged) {
      // An id starts with its endpoint's id, before the first space.
      for (const id of records.keys()) if (hasChanged(id.split(' ', 1)[0] ?? id)) records.delete(id);
    },
    coolingUntil(healthId, nowMs) {
      const memory = recordOf(healthId, nowMs);
      if (memory === undefined) return 0;
      const until = Math.max(memory.cool_until_ms, memory.trial_until_ms);
      return until > nowMs ? until : 0;
    },
    hadOutage(healthId, nowMs) {
      const memory = recordOf(healthId, nowMs);
      if (memory === undefined || memory.outage_ms + OUTAGE_RECENT_MS <= nowMs) return false;
      return memory.outages >= (memory.outages + memory.answers) * OUTAGE_SHARE_MIN;
    },
    condition,
    failures(healthId, nowMs) {
      const memory = recordOf(healthId, nowMs);
      if (memory === undefined || condition(healthId, nowMs) === 'well') return undefined;
      return { failure: memory.failure, since_ms: memory.failing_since_ms, last_ms: memory.failed_ms };
    },
    performance,
  };
}
