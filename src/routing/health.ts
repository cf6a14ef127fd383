import { limits } from '../limits.ts';
import type { FailureClass } from '../providers/dialect.ts';

/** What so many of a hundred calls do at least as well as. */
export interface Percentiles {
  p50: number;
  p75: number;
  p90: number;
  p99: number;
}

/** How an endpoint did of late, over all nodes, at the gateway's own account. What too few calls tell of is null. */
export interface Performance {
  /** To the first token, in milliseconds. */
  latency_ms: Percentiles | null;
  /** Tokens a second: the p90 is what nine of ten answers reach, so that higher percentiles are slower, as for latency. */
  throughput: Percentiles | null;
  /** Percent of the calls that were answered. */
  uptime_5m: number | null;
  uptime_30m: number | null;
  uptime_1d: number | null;
  /** The share of tool calls whose arguments are JSON, from 0 to 1. */
  tool_success: number | null;
  /** `latency_ms` is of few calls: good to compare endpoints by, not to say that a call is late. */
  is_latency_thin?: true;
}

/** Of an endpoint that nobody called. */
export const NO_PERFORMANCE: Performance = {
  latency_ms: null,
  throughput: null,
  uptime_5m: null,
  uptime_30m: null,
  uptime_1d: null,
  tool_success: null,
};

/** Failures that say something about the endpoint rather than about the request. */
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

/** What an attempt at an endpoint is: one of many; the one that tries whether it is well again; or one beside such a trial. */
export type Turn = 'open' | 'trial' | 'busy';

/** `refused`: the gateway's credential or account; `failing` and `rate_limited`: it cools down, and is tried again. */
export type Condition = 'well' | 'rate_limited' | 'failing' | 'refused';

/**
 * Which endpoints are cooling down, and how they do. A cool-down lowers an endpoint's rank and never excludes it: the last
 * endpoint left is still tried. When it is over, one attempt at a time tries whether the endpoint is well again; to others
 * it still cools until then. Times are given by the caller.
 */
export interface Health {
  /**
   * Before an attempt is sent. `trial`: its outcome is waited for before others are let through, which it must tell by `failed`,
   * `succeeded` or `left`. `busy`: another is just trying; better to go elsewhere first.
   */
  begin(healthId: string, nowMs: number): Turn;
  /** `sent_ms`: when the attempt was sent; those under way at a failure that fail as well are one with it. */
  failed(
    healthId: string,
    failure: FailureClass,
    retryAfterMs: number | undefined,
    nowMs: number,
    sentMs?: number,
  ): void;
  /**
   * A call that was sent then has had no answer for much longer than its endpoint ever took. A failure, unless one that was sent
   * no earlier was answered: then it is the call that takes long.
   */
  silent(healthId: string, nowMs: number, sentMs: number): void;
  /** A call that was sent then is answered, or begins to be: ends what silence alone stands against the endpoint. */
  heard(healthId: string, sentMs: number): void;
  /** `sent_ms`: when the attempt was sent; one from before the failure does not tell that it is over. */
  succeeded(healthId: string, nowMs: number, sentMs?: number): void;
  /** A trial ended without telling anything of the endpoint. */
  left(healthId: string): void;
  /** Forgets what stands against endpoints that have become others: with another credential, at another address. */
  forget(hasChanged: (endpointId: string) => boolean): void;
  /** 0 when the endpoint is not cooling down, nor being tried by another request. */
  coolingUntil(healthId: string, nowMs: number): number;
  /** Whether it failed lately more often than now and then. */
  hadOutage(healthId: string, nowMs: number): boolean;
  /** What stands against an endpoint now, as far as this process has seen. */
  condition(healthId: string, nowMs: number): Condition;
  /** What is known of the endpoint, whatever the credential. Cheap: worked out anew once a second at most. */
  performance(endpointId: string, nowMs: number): Performance;
}

