/**
 * Gateways of several commits, or of one commit with several flags, in turn in one run, so that their costs can be compared. A figure's
 * ratio is the median of the ratios of its rounds to the same rounds of the first gateway, with the quartiles.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { privateCa } from '../test/private-ca.ts';
import { type Candidate, type Site, start, startSecureUpstream, startUpstream } from './candidates.ts';
import { chunkCpu, firstToken, latency, throughput } from './measure.ts';
import { pinSelf, stopAll } from './process.ts';
import { cpuPerChunkUs, cpuPerRequestUs, digits, median, p50, p99, quantile, table } from './report.ts';

const MEASURES = ['cold', 'whole', 'rate', 'chunk', 'first_token', 'memory'] as const;
type Measure = (typeof MEASURES)[number];

const USAGE = `node bin/launch.cjs bench/trees.ts --trees 'DIR, DIR NAME=VALUE --flag, …' [options]
  --trees LIST     gateways: a folder each, with variables, flags of Node, --workers=N; https: by TLS to the upstream
  --only LIST      of ${MEASURES.join(', ')}
  --rounds N       rounds of each measurement (6)
  --seconds N      length of one window (2)
  --warm N         seconds of whole answers, and half as many of streams, before the first round (15)
  --streams N      open streams (200)
  --minutes N      no round begins after this time (no limit)
`;

const { values } = parseArgs({
  options: {
    trees: { type: 'string', default: '.' },
    only: { type: 'string', default: MEASURES.join(',') },
    rounds: { type: 'string', default: '6' },
    seconds: { type: 'string', default: '2' },
    warm: { type: 'string', default: '15' },
    streams: { type: 'string', default: '200' },
    minutes: { type: 'string', default: 'Infinity' },
    help: { type: 'boolean', default: false },
  },
});

const RATE_PER_SECOND = 500;
/** The load of a process that has just started. */
const COLD_MS = 5_000;
/** The parts of a warm-up. */
const WARM_TURNS = 6;
const MEGABYTE = 1e6;

/** A gateway: the folder of its commit, and how it is started there. */
interface Variant {
  name: string;
  tree: string;
  environment: Record<string, string>;
  node_flags: string[];
  options: string[];
  is_secure: boolean;
}

function readVariant(text: string): Variant {
  const name = text.trim();
  const [folder = '.', ...words] = name.split(/\s+/);
  const variant: Variant = {
    name,
    tree: resolve(folder),
    environment: {},
    node_flags: [],
    options: [],
    is_secure: false,
  };
  for (const word of words) {
    const [variable = '', value] = word.split('=');
    if (variable === '--workers') variant.options.push(word);
    else if (word.startsWith('-')) variant.node_flags.push(word);
    else if (word === 'https') variant.is_secure = true;
    else if (value !== undefined) variant.environment[variable] = word.slice(variable.length + 1);
    else throw new Error(`${word} is neither a flag, NAME=VALUE nor https.`);
  }
  return variant;
}

/** The figures of one round, by title. */
type Figures = Record<string, number>;

const WINDOWS: Record<Exclude<Measure, 'cold' | 'memory'>, (candidate: Candidate, ms: number) => Promise<Figures>> = {
  whole: async (candidate, ms) => {
    const window = await throughput(candidate, 64, ms);
    return { 'CPU of a whole answer, us': cpuPerRequestUs(window), '  p99 at 64 connections, ms': p99(window) };
  },
  rate: async (candidate, ms) => {
    const window = await latency(candidate, RATE_PER_SECOND, ms);
    const cpu = `CPU of one at ${RATE_PER_SECOND}/s, us`;
    return { [cpu]: cpuPerRequestUs(window), '  p50, ms': p50(window), '  p99, ms': p99(window) };
  },
  chunk: async (candidate, ms) => ({
    'CPU of a chunk, us': cpuPerChunkUs(await chunkCpu(candidate, Number(values.streams), ms)),
  }),
  first_token: async (candidate, ms) => {
    const window = await firstToken(candidate, Number(values.streams), ms);
    return { 'first token p50, ms': p50(window), 'first token p99, ms': p99(window) };
  },
};

/** All rounds of all gateways, by the title of the figure. */
const rounds = new Map<string, number[][]>();

function note(figures: Figures, variant: number, count: number): void {
  for (const [title, figure] of Object.entries(figures)) {
    const all = rounds.get(title) ?? Array.from({ length: count }, () => []);
    all[variant]?.push(figure);
    rounds.set(title, all);
  }
}

function range(figures: readonly number[], write: (figure: number) => string): string {
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => write(quantile(figures, share)));
  return `${middle} (${low}–${high})`;
}

