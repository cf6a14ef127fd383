import type { ProviderPreferences } from '../schemas/inner.ts';
import type { JsonValue } from '../schemas/json.ts';
import type { Percentiles, Performance } from './health.ts';

type Cutoff = readonly [keyof Percentiles, number];

/** What an endpoint should do better than: tokens a second, and seconds to the first token. */
export interface Cutoffs {
  throughput: readonly Cutoff[];
  latency_s: readonly Cutoff[];
}

const percentiles = ['p50', 'p75', 'p90', 'p99'] as const satisfies (keyof Percentiles)[];

function cutoffs(given: JsonValue | undefined): Cutoff[] {
  if (typeof given === 'number') return [['p50', given]];
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return [];
  return percentiles.flatMap((name): Cutoff[] => {
    const value = given[name];
    return typeof value === 'number' ? [[name, value]] : [];
  });
}

/** The performance that a request would rather have; a plain number is of the p50. Undefined: it names none. */
export function cutoffsOf(preferences: ProviderPreferences): Cutoffs | undefined {
  const { preferred_min_throughput: preferredMinThroughput, preferred_max_latency: preferredMaxLatency } = preferences;
  if (preferredMinThroughput == null && preferredMaxLatency == null) return undefined;
  return { throughput: cutoffs(preferredMinThroughput), latency_s: cutoffs(preferredMaxLatency) };
}

/** Whether an endpoint is known to miss one of them. What nothing is known of misses none. */
export function missesCutoff({ throughput, latency_s: latencyS }: Cutoffs, known: Performance): boolean {
  const { throughput: speed, latency_ms: latencyMs } = known;
  return (
    (speed !== null && throughput.some(([name, least]) => speed[name] < least)) ||
    (latencyMs !== null && latencyS.some(([name, mostS]) => latencyMs[name] > mostS * 1000))
  );
}
