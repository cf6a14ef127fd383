import type { EndpointStatistics } from './endpoint-statistics.ts';
import type { Figures } from './endpoint-windows.ts';
import type { Condition, Health } from './health.ts';

/** The uptimes below which an endpoint is shown as degraded, and as down (public service, guide "For providers"). */
const UPTIME_DEGRADED_PERCENT = 95;
const UPTIME_DOWN_PERCENT = 80;

/** The public status of an endpoint: 0, or below 0 by severity. */
export type EndpointStatus = '0' | '-1' | '-2' | '-3' | '-5' | '-10';

/**
 * The most severe known condition: -10 if the gateway's own credential or account is refused; -5 if fewer than 80 percent of the calls
 * are answered; -3 if it failed last and was not tried again since; -2 if fewer than 95 percent are answered; -1 if it is rate-limited;
 * 0 otherwise. The values are the public service's, whose meanings are not public; the shares are from its guide "For providers".
 */
export function statusOf(
  condition: Condition,
  { uptime_last_5m: uptimeLast5m, uptime_last_30m: uptimeLast30m }: Pick<Figures, 'uptime_last_5m' | 'uptime_last_30m'>,
): EndpointStatus {
  const uptime = uptimeLast5m ?? uptimeLast30m ?? 100;
  if (condition === 'refused') return '-10';
  if (uptime < UPTIME_DOWN_PERCENT) return '-5';
  if (condition === 'failing') return '-3';
  if (uptime < UPTIME_DEGRADED_PERCENT) return '-2';
  return condition === 'rate_limited' ? '-1' : '0';
}

/** The statistics in the public record of an endpoint. `id`: see `servedId`. */
export function statisticsShown(
  id: string,
  known: { health: Pick<Health, 'condition'>; statistics: Pick<EndpointStatistics, 'figures'>; now_ms: number },
): Figures & { status: EndpointStatus } {
  const figures = known.statistics.figures(id, known.now_ms);
  return { ...figures, status: statusOf(known.health.condition(id, known.now_ms), figures) };
}

/** The status of every endpoint with recent calls, for monitoring. */
export function* endpointStates(known: {
  health: Pick<Health, 'condition'>;
  statistics: Pick<EndpointStatistics, 'performance' | 'known'>;
  now_ms: number;
}): Generator<{ endpoint: string; uptime: number | null; status: number }, void, undefined> {
  for (const id of known.statistics.known()) {
    const { uptime_5m: uptime5m, uptime_30m: uptime30m } = known.statistics.performance(id, known.now_ms);
    const status = statusOf(known.health.condition(id, known.now_ms), {
      uptime_last_5m: uptime5m,
      uptime_last_30m: uptime30m,
    });
    yield { endpoint: id, uptime: uptime5m === null ? null : uptime5m / 100, status: Number(status) };
  }
}
