import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { aimsTable } from './aims.ts';
import {
  CANDIDATE_NAMES,
  type Candidate,
  type CandidateName,
  isPeer,
  missing,
  type Site,
  start,
  startUpstream,
} from './candidates.ts';
import { measureFilters } from './filters/run.ts';
import { chunkCpu, firstToken, latency, type Memory, memory, throughput, type Window, warm } from './measure.ts';
import { installPeers } from './peers.ts';
import { type Cores, pinSelf, stopAll } from './process.ts';
import { memoryTable, type Series, type StartRound, startTable, type WindowKind, windowTable } from './report.ts';
import { measureRouting, ROUTING_KINDS, type RoutingKind } from './routing/run.ts';

/** Content filters; measured only on request. */
const FILTERS = 'filters';

const USAGE = `npm run bench -- [options]
  --only LIST      of start, throughput, latency, first_token, chunk_cpu, memory, and ${ROUTING_KINDS.join(', ')}, ${FILTERS}
  --servers LIST   of ${CANDIDATE_NAMES.join(', ')}
  --seconds N      length of one counted window
  --rounds N       rounds of each measurement
  --streams N      open streams of first_token and chunk_cpu (200)
  --full           long windows, more rounds, more settings; also the slow peer, litellm
  --install-peers  install the peers in a folder of their own (bench/README.md), and end
`;

const KINDS = ['start', 'throughput', 'latency', 'first_token', 'chunk_cpu', 'memory'] as const;
type Kind = (typeof KINDS)[number];

/**
 * The candidates of each measurement: the pass-through matters only for streams, the upstream has no memory to show,
 * and LiteLLM answers some hundred requests a second, fewer than the fixed rates send.
 */
const SUBJECTS: Record<Kind, readonly CandidateName[]> = {
  start: ['bare', 'crabllm', 'litellm', 'portkey', 'gateway'],
  throughput: ['direct', 'bare', 'crabllm', 'litellm', 'portkey', 'gateway'],
  latency: ['direct', 'bare', 'crabllm', 'portkey', 'gateway'],
  first_token: ['direct', 'pipe', 'bare', 'crabllm', 'portkey', 'gateway'],
  chunk_cpu: ['pipe', 'bare', 'crabllm', 'portkey', 'gateway'],
  memory: ['pipe', 'bare', 'crabllm', 'portkey', 'gateway'],
};

const MEMORY_STREAMS = 1_000;
/**
 * Whole answers, then streams, for this time each: at two thousand requests a second V8 compiles for about ten seconds.
 */
const WARM_MS = 10_000;
const WATCHDOG_MS = { quick: 15 * 60_000, full: 90 * 60_000 };

interface Plan {
  kinds: readonly Kind[];
  /** Parts without servers; measured only on request. */
  routing_kinds: readonly RoutingKind[];
  has_filters: boolean;
  names: readonly CandidateName[];
  window_ms: number;
  rounds: number;
  /** Rounds of measurements that need a fresh process each time. */
  start_rounds: number;
  connections: readonly number[];
  /** Open at all times for the first token and for the cost of a chunk. */
  streams: number;
  rates_per_second: readonly number[];
  full: boolean;
}

function listed<Name extends string>(text: string | undefined, all: readonly Name[]): readonly Name[] {
  if (text === undefined) return all;
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !all.some((known) => known === name));
  if (unknown !== undefined) throw new Error(`${unknown} is not one of ${all.join(', ')}.`);
  return all.filter((name) => names.includes(name));
}

