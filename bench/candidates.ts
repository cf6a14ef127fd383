import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exchange, requestBytes, type Target } from './connection.ts';
import { missingPeer, PEER_NAMES, type PeerName, peerRecipe } from './peers.ts';
import { freePort, Program, type Usage } from './process.ts';
import { ANSWER_MODEL, ANSWER_TEXT, MODELS, requestBody, STREAM_WORD, STREAMS, streamModel } from './workload.ts';

const ROOT = join(import.meta.dirname, '..');
const MANAGEMENT_KEY = 'bench-management-key-0123456789abcdef';

export const CANDIDATE_NAMES = ['direct', 'pipe', 'bare', ...PEER_NAMES, 'gateway'] as const;
export type CandidateName = (typeof CANDIDATE_NAMES)[number];

/** Where a run keeps its files, where its upstream listens, and which core a server uses. */
export interface Site {
  directory: string;
  upstream_port: number;
  core: number | undefined;
  /** The upstream speaks TLS; `NODE_EXTRA_CA_CERTS` of the gateway names its authority. */
  is_secure?: boolean;
}

/** A started server whose answers were checked. */
export interface Candidate {
  name: CandidateName;
  program: Program;
  target: Target;
  /** The time from the start of the process to the first ready answer. */
  ready_ms: number;
  /** Read after the configured idle time, before the first request. */
  idle: Usage;
}

/** How a candidate is started: its command on a port, its readiness check, and the content of its requests. */
interface Recipe {
  program?: string;
  args: readonly string[];
  env?: Record<string, string>;
  cwd?: string;
  ready: { path: string; isReady(status: number): boolean };
  /** Prepares the program once it is ready, and returns how to send it requests. */
  enter(port: number): Promise<Target>;
}

/** How the gateway is started. */
export interface StartOptions {
  /** The folder of its commit; this one by default. */
  tree?: string;
  /** Flags of Node besides those of `npm start`, such as the profiler's; a later one takes effect. */
  node_flags?: readonly string[];
  environment?: Readonly<Record<string, string>>;
  /** Options of the command `serve`. */
  options?: readonly string[];
  /** Reuse a data directory: a second start. */
  data_directory?: string;
  /** How long a ready server is left alone before its idle use is read. */
  idle_ms?: number;
}

const anyAnswer = { path: '/', isReady: () => true };
const plainTarget = (port: number): Promise<Target> =>
  Promise.resolve({ port, path: '/v1/chat/completions', headers: { authorization: 'Bearer bench' } });

/** Whether a candidate is another gateway, which may not be installed. */
export function isPeer(name: CandidateName): name is PeerName {
  return PEER_NAMES.some((peer) => peer === name);
}

/** Why a candidate cannot run here; undefined if it can. */
export function missing(name: CandidateName): string | undefined {
  if (isPeer(name)) return missingPeer(name);
  if (name === 'gateway' && !existsSync(join(ROOT, 'src/main.ts'))) return 'src/main.ts does not exist';
  return undefined;
}

function gatewayConfig(site: Site): string {
  const endpoint = (model: string) => ({
    name: model,
    context_length: 128_000,
    endpoints: [{ provider: 'bench', upstream_model: model, pricing: { prompt: 0.25, completion: 2 } }],
  });
  // JSON is YAML too.
  return JSON.stringify({
    bundled_catalog: false,
    providers: {
      bench: {
        name: 'Bench',
        dialect: 'openai-chat',
        base_url: `${site.is_secure === true ? 'https' : 'http'}://127.0.0.1:${site.upstream_port}/v1`,
        api_key: 'bench-credential',
      },
    },
    models: Object.fromEntries(MODELS.map((model) => [model, endpoint(model)])),
  });
}

async function gatewayTarget(port: number): Promise<Target> {
  const management = { port, path: '/api/v1/keys', headers: { authorization: `Bearer ${MANAGEMENT_KEY}` } };
  const answer = await exchange(port, requestBytes(management, JSON.stringify({ name: 'bench', limit: 1_000_000 })));
  if (answer.status !== 201) throw new Error(`POST /keys answered ${answer.status}: ${answer.body}`);
  const { key } = JSON.parse(answer.body) as { key: string };
  return { port, path: '/api/v1/chat/completions', headers: { authorization: `Bearer ${key}` } };
}

/** What `npm start` of a commit passes to Node, with further flags. */
function startArguments(tree: string, flags: readonly string[]): string[] {
  const { scripts } = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8')) as { scripts: { start: string } };
  const [, ...words] = scripts.start.split(' ');
  words.splice(
    words.findIndex((word) => !word.startsWith('-')),
    0,
    ...flags,
  );
  return words;
}

function gatewayRecipe(site: Site, port: number, options: StartOptions): Recipe {
  const data = options.data_directory ?? join(site.directory, `data-${port}`);
  mkdirSync(data, { recursive: true });
  const config = join(data, 'bench.yaml');
  writeFileSync(config, gatewayConfig(site));
  const tree = options.tree ?? ROOT;
  // npm puts this folder before the others of PATH, so that `npm start` runs the version of Node that the commit installs.
  const installedNode = join(tree, 'node_modules/.bin/node');
  return {
    program: existsSync(installedNode) ? installedNode : process.execPath,
    args: [...startArguments(tree, options.node_flags ?? []), ...(options.options ?? [])],
    cwd: tree,
    env: {
      ...options.environment,
      GATEWAY_HOST: '127.0.0.1',
      GATEWAY_PORT: String(port),
      GATEWAY_DATA_DIR: data,
      GATEWAY_CONFIG: config,
      GATEWAY_MANAGEMENT_KEY: MANAGEMENT_KEY,
    },
    ready: { path: '/health/ready', isReady: (status) => status === 200 },
    enter: gatewayTarget,
  };
}

