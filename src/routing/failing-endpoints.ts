import type { Endpoint } from '../catalog/model.ts';
import { healthId } from './candidate.ts';
import type { Counts } from './endpoint-bucket.ts';
import type { EndpointStatistics } from './endpoint-statistics.ts';
import type { Condition, Failures, Health } from './health.ts';

/** From this share of failed calls in a day on, an endpoint is listed although it answers. */
const ERROR_SHARE_MIN = 0.05;
const HALF_HOUR_MINUTES = 30;
const DAY_MINUTES = 1_440;

/** The state of an endpoint that fails, or failed lately, at the gateway's own account. */
export interface FailingEndpoint {
  endpoint: Endpoint;
  /** A service tier with prices of its own fails separately. */
  tier: string | undefined;
  condition: Condition;
  failures: Failures | undefined;
  cooling_until_ms: number;
  half_hour: Counts;
  day: Counts;
}

const SEVERITY: Readonly<Record<Condition, number>> = { refused: 0, failing: 1, rate_limited: 2, well: 3 };

function errorShare({ successes, errors }: Counts): number {
  return errors === 0 ? 0 : errors / (successes + errors);
}

/** The endpoints that fail now, or failed too often in the last day: the most severe first, then those that fail most. Pure. */
export function failingEndpoints(
  endpoints: readonly Endpoint[],
  known: {
    health: Pick<Health, 'condition' | 'failures' | 'coolingUntil'>;
    statistics: Pick<EndpointStatistics, 'counts'>;
    now_ms: number;
  },
): FailingEndpoint[] {
  const { health, statistics, now_ms: nowMs } = known;
  const failing: FailingEndpoint[] = [];
  for (const endpoint of endpoints) {
    for (const tier of [undefined, ...Object.keys(endpoint.service_tiers ?? {})]) {
      const id = healthId(tier === undefined ? { endpoint } : { endpoint, tier });
      const condition = health.condition(id, nowMs);
      const day = statistics.counts(id, DAY_MINUTES, nowMs);
      if (condition === 'well' && errorShare(day) < ERROR_SHARE_MIN) continue;
      failing.push({
        endpoint,
        tier,
        condition,
        failures: health.failures(id, nowMs),
        cooling_until_ms: health.coolingUntil(id, nowMs),
        half_hour: statistics.counts(id, HALF_HOUR_MINUTES, nowMs),
        day,
      });
    }
  }
  return failing.sort(
    (a, b) =>
      SEVERITY[a.condition] - SEVERITY[b.condition] ||
      errorShare(b.day) - errorShare(a.day) ||
      (a.endpoint.id < b.endpoint.id ? -1 : 1),
  );
}