function readPlan(): Plan {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      servers: { type: 'string' },
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      streams: { type: 'string' },
      full: { type: 'boolean', default: false },
      'install-peers': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    process.exit(0);
  }
  if (values['install-peers']) {
    installPeers();
    process.exit(0);
  }
  const { full } = values;
  const positive = (text: string | undefined, fallback: number) => {
    const number = text === undefined ? fallback : Number(text);
    if (!(number > 0)) throw new Error(`${text} is not a positive number.`);
    return number;
  };
  const only = values.only === undefined ? undefined : listed(values.only, [...KINDS, ...ROUTING_KINDS, FILTERS]);
  return {
    kinds: KINDS.filter((kind) => only?.includes(kind) ?? true),
    routing_kinds: ROUTING_KINDS.filter((kind) => only?.includes(kind)),
    has_filters: only?.includes(FILTERS) ?? false,
    names: listed(values.servers, CANDIDATE_NAMES).filter(
      (name) => full || values.servers !== undefined || name !== 'litellm',
    ),
    window_ms: positive(values.seconds, full ? 10 : 1.5) * 1_000,
    rounds: positive(values.rounds, full ? 7 : 4),
    start_rounds: full ? 5 : 1,
    connections: full ? [32, 64] : [64],
    streams: positive(values.streams, 200),
    rates_per_second: [500, 1_000],
    full,
  };
}

/** Runs one window of every candidate, then the next one of each: a slow period of the machine affects all of them. */
async function interleave<Round>(
  candidates: readonly { name: string }[],
  rounds: number,
  run: (index: number) => Promise<Round>,
): Promise<Series<Round>[]> {
  const all = candidates.map(({ name }): Series<Round> => ({ name, rounds: [] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, series] of all.entries()) series.rounds.push(await run(index));
  }
  return all;
}

const windows = new Map<string, Series<Window>[]>();
let starts: Series<StartRound>[] = [];
let memories: Series<Memory>[] = [];

function print(text: string): void {
  if (text !== '') process.stdout.write(`${text}\n`);
}

async function measureStarts(names: readonly CandidateName[], site: Site, plan: Plan): Promise<void> {
  let started = 0;
  const once = async (name: CandidateName): Promise<StartRound> => {
    started += 1;
    const options = { data_directory: join(site.directory, `start-${started}`), idle_ms: 1_000 };
    const first = await start(name, site, options);
    const { rss_bytes, processes } = first.idle;
    await first.program.stop();
    const round = { ready_ms: first.ready_ms, second_ready_ms: undefined, idle_bytes: rss_bytes, processes };
    if (name !== 'gateway') return round;
    const second = await start(name, site, options);
    await second.program.stop();
    return { ...round, second_ready_ms: second.ready_ms };
  };
  const subjects = names.map((name) => ({ name }));
  starts = await interleave(subjects, plan.start_rounds, (index) => once(names[index]!));
  print(startTable(starts));
}

async function measureMemory(names: readonly CandidateName[], site: Site, plan: Plan): Promise<void> {
  const once = async (name: CandidateName): Promise<Memory> => {
    const candidate = await start(name, site);
    try {
      return await memory(candidate, MEMORY_STREAMS, 3_000);
    } finally {
      await candidate.program.stop();
    }
  };
  const subjects = names.map((name) => ({ name }));
  memories = await interleave(subjects, plan.start_rounds, (index) => once(names[index]!));
  print(memoryTable(memories, MEMORY_STREAMS));
}

async function measureWindows(kind: WindowKind, candidates: readonly Candidate[], plan: Plan): Promise<void> {
  const subjects = candidates.filter(({ name }) => SUBJECTS[kind].includes(name));
  const section = async (key: string, title: string, run: (candidate: Candidate) => Promise<Window>) => {
    const series = await interleave(subjects, plan.rounds, (index) => run(subjects[index]!));
    windows.set(key, series);
    print(windowTable(kind, title, series));
  };
  switch (kind) {
    case 'throughput':
      for (const connections of plan.connections) {
        await section(
          `throughput_${connections}`,
          `Throughput: whole answers, ${connections} connections`,
          (candidate) => throughput(candidate, connections, plan.window_ms),
        );
      }
      return;
    case 'latency':
      for (const rate of plan.rates_per_second) {
        await section(`latency_${rate}`, `Latency: whole answers at ${rate} requests/s`, (candidate) =>
          latency(candidate, rate, plan.window_ms),
        );
      }
      return;
    case 'first_token':
      return section('first_token', `Time to the first token: ${plan.streams} streams at 50 chunks/s`, (candidate) =>
        firstToken(candidate, plan.streams, plan.window_ms),
      );
    case 'chunk_cpu':
      return section('chunk_cpu', `CPU of a streamed chunk: ${plan.streams} streams at 100 chunks/s`, (candidate) =>
        chunkCpu(candidate, plan.streams, plan.window_ms),
      );
  }
}

