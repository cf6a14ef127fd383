/**
 * Runs of the simulation from the command line: `npm run simulate -- --seeds 1000 --from 1 [--soft] [--plant fault]`.
 * Exits with 1 for a broken rule, a step that no crash hit, or a planted fault that was not found.
 */
import { parseArgs } from 'node:util';
import { FAULTS, plant } from './faults.ts';
import { simulate } from './run.ts';
import { SLICED_STEP, STEPS, type Step } from './steps.ts';
import { loadSubject, SOURCES } from './subject.ts';
import type { Mode, RunReport } from './world.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    /** Estimates instead of worst cases, and slices. */
    soft: { type: 'boolean', default: false },
    /** A name from the table of faults, or `all`. */
    plant: { type: 'string' },
    /** Stops a fault's runs when one has found it. */
    first: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const from = Number(values.from);
const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => from + index);

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function modeOf(seed: number): Mode {
  if (!values.soft) return 'strict';
  return seed % 2 === 0 ? 'soft' : 'sliced';
}

async function runAll(): Promise<boolean> {
  const subject = await loadSubject(SOURCES);
  const began = performance.now();
  const sums: Record<string, number> = {};
  const steps = new Map<Step, number>();
  let broken = 0;
  let events = 0;
  for (const seed of seeds) {
    const report = await simulate(seed, subject, { mode: modeOf(seed) });
    for (const [name, count] of Object.entries(report.counts)) sums[name] = (sums[name] ?? 0) + count;
    for (const [step, count] of report.crashed_at) steps.set(step, (steps.get(step) ?? 0) + count);
    events += report.events;
    if (report.violations.length === 0) continue;
    broken++;
    say(`seed ${seed} (${JSON.stringify(report.plan)}):`);
    for (const { rule, message } of report.violations) say(`  ${rule}: ${message}`);
  }
  const ms = performance.now() - began;
  say(
    `${seeds.length} runs, ${broken} with a broken rule, ${Math.round(ms / seeds.length)} ms a run, ${events} events`,
  );
  for (const [name, sum] of Object.entries(sums)) say(`  ${name.replaceAll('_', ' ')}: ${sum}`);
  const expected: Step[] = [...STEPS];
  if (values.soft) expected.push(SLICED_STEP);
  const missed = expected.filter((step) => !steps.has(step));
  say('crashes by step:');
  for (const [step, count] of [...steps].sort(([a], [b]) => (a < b ? -1 : 1))) say(`  ${step}: ${count}`);
  if (missed.length > 0) say(`no crash hit: ${missed.join(', ')}`);
  return broken === 0 && missed.length === 0;
}

/** Which of the seeds find a fault, and by which rule first. */
async function runPlanted(name: string): Promise<boolean> {
  const fault = FAULTS.find((known) => known.name === name);
  if (fault === undefined)
    throw new Error(`There is no fault "${name}"; there are ${FAULTS.map((one) => one.name).join(', ')}`);
  const copy = plant(fault);
  try {
    const subject = await loadSubject(copy.folder);
    const rules = new Map<string, number>();
    let violations = 0;
    let tried = 0;
    for (const seed of seeds) {
      tried++;
      const report: RunReport = await simulate(seed, subject, fault.options);
      const [first] = report.violations;
      if (first === undefined) continue;
      violations++;
      for (const rule of new Set(report.violations.map((one) => one.rule))) rules.set(rule, (rules.get(rule) ?? 0) + 1);
      if (values.first) break;
    }
    const share = Math.round((100 * violations) / tried);
    const by = [...rules].sort((a, b) => b[1] - a[1]).map(([rule, count]) => `${rule} ${count}`);
    if (values.json) say(JSON.stringify({ name, tried, violations, rules: Object.fromEntries(rules) }));
    else
      say(
        `${name}: found in ${violations} of ${tried} runs (${share} %) by ${by.join(', ')}; the protocol's paper: ${fault.paper}`,
      );
    return violations > 0;
  } finally {
    copy.remove();
  }
}

let isGood = true;
if (values.plant === undefined) isGood = await runAll();
else {
  const names = values.plant === 'all' ? FAULTS.map(({ name }) => name) : [values.plant];
  for (const name of names) isGood = (await runPlanted(name)) && isGood;
}
process.exitCode = isGood ? 0 : 1;
