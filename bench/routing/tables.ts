import { digits, percent, table, times } from '../report.ts';
import { LARGE } from './large-catalog.ts';
import type { Listings } from './listings.ts';
import type { PlanningRow } from './planning.ts';
import type { Scenario } from './scenarios.ts';
import type { Figures } from './simulate.ts';

const MEBIBYTE = 1_048_576;
const KIBIBYTE = 1_024;

/** Three decimals, truncated instead of rounded: 100 % means that nothing failed. */
const share = (part: number) => `${digits(3)(Math.floor(part * 100_000) / 1_000)} %`;
const ms = digits(0);

/** One scenario, with a row for each strategy. */
export function scenarioTable(scenario: Scenario, rows: readonly { name: string; figures: Figures }[]): string {
  const providers = scenario.providers.map(({ name }) => name);
  const head = [
    '',
    'success',
    'attempts',
    'cost',
    'lost p99',
    'added p50',
    'p95',
    'p99 ms',
    ...providers.map((name) => `by ${name}`),
  ];
  const cells = rows.map(({ name, figures }) => [
    name,
    share(figures.success),
    digits(3)(figures.attempts),
    times(3)(figures.cost_ratio),
    ms(figures.lost_p99_ms),
    ms(figures.added_p50_ms),
    ms(figures.added_p95_ms),
    ms(figures.added_p99_ms),
    ...providers.map((provider) => percent(figures.shares[provider] ?? 0)),
  ]);
  return table(`${scenario.name}: ${scenario.description}`, head, cells);
}

/** Planning with the large catalog. */
export function planningTable(rows: readonly PlanningRow[]): string {
  const { models, endpoints } = LARGE;
  return table(
    `Planning a request, ${digits(0)(models)} models and ${digits(0)(endpoints)} endpoints: µs from the model's name to the ordered plan`,
    ['', 'candidates', 'CPU', 'p50', 'p99', 'cold'],
    rows.map(({ kind, candidates, cpu_us, p50_us, p99_us, cold_us }) => [
      kind,
      ...[candidates, cpu_us, p50_us, p99_us, cold_us].map(digits(1)),
    ]),
  );
}

/** The catalog's answers with the large catalog. */
export function listingTable({ ready_ms, idle_bytes, rows }: Listings): string {
  const { models, endpoints } = LARGE;
  return table(
    `The catalog over HTTP, ${digits(0)(models)} models and ${digits(0)(endpoints)} endpoints; ready after ${ms(ready_ms)} ms, idle with ${ms(idle_bytes / MEBIBYTE)} MiB`,
    ['', 'status', 'KiB', 'first ms', 'CPU ms', 'p50 ms', 'p99 ms'],
    rows.map(({ path, status, bytes, first_ms, cpu_ms, p50_ms, p99_ms }) => [
      path,
      String(status),
      ms(bytes / KIBIBYTE),
      ...[first_ms, cpu_ms, p50_ms, p99_ms].map(digits(2)),
    ]),
  );
}