async function startAll(plan: Plan, site: Site, upstream: Candidate): Promise<Candidate[]> {
  const candidates: Candidate[] = [];
  for (const name of plan.names) {
    const wanted = plan.kinds.some((kind) => kind !== 'start' && kind !== 'memory' && SUBJECTS[kind].includes(name));
    if (!wanted || missing(name) !== undefined) continue;
    try {
      const candidate = name === 'direct' ? upstream : await start(name, site);
      candidates.push(candidate);
      // The slow peer cannot keep up with the streams that would warm it up.
      if (name === 'litellm') await throughput(candidate, 32, WARM_MS);
      else await warm(candidate, WARM_MS);
    } catch (error) {
      if (!isPeer(name)) throw error;
      process.stdout.write(`${name} is skipped: ${(error as Error).message}\n\n`);
    }
  }
  return candidates;
}

async function run(plan: Plan, directory: string): Promise<void> {
  const cores = pinSelf();
  const machine = {
    at: new Date().toISOString(),
    node: process.version,
    cpu: `${cpus()[0]?.model ?? 'unknown'} x ${cpus().length}`,
    kernel: release(),
    pinned: cores !== undefined,
  };
  process.stdout.write(
    `Node ${machine.node}, ${machine.cpu}, ${cores === undefined ? 'not pinned: the figures are less reliable' : `servers on core ${cores.server}, the load and its upstream on core ${cores.ends}`}\n\n`,
  );
  const measured = await measureRouting(plan.routing_kinds, { directory, core: cores?.server, full: plan.full, print });
  if (plan.has_filters) print(await measureFilters());
  if (plan.kinds.length > 0) await runServers(plan, directory, cores);
  const file = join(import.meta.dirname, 'results/latest.json');
  writeFileSync(
    file,
    `${JSON.stringify({ machine, plan, ...measured, starts, ...Object.fromEntries(windows), memories }, null, 2)}\n`,
  );
  process.stdout.write(`Every round is in ${file}\n`);
}

async function runServers(plan: Plan, directory: string, cores: Cores | undefined): Promise<void> {
  process.stdout.write(`Windows of ${plan.window_ms / 1_000} s, ${plan.rounds} interleaved rounds, medians\n\n`);
  const upstream = await startUpstream(directory, cores?.ends);
  const site: Site = { directory, upstream_port: upstream.target.port, core: cores?.server };
  for (const name of plan.names) {
    const why = missing(name);
    if (why !== undefined) process.stdout.write(`${name} is skipped: ${why}\n\n`);
  }
  const able = (kind: Kind) =>
    SUBJECTS[kind].filter((name) => plan.names.includes(name) && missing(name) === undefined);
  if (plan.kinds.includes('start')) await measureStarts(able('start'), site, plan);
  const candidates = await startAll(plan, site, upstream);
  for (const kind of plan.kinds) {
    if (kind !== 'start' && kind !== 'memory') await measureWindows(kind, candidates, plan);
  }
  for (const { name, program } of candidates) if (name !== 'direct') await program.stop();
  if (plan.kinds.includes('memory')) await measureMemory(able('memory'), site, plan);
  print(aimsTable({ windows, starts }));
}

const plan = readPlan();
const directory = join(import.meta.dirname, 'results', `run-${process.pid}.tmp`);
mkdirSync(directory, { recursive: true });

const watchdog = setTimeout(
  () => interrupt('The run takes too long.'),
  plan.full ? WATCHDOG_MS.full : WATCHDOG_MS.quick,
);
function interrupt(reason: string): void {
  process.stderr.write(`${reason}\n`);
  const leave = () => {
    rmSync(directory, { recursive: true, force: true });
    process.exit(1);
  };
  stopAll().then(leave, leave);
}
process.on('SIGINT', () => interrupt('Interrupted.'));
process.on('SIGTERM', () => interrupt('Interrupted.'));

try {
  await run(plan, directory);
} finally {
  clearTimeout(watchdog);
  await stopAll();
  rmSync(directory, { recursive: true, force: true });
}
