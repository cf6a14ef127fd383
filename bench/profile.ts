import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CANDIDATE_NAMES, type Candidate, missing, start, startUpstream } from './candidates.ts';
import { chunkCpu, throughput, warm } from './measure.ts';
import { pinSelf, stopAll } from './process.ts';
import { digits, table } from './report.ts';

const USAGE = `node bin/launch.cjs bench/profile.ts [options]
  --server NAME   which server (gateway)
  --streams       profile 200 streams instead of whole answers
  --seconds N     how long (10)
  --top N         how many functions (40)
The raw profiles stay in bench/results/profile.tmp, for Chrome's or an editor's viewer.
`;

/** The parts of a V8 CPU profile that are read here (Chrome DevTools Protocol, Profiler.Profile). */
interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number }; children?: number[] }[];
  samples: number[];
  timeDeltas: number[];
}

interface Cost {
  name: string;
  self_us: number;
}

const ROOT = join(import.meta.dirname, '..');

function place(frame: CpuProfile['nodes'][number]['callFrame']): string {
  const file = frame.url.replace(`file://${ROOT}/`, '');
  const where = file === '' ? '' : ` ${file}:${frame.lineNumber + 1}`;
  return `${frame.functionName === '' ? '(anonymous)' : frame.functionName}${where}`;
}

/** Which part of the program a function belongs to: a folder of ours, a package, or the runtime. */
function part(name: string): string {
  const file = name.slice(name.indexOf(' ') + 1);
  const dependency = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1];
  if (dependency !== undefined) return dependency;
  const own = /^((?:src|bench)\/[^/:]+)/.exec(file)?.[1];
  if (own !== undefined) return own;
  return file.startsWith('node:') ? file.replace(/:\d+$/, '') : name.startsWith('(') ? name : 'native';
}

function selfTimes(profile: CpuProfile): Cost[] {
  const names = new Map(profile.nodes.map((node) => [node.id, place(node.callFrame)]));
  const costs = new Map<string, number>();
  for (const [index, sample] of profile.samples.entries()) {
    const name = names.get(sample) ?? '?';
    costs.set(name, (costs.get(name) ?? 0) + (profile.timeDeltas[index] ?? 0));
  }
  return byCost(costs);
}

function byCost(costs: ReadonlyMap<string, number>): Cost[] {
  return [...costs].map(([name, selfUs]) => ({ name, self_us: selfUs })).sort((a, b) => b.self_us - a.self_us);
}

function printProfile(file: string, top: number): void {
  const costs = selfTimes(JSON.parse(readFileSync(file, 'utf8')) as CpuProfile);
  const busy = costs.filter(({ name }) => name !== '(idle)');
  const busyUs = busy.reduce((sum, { self_us }) => sum + self_us, 0);
  const parts = new Map<string, number>();
  for (const { name, self_us } of busy) parts.set(part(name), (parts.get(part(name)) ?? 0) + self_us);
  const rows = (all: readonly Cost[], count: number) =>
    all
      .slice(0, count)
      .map(({ name, self_us }) => [name, digits(1)((self_us / busyUs) * 100), digits(0)(self_us / 1_000)]);
  const head = ['', '% of busy', 'self ms'];
  process.stdout.write(`${table(`${file}: by part`, head, rows(byCost(parts), 25))}\n`);
  process.stdout.write(`${table(`${file}: by function`, head, rows(busy, top))}\n`);
}

const { values } = parseArgs({
  options: {
    server: { type: 'string', default: 'gateway' },
    streams: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '10' },
    top: { type: 'string', default: '40' },
    help: { type: 'boolean', default: false },
  },
});

async function profile(directory: string): Promise<void> {
  const name = CANDIDATE_NAMES.find((known) => known === values.server && known !== 'direct');
  const why = name === undefined ? 'no such server' : missing(name);
  if (name === undefined || why !== undefined) throw new Error(`${values.server}: ${why}`);
  const cores = pinSelf();
  const upstream = await startUpstream(directory, cores?.ends);
  const site = { directory, upstream_port: upstream.target.port, core: cores?.server };
  const flags = ['--cpu-prof', `--cpu-prof-dir=${directory}`, '--cpu-prof-interval=500'];
  const candidate: Candidate = await start(name, site, { node_flags: flags });
  await warm(candidate, 1_000);
  const windowMs = Number(values.seconds) * 1_000;
  const window = values.streams ? await chunkCpu(candidate, 200, windowMs) : await throughput(candidate, 64, windowMs);
  const perSecond = ((values.streams ? window.chunks : window.completed) / window.elapsed_ms) * 1_000;
  process.stdout.write(
    `${name}: ${digits(0)(perSecond)} ${values.streams ? 'chunks' : 'answers'}/s under the profiler, ${window.failed} failed\n\n`,
  );
  // The profile is written when the process ends by itself, which every candidate does at SIGTERM.
  await candidate.program.stop();
  for (const file of readdirSync(directory).filter((entry) => entry.endsWith('.cpuprofile'))) {
    printProfile(join(directory, file), Number(values.top));
  }
}

if (values.help) {
  process.stdout.write(USAGE);
} else {
  const directory = join(import.meta.dirname, 'results/profile.tmp');
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  try {
    await profile(directory);
  } finally {
    await stopAll();
  }
}
