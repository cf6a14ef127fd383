import { Random } from '../../test/simulation/random.ts';
import { createFarSide, workloadOf } from './far-side.ts';
import type { Scenario } from './scenarios.ts';
import { CHEAPEST_HEALTHY, FASTEST_HEALTHY, type RequestOutcome, type Strategy } from './strategy.ts';
import { takeTime } from './virtual-time.ts';

/** How long virtual time continues after the last request, until every attempt has ended. */
const LATE_MS = 7_200_000;

export interface RunOptions {
  seed: number;
  minutes: number;
  per_second: number;
  first_token_ms_max: number;
}

/** Every request of one run, in order of arrival. */
export interface Run {
  served: readonly RequestOutcome[];
  bills_nano: readonly number[];
}

/** Runs one strategy through a scenario in virtual time; the same options give the same run. */
export async function runStrategy(strategy: Strategy, scenario: Scenario, options: RunOptions): Promise<Run> {
  const workload = workloadOf(options.seed, options);
  const time = takeTime();
  try {
    const farSide = createFarSide(scenario, options.seed, time.elapsedMs);
    const { first_token_ms_max } = options;
    const route = strategy.create({ time, farSide, random: new Random(options.seed * 31 + 7), first_token_ms_max });
    const served: RequestOutcome[] = [];
    let failure: unknown;
    for (const wanted of workload) {
      time.after(wanted.at_ms, () => {
        route(wanted).then(
          (one) => {
            served[wanted.index] = one;
          },
          (error: unknown) => {
            failure ??= error;
          },
        );
      });
    }
    await time.runUntil(options.minutes * 60_000 + LATE_MS);
    if (failure !== undefined) throw failure;
    const billsNano = workload.map(({ index }) => farSide.billedNano(index));
    for (const { index } of workload) if (served[index] === undefined) throw new Error(`request ${index} never ended`);
    return { served, bills_nano: billsNano };
  } finally {
    time.restore();
  }
}

/** The results of a strategy in one scenario, over some seeds. */
export interface Figures {
  requests: number;
  /** The requests that arrived while at least one provider would have answered. */
  up: number;
  /** The share of these requests that got a whole answer. */
  success: number;
  /** The share of all requests that got a whole answer. */
  success_all: number;
  attempts: number;
  /** The time of failed attempts before the one that answered. */
  lost_p99_ms: number;
  /** The delay of the first token compared with the fastest healthy provider. */
  added_p50_ms: number;
  added_p95_ms: number;
  added_p99_ms: number;
  /** The bill for answered requests, relative to their cost at the cheapest healthy provider. */
  cost_ratio: number;
  /** Answers by provider. */
  shares: Record<string, number>;
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The results of the best choices. */
export interface Oracles {
  cheapest: Run;
  fastest: Run;
}

export async function askOracles(scenario: Scenario, options: RunOptions): Promise<Oracles> {
  const cheapest = await runStrategy(CHEAPEST_HEALTHY, scenario, options);
  return { cheapest, fastest: await runStrategy(FASTEST_HEALTHY, scenario, options) };
}

/** Compares the runs of one strategy, one for each seed, with those of the oracles. */
export function figuresOf(runs: readonly { run: Run; oracles: Oracles }[]): Figures {
  const added: number[] = [];
  const lost: number[] = [];
  const by = new Map<string, number>();
  const count = { requests: 0, up: 0, ok_up: 0, ok: 0, attempts: 0, cost: 0, least_cost: 0 };
  for (const { run, oracles } of runs) {
    for (const [index, served] of run.served.entries()) {
      const isUp = oracles.cheapest.served[index]?.ok === true;
      count.requests += 1;
      count.attempts += served.attempts;
      if (isUp) count.up += 1;
      if (isUp && served.ok) count.ok_up += 1;
      if (!served.ok) continue;
      count.ok += 1;
      lost.push(served.lost_ms);
      by.set(served.by ?? '', (by.get(served.by ?? '') ?? 0) + 1);
      const bestMs = oracles.fastest.served[index]?.first_ms;
      if (bestMs !== undefined && served.first_ms !== undefined) added.push(served.first_ms - bestMs);
      const least = oracles.cheapest.bills_nano[index] ?? 0;
      if (!isUp) continue;
      count.cost += run.bills_nano[index] ?? 0;
      count.least_cost += least;
    }
  }
  added.sort((a, b) => a - b);
  lost.sort((a, b) => a - b);
  return {
    requests: count.requests,
    up: count.up,
    success: count.ok_up / count.up,
    success_all: count.ok / count.requests,
    attempts: count.attempts / count.requests,
    lost_p99_ms: percentile(lost, 0.99),
    added_p50_ms: percentile(added, 0.5),
    added_p95_ms: percentile(added, 0.95),
    added_p99_ms: percentile(added, 0.99),
    cost_ratio: count.cost / count.least_cost,
    shares: Object.fromEntries([...by].sort().map(([name, times]) => [name, times / count.ok])),
  };
}
