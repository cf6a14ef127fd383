import { limits } from '../limits.ts';
import type { FailureClass } from '../providers/dialect.ts';

/** What is remembered of an endpoint's recent failures. */
interface Memory {
  cool_until_ms: number;
  consecutive: number;
}

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

/**
 * Which endpoints are cooling down. A cool-down lowers an endpoint's rank and never excludes it: the last endpoint left
 * is still tried. Times are given by the caller.
 */
export interface Health {
  failed(endpoint_id: string, failure: FailureClass, retry_after_ms: number | undefined, now_ms: number): void;
  succeeded(endpoint_id: string): void;
  /** 0 when the endpoint is not cooling down. */
  coolingUntil(endpoint_id: string, now_ms: number): number;
}

/** Remembers endpoints that failed lately: an upstream's own wait when it told one, else a wait that doubles with each failure in a row. */
export function createHealth(): Health {
  const records = new Map<string, Memory>();
  return {
    failed(endpoint_id, failure, retry_after_ms, now_ms) {
      if (!COUNTED.has(failure)) return;
      const record = records.get(endpoint_id) ?? { cool_until_ms: 0, consecutive: 0 };
      record.consecutive += 1;
      const doubled = limits.cool_down_ms_default * 2 ** Math.min(record.consecutive - 1, 10);
      const wait = Math.min(
        retry_after_ms ?? doubled,
        retry_after_ms === undefined ? limits.cool_down_ms_max : limits.retry_after_ms_max,
      );
      record.cool_until_ms = Math.max(record.cool_until_ms, now_ms + wait);
      records.delete(endpoint_id);
      // A provider that takes any model name makes any number of endpoints: the one that failed longest ago is forgotten.
      if (records.size >= limits.health_endpoints_max) records.delete(records.keys().next().value ?? '');
      records.set(endpoint_id, record);
    },
    succeeded(endpoint_id) {
      if (records.size > 0) records.delete(endpoint_id);
    },
    coolingUntil(endpoint_id, now_ms) {
      const until = records.get(endpoint_id)?.cool_until_ms ?? 0;
      return until > now_ms ? until : 0;
    },
  };
}
