import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ANSWER_MODEL, MODELS } from './workload.ts';

/** The other gateways to which the benchmark compares. */
export const PEER_NAMES = ['crabllm', 'litellm', 'portkey'] as const;
export type PeerName = (typeof PEER_NAMES)[number];

/** The installed version of each peer. Portkey's version is that of `package.json` and its lock file. */
const VERSIONS = { crabllm: '0.0.25', litellm: '1.106.0', portkey: '1.15.2' } as const satisfies Record<
  PeerName,
  string
>;

/** The key that the peers accept. */
const PEER_KEY = 'sk-bench-0123456789abcdef';

/** How a peer is started, and what its requests look like. */
export interface PeerRecipe {
  program: string;
  args: readonly string[];
  env: Record<string, string>;
  path: string;
  headers: Record<string, string>;
}

/** Where peers are installed: outside the repository, kept between runs. */
function cacheDirectory(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return join(process.env['BENCH_PEERS_DIR'] ?? join(cache, 'model-gateway-bench'));
}

function directoryOf(name: PeerName): string {
  return join(cacheDirectory(), `${name}-${VERSIONS[name]}`);
}

const ENTRIES: Record<PeerName, string> = {
  crabllm: 'bin/crabllm',
  litellm: 'bin/litellm',
  portkey: 'node_modules/@portkey-ai/gateway/build/start-server.js',
};

function entryOf(name: PeerName): string {
  return join(directoryOf(name), ENTRIES[name]);
}

/** Why a peer cannot run here; undefined if it is installed. */
export function missingPeer(name: PeerName): string | undefined {
  return existsSync(entryOf(name)) ? undefined : 'not installed: npm run bench -- --install-peers';
}

type Commands = readonly (readonly [program: string, ...args: string[]])[];

/** The commands that install a peer into a folder, through the ordinary client of its registry. */
function commandsOf(name: PeerName, directory: string): Commands {
  switch (name) {
    case 'crabllm':
      return [['cargo', 'install', 'crabllm', '--version', VERSIONS.crabllm, '--locked', '--root', directory]];
    case 'litellm':
      return [
        ['python3', '-m', 'venv', directory],
        [join(directory, 'bin/pip'), 'install', '--quiet', `litellm[proxy]==${VERSIONS.litellm}`],
      ];
    case 'portkey':
      for (const file of ['package.json', 'package-lock.json']) {
        copyFileSync(join(import.meta.dirname, file), join(directory, file));
      }
      return [['npm', 'ci', '--prefix', directory, '--ignore-scripts', '--no-audit', '--no-fund']];
  }
}

function explain({ error, status }: SpawnSyncReturns<Buffer>): string {
  return error === undefined ? `exit status ${status}` : error.message;
}

/** Installs the missing peers. A peer that cannot be installed is reported, and the others are installed. */
export function installPeers(): void {
  for (const name of PEER_NAMES) {
    if (missingPeer(name) === undefined) {
      process.stdout.write(`${name} ${VERSIONS[name]} is installed in ${directoryOf(name)}\n`);
      continue;
    }
    const directory = directoryOf(name);
    process.stdout.write(`Installing ${name} ${VERSIONS[name]} into ${directory} …\n`);
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
    for (const [program, ...args] of commandsOf(name, directory)) {
      const result = spawnSync(program, args, { stdio: 'inherit' });
      if (result.status === 0) continue;
      process.stdout.write(`${name} could not be installed: ${program} ended with ${explain(result)}\n`);
      // Kept for readers, but not counted as an installed peer.
      renameSync(directory, `${directory}.failed-${Date.now()}`);
      break;
    }
  }
}

function crabllmConfig(upstream: string, port: number): string {
  const price = 'pricing = { input_cost_per_million = 0.25, output_cost_per_million = 2.0 }';
  return [
    `listen = "127.0.0.1:${port}"`,
    'openapi = false',
    '[providers.upstream]',
    'kind = "openai"',
    'api_key = "bench-credential"',
    `base_url = "${upstream}/v1"`,
    `models = ${JSON.stringify(MODELS)}`,
    '[[keys]]',
    'name = "bench"',
    `key = "${PEER_KEY}"`,
    'models = ["*"]',
    '[extensions]',
    'usage = {}',
    'budget = { default_budget = 1000000.0 }',
    ...MODELS.map((model) => `[models.${JSON.stringify(model)}]\n${price}`),
    '',
  ].join('\n');
}

function litellmConfig(upstream: string): string {
  // JSON is YAML too.
  return JSON.stringify({
    model_list: [ANSWER_MODEL, ...MODELS.filter((model) => model !== ANSWER_MODEL)].map((model) => ({
      model_name: model,
      litellm_params: {
        model: `openai/${model}`,
        api_base: `${upstream}/v1`,
        api_key: 'bench-credential',
        input_cost_per_token: 0.25e-6,
        output_cost_per_token: 2e-6,
      },
    })),
    general_settings: { master_key: PEER_KEY },
    litellm_settings: { telemetry: false, num_retries: 0 },
  });
}

/** How to start a peer that forwards to the benchmark's own upstream. Its configuration is written into `directory`. */
export function peerRecipe(name: PeerName, upstream: string, port: number, directory: string): PeerRecipe {
  const path = '/v1/chat/completions';
  const headers = { authorization: `Bearer ${PEER_KEY}` };
  switch (name) {
    case 'crabllm': {
      const file = join(directory, `crabllm-${port}.toml`);
      writeFileSync(file, crabllmConfig(upstream, port));
      // One log line for each request, as by default.
      return { program: entryOf(name), args: ['serve', '--config', file], env: {}, path, headers };
    }
    case 'litellm': {
      const file = join(directory, `litellm-${port}.yaml`);
      writeFileSync(file, litellmConfig(upstream));
      const args = ['--config', file, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1'];
      // The prices are in the configuration, so that nothing is fetched at the start.
      const env = { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_TELEMETRY: 'False', NO_PROXY: '127.0.0.1' };
      return { program: entryOf(name), args, env, path, headers };
    }
    case 'portkey':
      return {
        program: process.execPath,
        args: [entryOf(name), `--port=${port}`, '--headless'],
        // Without it, a provider on the loopback interface is refused.
        env: { TRUSTED_CUSTOM_HOSTS: '127.0.0.1' },
        path,
        headers: {
          authorization: 'Bearer bench',
          'x-portkey-provider': 'openai',
          'x-portkey-custom-host': `${upstream}/v1`,
        },
      };
  }
}
