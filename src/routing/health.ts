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
  begin(health_id: string, now_ms: number): Turn;
  /** `sent_ms`: when the attempt was sent; those under way at a failure that fail as well are one with it. */
  failed(
    health_id: string,
    failure: FailureClass,
    retry_after_ms: number | undefined,
    now_ms: number,
    sent_ms?: number,
  ): void;
  /**
   * A call that was sent then has had no answer for much longer than its endpoint ever took. A failure, unless one that was sent
   * no earlier was answered: then it is the call that takes long.
   */
  silent(health_id: string, now_ms: number, sent_ms: number): void;
  /** A call that was sent then is answered, or begins to be: ends what silence alone stands against the endpoint. */
  heard(health_id: string, sent_ms: number): void;
  /** `sent_ms`: when the attempt was sent; one from before the failure does not tell that it is over. */
  succeeded(health_id: string, now_ms: number, sent_ms?: number): void;
  /** A trial ended without telling anything of the endpoint. */
  left(health_id: string): void;
  /** Forgets what stands against endpoints that have become others: with another credential, at another address. */
  forget(has_changed: (endpoint_id: string) => boolean): void;
  /** 0 when the endpoint is not cooling down, nor being tried by another request. */
  coolingUntil(health_id: string, now_ms: number): number;
  /** Whether it failed lately more often than now and then. */
  hadOutage(health_id: string, now_ms: number): boolean;
  /** What stands against an endpoint now, as far as this process has seen. */
  condition(health_id: string, now_ms: number): Condition;
  /** What is known of the endpoint, whatever the credential. Cheap: worked out anew once a second at most. */
  performance(endpoint_id: string, now_ms: number): Performance;
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
function setBack(memory: Memory, now_ms: number): void {
  const by_ms = memory.failed_ms - now_ms;
  memory.cool_until_ms -= by_ms;
  memory.told_until_ms -= by_ms;
  memory.trial_until_ms -= by_ms;
  memory.failed_ms -= by_ms;
  memory.since_ms -= by_ms;
  memory.outage_ms -= by_ms;
}

function newMemory(failure: FailureClass, now_ms: number): Memory {
  return {
    failure,
    cool_until_ms: 0,
    told_until_ms: 0,
    trial_until_ms: 0,
    consecutive: 0,
    is_well: false,
    failed_ms: now_ms,
    before_silence: undefined,
    outages: 0,
    answers: 0,
    since_ms: now_ms,
    outage_ms: Number.NEGATIVE_INFINITY,
  };
}

