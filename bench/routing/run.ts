import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GATEWAY } from './gateway.ts';
import { largeConfig } from './large-catalog.ts';
import { type Listings, measureListings } from './listings.ts';
import { LITELLM } from './litellm.ts';
import { measurePlanning, type PlanningRow } from './planning.ts';
import { PORTKEY } from './portkey.ts';
import { SCENARIOS } from './scenarios.ts';
import { askOracles, type Figures, figuresOf, type Oracles, type RunOptions, runStrategy } from './simulate.ts';
import { CHEAPEST_HEALTHY, FASTEST_HEALTHY, SIMPLE } from './strategy.ts';
import { listingTable, planningTable, scenarioTable } from './tables.ts';

/** The measurements of routing and of the catalog, which need no peers and no load. */
export const ROUTING_KINDS = ['routing', 'planning', 'models'] as const;
export type RoutingKind = (typeof ROUTING_KINDS)[number];

const SIMULATED = { minutes: 120, per_second: 3, first_token_ms_max: 30_000 };
const STRATEGIES = [...GATEWAY, ...SIMPLE, ...LITELLM, ...PORTKEY];

interface ScenarioRows {
  scenario: string;
  rows: { name: string; description: string; figures: Figures }[];
}

/** How the table is computed and read; the reasons are in the README of the parent directory. */
function preamble(seeds: number): string {
  const { minutes, per_second, first_token_ms_max } = SIMULATED;
  return `Routing through two bad hours: ${minutes} virtual minutes, ${per_second} requests/s, ${seeds === 1 ? 'one seed' : `${seeds} seeds`}, streams; every strategy gives an attempt up after ${first_token_ms_max / 1_000} s without a token.
success: whole answers, of the requests that came while some provider would have answered. cost: what providers charged for
answered requests, over the same at the cheapest healthy one. lost: what failed attempts took before the one that answered.
added: the first token, later than at the fastest healthy provider. Times in ms. Oracles know what will happen.\n`;
}

async function simulateAll(seeds: number, print: (text: string) => void): Promise<ScenarioRows[]> {
  const all: ScenarioRows[] = [];
  print(preamble(seeds));
  for (const scenario of SCENARIOS) {
    const known: { options: RunOptions; oracles: Oracles }[] = [];
    for (let seed = 1; seed <= seeds; seed += 1) {
      const options: RunOptions = { seed, ...SIMULATED };
      known.push({ options, oracles: await askOracles(scenario, options) });
    }
    const rows: ScenarioRows['rows'] = [
      [CHEAPEST_HEALTHY, 'cheapest'] as const,
      [FASTEST_HEALTHY, 'fastest'] as const,
    ].map(([{ name, description }, which]) => ({
      name,
      description,
      figures: figuresOf(known.map(({ oracles }) => ({ run: oracles[which], oracles }))),
    }));
    for (const strategy of STRATEGIES) {
      const runs = [];
      for (const { options, oracles } of known) {
        runs.push({ run: await runStrategy(strategy, scenario, options), oracles });
      }
      rows.push({ name: strategy.name, description: strategy.description, figures: figuresOf(runs) });
    }
    print(scenarioTable(scenario, rows));
    all.push({ scenario: scenario.name, rows });
  }
  return all;
}

/** The measured results. Those not requested are not set. */
export interface RoutingMeasured {
  routing?: ScenarioRows[];
  planning?: PlanningRow[];
  models?: Listings;
}

/**
 * Measures and prints the requested parts. The simulation also writes its tables beside this file; they are the same on
 * every machine.
 */
export async function measureRouting(
  kinds: readonly string[],
  {
    directory,
    core,
    full,
    print,
  }: { directory: string; core: number | undefined; full: boolean; print(text: string): void },
): Promise<RoutingMeasured> {
  const measured: RoutingMeasured = {};
  if (kinds.length === 0) return measured;
  const configFile = join(directory, 'large.yaml');
  writeFileSync(configFile, JSON.stringify(largeConfig()));
  if (kinds.includes('planning')) {
    measured.planning = measurePlanning(configFile, full ? 50_000 : 5_000);
    print(planningTable(measured.planning));
  }
  if (kinds.includes('models')) {
    measured.models = await measureListings(configFile, { directory, core, repeats: full ? 1_000 : 100 });
    print(listingTable(measured.models));
  }
  if (kinds.includes('routing')) {
    const output: string[] = [];
    measured.routing = await simulateAll(full ? 3 : 1, (text) => {
      output.push(text);
      print(text);
    });
    writeFileSync(join(import.meta.dirname, 'results.txt'), output.join('\n'));
    writeFileSync(join(import.meta.dirname, 'results.json'), `${JSON.stringify(measured.routing, null, 2)}\n`);
  }
  return measured;
}
