import type { ProviderPreferences } from '../schemas/inner.ts';
import type { JsonValue } from '../schemas/json.ts';
import type { Percentiles, Performance } from './health.ts';

type Cutoff = readonly [keyof Percentiles, number];

/** The performance that an endpoint should exceed: tokens per second, and seconds to the first token. */
export interface Cutoffs {
  throughput: readonly Cutoff[];
  latency_s: readonly Cutoff[];
}

const percentiles = ['p50', 'p75', 'p90', 'p99'] as const satisfies (keyof Percentiles)[];

function cutoffs(value: JsonValue | undefined): Cutoff[] {
  if (typeof value === 'number') return [['p50', value]];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return percentiles.flatMap((name): Cutoff[] => {
    const limit = value[name];
    return typeof limit === 'number' ? [[name, limit]] : [];
  });
}

/** The performance that a request prefers; a plain number applies to the p50. Undefined if not set. */
export function cutoffsOf(preferences: ProviderPreferences): Cutoffs | undefined {
  const { preferred_min_throughput: preferredMinThroughput, preferred_max_latency: preferredMaxLatency } = preferences;
  if (preferredMinThroughput == null && preferredMaxLatency == null) return undefined;
  return { throughput: cutoffs(preferredMinThroughput), latency_s: cutoffs(preferredMaxLatency) };
}

/** Whether an endpoint is known to miss a cutoff. Unknown performance misses none. */
export function missesCutoff({ throughput, latency_s: latencyS }: Cutoffs, known: Performance): boolean {
  const { throughput: speed, latency_ms: latencyMs } = known;
  return (
    (speed !== null && throughput.some(([name, min]) => speed[name] < min)) ||
    (latencyMs !== null && latencyS.some(([name, maxS]) => latencyMs[name] > maxS * 1000))
  );
}