/** Keeps the counts to about the last `outage_recent_ms`. */
function age(memory: Memory, now_ms: number): void {
  if (now_ms - memory.since_ms < limits.outage_recent_ms) return;
  const is_long = now_ms - memory.since_ms >= 2 * limits.outage_recent_ms;
  memory.outages = is_long ? 0 : memory.outages / 2;
  memory.answers = is_long ? 0 : memory.answers / 2;
  memory.since_ms = now_ms;
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
function steadyAfter({ consecutive, outage_ms }: Memory): number {
  if (outage_ms === Number.NEGATIVE_INFINITY) return 0;
  return 2 * waitAfter(consecutive) + limits.outage_recent_ms;
}

/**
 * Remembers endpoints that failed lately: an upstream's own wait when it told one, else a wait that doubles with each failure in
 * a row; that of a rate limit does not, since it ends by the clock. An endpoint that fails again before it was well for as long
 * as it had been out is still in its row: what comes and goes is left alone for longer and longer.
 */
export function createHealth(
  performance: (endpoint_id: string, now_ms: number) => Performance = () => NO_PERFORMANCE,
): Health {
  const records = new Map<string, Memory>();
  /** Of the calls that were answered, when the last of them was sent. */
  const answered = new Map<string, number>();

  function recall(health_id: string, now_ms: number): Memory | undefined {
    const memory = records.size === 0 ? undefined : records.get(health_id);
    if (memory !== undefined && now_ms < memory.failed_ms) setBack(memory, now_ms);
    return memory;
  }

  function put<V>(into: Map<string, V>, health_id: string, value: V): void {
    into.delete(health_id);
    // A provider that takes any model name makes any number of endpoints: what is oldest is forgotten.
    if (into.size >= limits.health_endpoints_max) into.delete(into.keys().next().value ?? '');
    into.set(health_id, value);
  }

  function fail(memory: Memory, { failure, retry_after_ms, now_ms, sent_ms }: Failed): void {
    age(memory, now_ms);
    memory.before_silence = undefined;
    const is_limit = failure === 'rate_limited';
    if (!is_limit) {
      memory.outages += 1;
      memory.outage_ms = now_ms;
    }
    if (retry_after_ms !== undefined) {
      const until = now_ms + Math.min(retry_after_ms, limits.retry_after_ms_max);
      memory.told_until_ms = Math.max(memory.told_until_ms, until);
      memory.cool_until_ms = Math.max(memory.cool_until_ms, until);
    }
    // It was under way when another failed: that it fails too tells nothing new.
    if (memory.consecutive > 0 && sent_ms < memory.failed_ms) return;
    memory.failure = failure;
    memory.failed_ms = now_ms;
    memory.trial_until_ms = 0;
    memory.is_well = false;
    if (!is_limit || memory.consecutive === 0) memory.consecutive += 1;
    const is_told = retry_after_ms !== undefined && retry_after_ms > 0;
    if (is_told && (is_limit || memory.consecutive === 1)) return;
    // Who failed again after the wait that it told did not know how long it would be.
    const wait = is_limit ? limits.cool_down_ms_default : waitAfter(memory.consecutive - (is_told ? 1 : 0));
    memory.cool_until_ms = Math.max(memory.cool_until_ms, now_ms + wait);
  }

  return {
    begin(health_id, now_ms) {
      const memory = recall(health_id, now_ms);
      if (memory === undefined || memory.consecutive === 0 || memory.is_well || memory.cool_until_ms > now_ms)
        return 'open';
      if (memory.trial_until_ms > now_ms) return 'busy';
      memory.trial_until_ms = now_ms + limits.cool_down_trial_ms_max;
      return 'trial';
    },
    failed(health_id, failure, retry_after_ms, now_ms, sent_ms = now_ms) {
      if (!COUNTED.has(failure)) return;
      const memory = recall(health_id, now_ms) ?? newMemory(failure, now_ms);
      fail(memory, { failure, retry_after_ms, now_ms, sent_ms });
      put(records, health_id, memory);
    },
    silent(health_id, now_ms, sent_ms) {
      const memory = recall(health_id, now_ms);
      // Under way at another failure, as in `fail`.
      if (memory !== undefined && memory.consecutive > 0 && sent_ms < memory.failed_ms) return;
      if ((answered.get(health_id) ?? Number.NEGATIVE_INFINITY) >= sent_ms) return;
      const before = memory?.before_silence ?? (memory === undefined ? 'nothing' : { ...memory });
      const fallen = memory ?? newMemory('timeout', now_ms);
      fail(fallen, { failure: 'timeout', retry_after_ms: undefined, now_ms, sent_ms });
      fallen.before_silence = before;
      put(records, health_id, fallen);
    },
    heard(health_id, sent_ms) {
      const last = answered.get(health_id);
      if (last === undefined || sent_ms > last) put(answered, health_id, sent_ms);
      const before = records.size === 0 ? undefined : records.get(health_id)?.before_silence;
      if (before === 'nothing') records.delete(health_id);
      else if (before !== undefined) records.set(health_id, before);
    },
    succeeded(health_id, now_ms, sent_ms = now_ms) {
      const memory = recall(health_id, now_ms);
      if (memory === undefined) return;
      age(memory, now_ms);
      memory.answers += 1;
      // What was under way before the failure says nothing of what came after it.
      if (sent_ms < memory.failed_ms) return;
      memory.trial_until_ms = 0;
      memory.cool_until_ms = memory.told_until_ms;
      if (memory.told_until_ms > now_ms) return;
      memory.is_well = true;
      if (now_ms - memory.failed_ms < steadyAfter(memory)) return;
      memory.consecutive = 0;
      if (memory.outage_ms + limits.outage_recent_ms <= now_ms) records.delete(health_id);
    },
    left(health_id) {
      const memory = records.get(health_id);
      if (memory !== undefined) memory.trial_until_ms = 0;
    },
    forget(has_changed) {
      // An id begins with its endpoint's, before the first space.
      for (const id of records.keys()) if (has_changed(id.split(' ', 1)[0] ?? id)) records.delete(id);
    },
    coolingUntil(health_id, now_ms) {
      const memory = recall(health_id, now_ms);
      if (memory === undefined) return 0;
      const until = Math.max(memory.cool_until_ms, memory.trial_until_ms);
      return until > now_ms ? until : 0;
    },
    hadOutage(health_id, now_ms) {
      const memory = recall(health_id, now_ms);
      if (memory === undefined || memory.outage_ms + limits.outage_recent_ms <= now_ms) return false;
      return memory.outages >= (memory.outages + memory.answers) * limits.outage_share_min;
    },
    condition(health_id, now_ms) {
      const memory = recall(health_id, now_ms);
      // After a cool-down it is as bad as it was until somebody has found out.
      if (memory === undefined || memory.consecutive === 0 || memory.is_well) return 'well';
      const { failure } = memory;
      if (failure === 'credential' || failure === 'payment') return 'refused';
      if (failure !== 'rate_limited') return 'failing';
      return memory.cool_until_ms > now_ms ? 'rate_limited' : 'well';
    },
    performance,
  };
}