function recipe(name: CandidateName, site: Site, port: number, options: StartOptions): Recipe {
  const upstream = `http://127.0.0.1:${site.upstream_port}`;
  const own = (file: string) => ({
    args: [...(options.node_flags ?? []), join(import.meta.dirname, 'servers', file), upstream, String(port)],
    ready: anyAnswer,
    enter: plainTarget,
  });
  switch (name) {
    case 'bare':
      return own('bare.ts');
    case 'pipe':
      return own('pipe.ts');
    case 'crabllm':
    case 'litellm':
    case 'portkey': {
      const { path, headers, ...command } = peerRecipe(name, upstream, port, site.directory);
      return { ...command, ready: anyAnswer, enter: async () => ({ port, path, headers }) };
    }
    case 'gateway':
      return gatewayRecipe(site, port, options);
    case 'direct':
      throw new Error('The upstream is started by startUpstream.');
  }
}

/** Starts the provider to which every candidate forwards. Called directly, it is the candidate `direct`. */
export async function startUpstream(directory: string, core: number | undefined): Promise<Candidate> {
  const port = await freePort();
  const program = new Program({
    args: [join(import.meta.dirname, 'servers/upstream.ts'), String(port)],
    log: join(directory, 'upstream.log'),
    core,
  });
  const readyMs = await program.ready(port, '/', () => true);
  return { name: 'direct', program, target: await plainTarget(port), ready_ms: readyMs, idle: program.usage() };
}

/** Starts the same provider with TLS; returns its port. */
export async function startSecureUpstream(
  directory: string,
  core: number | undefined,
  files: { key: string; cert: string },
): Promise<number> {
  const port = await freePort();
  const program = new Program({
    args: [join(import.meta.dirname, 'servers/upstream.ts'), String(port), files.key, files.cert],
    log: join(directory, 'secure-upstream.log'),
    core,
  });
  while (!program.tail().includes('listening') && !program.ended) await sleep(20);
  return port;
}

/** Starts a candidate, and returns it after it has answered one whole and one streamed request exactly. */
export async function start(name: CandidateName, site: Site, options: StartOptions = {}): Promise<Candidate> {
  const port = await freePort();
  const how = recipe(name, site, port, options);
  const program = new Program({
    program: how.program,
    args: how.args,
    log: join(site.directory, `${name}-${port}.log`),
    core: site.core,
    ...(how.env === undefined ? {} : { env: how.env }),
    ...(how.cwd === undefined ? {} : { cwd: how.cwd }),
  });
  const readyMs = await program.ready(port, how.ready.path, how.ready.isReady);
  await sleep(options.idle_ms ?? 0);
  const idle = program.usage();
  try {
    const candidate = { name, program, target: await how.enter(port), ready_ms: readyMs, idle };
    await verify(candidate);
    return candidate;
  } catch (error) {
    throw new Error(`${name} cannot be measured. Its output:\n${program.tail()}`, { cause: error });
  }
}

interface ChunkBody {
  choices: { delta: { content?: string } }[];
  usage?: { completion_tokens: number } | null;
}

/** Throws if the candidate loses a part of a whole answer or a stream. */
async function verify({ name, target }: Candidate): Promise<void> {
  const whole = await exchange(target.port, requestBytes(target, requestBody(ANSWER_MODEL, false)));
  const fail = (what: string, body: string) => new Error(`${name}: ${what}: ${body.slice(0, 500)}`);
  if (whole.status !== 200) throw fail(`status ${whole.status}`, whole.body);
  const answer = JSON.parse(whole.body) as {
    id: string;
    choices: { message: { content: string } }[];
    usage: { total_tokens: number };
  };
  if (answer.choices[0]?.message.content !== ANSWER_TEXT) throw fail('another text', whole.body);
  if (answer.usage.total_tokens !== 251) throw fail('another usage', whole.body);

  const shape = STREAMS.check;
  const stream = await exchange(target.port, requestBytes(target, requestBody(streamModel(shape), true)));
  const events = stream.body.split('\n').filter((line) => line.startsWith('data: '));
  if (stream.status !== 200) throw fail(`stream status ${stream.status}`, stream.body);
  if (events.pop() !== 'data: [DONE]') throw fail('a stream without an end', stream.body.slice(-500));
  const chunks = events.map((event) => JSON.parse(event.slice(6)) as ChunkBody);
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
  const usages = chunks.flatMap((chunk) => chunk.usage ?? []);
  if (text !== STREAM_WORD.repeat(shape.chunks)) throw fail('another streamed text', stream.body);
  if (usages.length !== 1 || usages[0]?.completion_tokens !== shape.chunks) throw fail('another usage', stream.body);
  if (name === 'gateway') await verifyRecord(target, answer.id);
}

/** The gateway is measured with metering and journal enabled: its record of the first answer proves it. */
async function verifyRecord(target: Target, id: string): Promise<void> {
  const url = `http://127.0.0.1:${target.port}/api/v1/generation?id=${encodeURIComponent(id)}`;
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const answer = await fetch(url, { headers: { authorization: target.headers['authorization'] ?? '' } });
    const body = await answer.text();
    if (answer.status === 200 && body.includes('"total_cost"')) return;
    await sleep(100);
  }
  throw new Error(`gateway: no generation record of ${id} within two seconds`);
}