/** What is remembered of an endpoint's recent failures. */
interface Memory {
  failure: FailureClass;
  cool_until_ms: number;
  /** Of it, what the upstream told: kept whatever is answered meanwhile. */
  told_until_ms: number;
  /** A trial under way is waited for until then; 0: none. */
  trial_until_ms: number;
  /** In a row, or soon after it had become well. */
  consecutive: number;
  /** It has answered since. */
  is_well: boolean;
  failed_ms: number;
  /** What it was before it fell silent, where nothing else has failed since. */
  before_silence: Memory | 'nothing' | undefined;
  /** Since `since_ms`, halved as time passes. */
  outages: number;
  answers: number;
  since_ms: number;
  outage_ms: number;
}

/** A clock that was set back does not make waits longer: the last failure is now. */
function setBack(memory: Memory, nowMs: number): void {
  const byMs = memory.failed_ms - nowMs;
  memory.cool_until_ms -= byMs;
  memory.told_until_ms -= byMs;
  memory.trial_until_ms -= byMs;
  memory.failed_ms -= byMs;
  memory.since_ms -= byMs;
  memory.outage_ms -= byMs;
}

function newMemory(failure: FailureClass, nowMs: number): Memory {
  return {
    failure,
    cool_until_ms: 0,
    told_until_ms: 0,
    trial_until_ms: 0,
    consecutive: 0,
    is_well: false,
    failed_ms: nowMs,
    before_silence: undefined,
    outages: 0,
    answers: 0,
    since_ms: nowMs,
    outage_ms: Number.NEGATIVE_INFINITY,
  };
}

/** Keeps the counts to about the last `outage_recent_ms`. */
function age(memory: Memory, nowMs: number): void {
  if (nowMs - memory.since_ms < limits.outage_recent_ms) return;
  const isLong = nowMs - memory.since_ms >= 2 * limits.outage_recent_ms;
  memory.outages = isLong ? 0 : memory.outages / 2;
  memory.answers = isLong ? 0 : memory.answers / 2;
  memory.since_ms = nowMs;
}

/** What the caller tells of a failure. */
interface Failed {
  failure: FailureClass;
  retry_after_ms: number | undefined;
  now_ms: number;
  sent_ms: number;
}

/** The wait after so many failures in a row. */
function waitAfter(consecutive: number): number {
  return Math.min(limits.cool_down_ms_default * 2 ** Math.min(consecutive - 1, 10), limits.cool_down_ms_max);
}

/** How long after its last failure an endpoint counts as well for good: its cool-down, as long again, and a recent outage's time. */
function steadyAfter({ consecutive, outage_ms: outageMs }: Memory): number {
  if (outageMs === Number.NEGATIVE_INFINITY) return 0;
  return 2 * waitAfter(consecutive) + limits.outage_recent_ms;
}

/**
 * Remembers endpoints that failed lately: an upstream's own wait when it told one, else a wait that doubles with each failure in
 * a row; that of a rate limit does not, since it ends by the clock. An endpoint that fails again before it was well for as long
 * as it had been out is still in its row: what comes and goes is left alone for longer and longer.
 */