function report(variants: readonly Variant[]): void {
  for (const [index, { name }] of variants.entries()) process.stdout.write(`${index + 1}: ${name}\n`);
  const rows = [...rounds].map(([title, all]) => {
    const [first = []] = all;
    const cells = all.map((figures, index) => {
      const figure = range(figures, digits(median(figures) < 20 ? 2 : 0));
      const ratios = figures.flatMap((of, round) => (first[round] === undefined ? [] : of / first[round]));
      return index === 0 ? [figure] : [figure, range(ratios, digits(3))];
    });
    return [title, ...cells.flat(), String(first.length)];
  });
  const columns = variants.flatMap((_, index) => (index === 0 ? ['1'] : [`${index + 1}`, `${index + 1} / 1`]));
  process.stdout.write(`\n${table('Medians (quartiles)', ['', ...columns, 'rounds'], rows)}\n`);
}

async function measure(variants: readonly Variant[], measures: readonly Measure[], sites: Sites): Promise<void> {
  const windowMs = Number(values.seconds) * 1_000;
  const untilMs = performance.now() + Number(values.minutes) * 60_000;
  const isLate = () => performance.now() > untilMs;
  /** Each round begins with another gateway. */
  const turns = (round: number) => variants.map((_, index) => (index + round) % variants.length);

  for (let round = 0; measures.includes('cold') && round < Number(values.rounds) && !isLate(); round += 1) {
    for (const index of turns(round)) {
      const candidate = await sites.start(variants[index]!);
      const window = await throughput(candidate, 64, COLD_MS);
      note({ 'CPU of one in the first 5 s, us': cpuPerRequestUs(window) }, index, variants.length);
      await candidate.program.stop();
    }
  }
  const windows = Object.entries(WINDOWS).filter(([name]) => measures.some((wanted) => wanted === name));
  if (windows.length === 0) return;
  const candidates: Candidate[] = [];
  for (const variant of variants) candidates.push(await sites.start(variant));
  // In turns, as in the rounds: a gateway that waits for a minute after its warm-up is slower than one that has just had it.
  for (let turn = 0; turn < WARM_TURNS; turn += 1) {
    for (const candidate of candidates) {
      await throughput(candidate, 64, (Number(values.warm) * 1_000) / WARM_TURNS);
      await firstToken(candidate, 50, (Number(values.warm) * 500) / WARM_TURNS);
    }
  }
  for (let round = 0; round < Number(values.rounds) && !isLate(); round += 1) {
    for (const [, run] of windows) {
      for (const index of turns(round)) note(await run(candidates[index]!, windowMs), index, variants.length);
    }
    for (const [index, { program }] of candidates.entries()) {
      if (!measures.includes('memory')) break;
      note({ 'resident memory, MB': program.usage().rss_bytes / MEGABYTE }, index, variants.length);
    }
  }
}

/** Starts gateways beside the upstream that they call. */
class Sites {
  readonly #plain: Site;
  #secure: { site: Site; ca_file: string } | undefined;

  constructor(plain: Site) {
    this.#plain = plain;
  }

  async addSecure(core: number | undefined): Promise<void> {
    const { directory } = this.#plain;
    const { ca, cert, key, remove } = privateCa(['IP:127.0.0.1']);
    remove();
    const files = { ca: join(directory, 'ca.pem'), cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') };
    writeFileSync(files.ca, ca);
    writeFileSync(files.cert, cert);
    writeFileSync(files.key, key);
    const port = await startSecureUpstream(directory, core, files);
    this.#secure = { site: { ...this.#plain, upstream_port: port, is_secure: true }, ca_file: files.ca };
  }

  start(variant: Variant): Promise<Candidate> {
    if (!variant.is_secure || this.#secure === undefined) return start('gateway', this.#plain, variant);
    const environment = { NODE_EXTRA_CA_CERTS: this.#secure.ca_file, ...variant.environment };
    return start('gateway', this.#secure.site, { ...variant, environment });
  }
}

async function run(): Promise<void> {
  const names = values.only.split(',').map((name) => name.trim());
  const measures = MEASURES.filter((measure) => names.includes(measure));
  if (measures.length !== names.length) throw new Error(`--only names one of ${MEASURES.join(', ')}.`);
  const directory = join(import.meta.dirname, 'results', `trees-${process.pid}.tmp`);
  mkdirSync(directory, { recursive: true });
  const variants = values.trees.split(',').map(readVariant);
  try {
    const cores = pinSelf();
    const upstream = await startUpstream(directory, cores?.ends);
    const sites = new Sites({ directory, upstream_port: upstream.target.port, core: cores?.server });
    if (variants.some(({ is_secure }) => is_secure)) await sites.addSecure(cores?.ends);
    await measure(variants, measures, sites);
  } finally {
    await stopAll();
    rmSync(directory, { recursive: true, force: true });
    report(variants);
  }
}

if (values.help) process.stdout.write(USAGE);
else {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void stopAll().then(() => process.exit(1)));
  await run();
}