export function createHealth(
  performance: (endpointId: string, nowMs: number) => Performance = () => NO_PERFORMANCE,
): Health {
  const records = new Map<string, Memory>();
  /** Of the calls that were answered, when the last of them was sent. */
  const answered = new Map<string, number>();

  function recall(healthId: string, nowMs: number): Memory | undefined {
    const memory = records.size === 0 ? undefined : records.get(healthId);
    if (memory !== undefined && nowMs < memory.failed_ms) setBack(memory, nowMs);
    return memory;
  }

  function put<V>(into: Map<string, V>, healthId: string, value: V): void {
    into.delete(healthId);
    // A provider that takes any model name makes any number of endpoints: what is oldest is forgotten.
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
      memory.told_until_ms = Math.max(memory.told_until_ms, until);
      memory.cool_until_ms = Math.max(memory.cool_until_ms, until);
    }
    // It was under way when another failed: that it fails too tells nothing new.
    if (memory.consecutive > 0 && sentMs < memory.failed_ms) return;
    memory.failure = failure;
    memory.failed_ms = nowMs;
    memory.trial_until_ms = 0;
    memory.is_well = false;
    if (!isLimit || memory.consecutive === 0) memory.consecutive += 1;
    const isTold = retryAfterMs !== undefined && retryAfterMs > 0;
    if (isTold && (isLimit || memory.consecutive === 1)) return;
    // Who failed again after the wait that it told did not know how long it would be.
    const wait = isLimit ? limits.cool_down_ms_default : waitAfter(memory.consecutive - (isTold ? 1 : 0));
    memory.cool_until_ms = Math.max(memory.cool_until_ms, nowMs + wait);
  }

  return {
    begin(healthId, nowMs) {
      const memory = recall(healthId, nowMs);
      if (memory === undefined || memory.consecutive === 0 || memory.is_well || memory.cool_until_ms > nowMs)
        return 'open';
      if (memory.trial_until_ms > nowMs) return 'busy';
      memory.trial_until_ms = nowMs + limits.cool_down_trial_ms_max;
      return 'trial';
    },
    failed(healthId, failure, retryAfterMs, nowMs, sentMs = nowMs) {
      if (!COUNTED.has(failure)) return;
      const memory = recall(healthId, nowMs) ?? newMemory(failure, nowMs);
      fail(memory, { failure, retry_after_ms: retryAfterMs, now_ms: nowMs, sent_ms: sentMs });
      put(records, healthId, memory);
    },
    silent(healthId, nowMs, sentMs) {
      const memory = recall(healthId, nowMs);
      // Under way at another failure, as in `fail`.
      if (memory !== undefined && memory.consecutive > 0 && sentMs < memory.failed_ms) return;
      if ((answered.get(healthId) ?? Number.NEGATIVE_INFINITY) >= sentMs) return;
      const before = memory?.before_silence ?? (memory === undefined ? 'nothing' : { ...memory });
      const fallen = memory ?? newMemory('timeout', nowMs);
      fail(fallen, { failure: 'timeout', retry_after_ms: undefined, now_ms: nowMs, sent_ms: sentMs });
      fallen.before_silence = before;
      put(records, healthId, fallen);
    },
    heard(healthId, sentMs) {
      const last = answered.get(healthId);
      if (last === undefined || sentMs > last) put(answered, healthId, sentMs);
      const before = records.size === 0 ? undefined : records.get(healthId)?.before_silence;
      if (before === 'nothing') records.delete(healthId);
      else if (before !== undefined) records.set(healthId, before);
    },
    succeeded(healthId, nowMs, sentMs = nowMs) {
      const memory = recall(healthId, nowMs);
      if (memory === undefined) return;
      age(memory, nowMs);
      memory.answers += 1;
      // What was under way before the failure says nothing of what came after it.
      if (sentMs < memory.failed_ms) return;
      memory.trial_until_ms = 0;
      memory.cool_until_ms = memory.told_until_ms;
      if (memory.told_until_ms > nowMs) return;
      memory.is_well = true;
      if (nowMs - memory.failed_ms < steadyAfter(memory)) return;
      memory.consecutive = 0;
      if (memory.outage_ms + limits.outage_recent_ms <= nowMs) records.delete(healthId);
    },
    left(healthId) {
      const memory = records.get(healthId);
      if (memory !== undefined) memory.trial_until_ms = 0;
    },
    forget(hasChanged) {
      // An id begins with its endpoint's, before the first space.
      for (const id of records.keys()) if (hasChanged(id.split(' ', 1)[0] ?? id)) records.delete(id);
    },
    coolingUntil(healthId, nowMs) {
      const memory = recall(healthId, nowMs);
      if (memory === undefined) return 0;
      const until = Math.max(memory.cool_until_ms, memory.trial_until_ms);
      return until > nowMs ? until : 0;
    },
    hadOutage(healthId, nowMs) {
      const memory = recall(healthId, nowMs);
      if (memory === undefined || memory.outage_ms + limits.outage_recent_ms <= nowMs) return false;
      return memory.outages >= (memory.outages + memory.answers) * limits.outage_share_min;
    },
    condition(healthId, nowMs) {
      const memory = recall(healthId, nowMs);
      // After a cool-down it is as bad as it was until somebody has found out.
      if (memory === undefined || memory.consecutive === 0 || memory.is_well) return 'well';
      const { failure } = memory;
      if (failure === 'credential' || failure === 'payment') return 'refused';
      if (failure !== 'rate_limited') return 'failing';
      return memory.cool_until_ms > nowMs ? 'rate_limited' : 'well';
    },
    performance,
  };
}
