import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { startSandbox } from '../../sandbox/index.ts';
import { type Environment, loadConfig } from '../config.ts';
import type { Clock } from '../inference/call.ts';
import { CHAT_WIRE } from '../schemas/inner.ts';
import { DATABASE_FILE, openDatabase } from '../storage/database.ts';
import { identityStore } from '../storage/identities.ts';
import { setupStore } from '../storage/setup.ts';
import { createLog } from '../telemetry/log.ts';
import { type Command, Refusal, readArguments, UsageError } from './command.ts';
import { demoMembers, demoModels, demoProviders, demoQuestions, demoTeams } from './demo-company.ts';
import { createChance, settleDemoTraffic } from './demo-traffic.ts';
import { catalogOf, startGateway } from './start-gateway.ts';
import { systemClock } from './system-clock.ts';
import { withStore } from './with-store.ts';

const DAYS = 30;
const CALLS = 12_000;
const DAY_MS = 86_400_000;

const USAGE = `Usage: model-gateway demo [--data-dir DIR] [--port N] [--no-serve]

Fills a directory of its own with a month of invented traffic of a small company, and runs a gateway on it.
No provider is called: the models are invented, and the sandbox answers.

  --data-dir DIR  a new directory, or that of an earlier demo; by default ./demo-data
  --port N        the port to listen on; by default GATEWAY_PORT, else 8080
  --no-serve      only fill the directory
`;

/** Throws a `Refusal` if the directory holds anything but a demo. Returns whether it holds one. */
async function holdsDemo(dataDir: string): Promise<boolean> {
  if (!existsSync(dataDir) || readdirSync(dataDir).length === 0) return false;
  const refusal = new Refusal(
    `${dataDir} holds other data: the demo fills only a new directory. Name another one: model-gateway demo --data-dir DIR`,
  );
  if (!existsSync(join(dataDir, DATABASE_FILE))) throw refusal;
  const database = await openDatabase({ data_dir: dataDir });
  try {
    if (await setupStore(database.queries).isDemo()) return true;
    throw refusal;
  } finally {
    await database.close();
  }
}

/** The configuration of the demo: invented providers, all of them the sandbox at this address. */
function demoFile(sandboxUrl: string): object {
  const base = `${sandboxUrl}/v1`;
  return {
    bundled_catalog: false,
    providers: Object.fromEntries(
      Object.entries(demoProviders).map(([slug, name]) => [
        slug,
        { name, dialect: CHAT_WIRE, base_url: base, api_key: 'invented' },
      ]),
    ),
    models: Object.fromEntries(
      demoModels.map(({ id, name, served, price: [input, output], tps }) => [
        id,
        {
          name,
          description: `${name} is an invented model: the sandbox answers for it.`,
          context_length: 200_000,
          endpoints: served.map((provider) => ({
            provider,
            // As fast as its invented calls.
            upstream_model: `${id.includes('reason') ? 'think' : 'story'};delay_ms=350;chunk_delay_ms=${Math.round(1_000 / tps)}`,
            pricing: {
              per: 'million',
              prompt: input,
              completion: output,
              input_cache_read: Number((input / 10).toFixed(4)),
            },
          })),
        },
      ]),
    ),
  };
}

/** The fields of API answers that the demo reads. */
interface Made {
  data?: { id: string };
  key?: string;
}
type Manage = (method: string, path: string, body?: object, key?: string) => Promise<Made>;

function manager(baseUrl: string, managementKey: string): Manage {
  return async (method, path, body, key = managementKey) => {
    const answer = await fetch(`${baseUrl}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await answer.text();
    const isJson = answer.headers.get('content-type')?.includes('json');
    const parsed = (isJson ? JSON.parse(text) : {}) as Made;
    // A guardrail refuses some calls: that is part of the demo.
    if (!answer.ok && key === managementKey) throw new Error(`${method} ${path}: ${JSON.stringify(parsed)}`);
    return parsed;
  };
}

/** Creates the company through the API, as an administrator would. Returns the secrets of its keys. */
async function createCompany(manage: Manage): Promise<string[]> {
  const secrets: string[] = [];
  for (const { name, slug, description, budget, keys } of demoTeams) {
    const { data } = await manage('POST', '/workspaces', { name, slug, description });
    const id = data?.id ?? '';
    await manage('PATCH', `/workspaces/${id}`, { is_observability_io_logging_enabled: true });
    await manage('PUT', `/workspaces/${id}/budgets/monthly`, { limit_usd: budget });
    for (const { name: key, limit, reset } of keys) {
      const made = await manage('POST', '/keys', { name: key, limit, limit_reset: reset, workspace_id: id });
      secrets.push(made.key ?? '');
    }
    if (slug !== 'support') continue;
    await manage('POST', '/guardrails', {
      name: 'No email addresses or passwords',
      workspace_id: id,
      content_filter_builtins: [{ slug: 'email', action: 'redact' }],
      content_filters: [{ pattern: 'password', action: 'block' }],
    });
  }
  return secrets;
}

/** Some calls through the gateway itself, with kept contents, a conversation and hits of guardrails. */
async function callModels(manage: Manage, secrets: readonly string[]): Promise<void> {
  const chance = createChance(7);
  for (const [index, question] of [
    ...demoQuestions,
    ...demoQuestions,
    'My password is tuna.',
    'Write to ada@lanternfish.example.',
  ].entries()) {
    const key = secrets[Math.floor(chance() * secrets.length)] ?? '';
    const guarded = index >= 2 * demoQuestions.length;
    await manage(
      'POST',
      '/chat/completions',
      {
        model: demoModels[index % demoModels.length]?.id,
        messages: [{ role: 'user', content: question }],
        max_tokens: 40,
        stream: true,
        session_id: 'a-conversation',
      },
      guarded ? secrets[0] : key,
    );
  }
}

async function fill(file: string, environment: Environment): Promise<void> {
  const loaded = loadConfig(environment, { config_file: file });
  const config = {
    ...loaded,
    host: '127.0.0.1',
    port: 0,
    config_watch: false,
    limits: { ...loaded.limits, management_requests_per_minute: 1_000_000 },
  };
  const log = createLog('error');
  /** Runs a gateway for a while, at a time in the past. */
  const within = async (clock: Clock, run: (manage: Manage) => Promise<void>, managementKey?: string) => {
    let key = managementKey ?? '';
    const gateway = await startGateway({
      config,
      log,
      clock,
      onFirstKeys: ({ management_key = '' }) => {
        key = management_key;
      },
    });
    try {
      await run(manager(gateway.url, key));
    } finally {
      await gateway.stop();
    }
    return key;
  };
  const past = { ...systemClock, nowMs: () => Date.now() - (DAYS + 1) * DAY_MS };
  let secrets: string[] = [];
  const managementKey = await within(past, async (manage) => {
    secrets = await createCompany(manage);
  });
  await withStore(config, async ({ database, home }) => {
    await setupStore(database.queries).markDemo();
    for (const [email, name, role] of demoMembers) {
      const [first = '', last = ''] = name.split(' ');
      const person = { name, email, first_name: first, last_name: last, issuer: null, subject: null };
      const at = new Date(past.nowMs()).toISOString();
      await identityStore(database.queries).insertMember(person, { organization_id: home.organization_id, role, at });
    }
    const catalog = catalogOf(config).at(Date.now());
    await settleDemoTraffic(database, { catalog, nowMs: Date.now(), calls: CALLS, days: DAYS });
  });
  await within(systemClock, (manage) => callModels(manage, secrets), managementKey);
}

/** `model-gateway demo`. */
export const demoCommand: Command = {
  usage: USAGE,
  async run(args, environment) {
    const { values } = readArguments({
      args,
      options: {
        'data-dir': { type: 'string', default: './demo-data' },
        port: { type: 'string' },
        'no-serve': { type: 'boolean', default: false },
      },
    });
    if (values.port !== undefined && !(/^\d{1,5}$/.test(values.port) && Number(values.port) <= 65_535))
      throw new UsageError(`--port takes a number from 0 to 65535, not '${values.port}'.`);
    const dataDir = resolve(values['data-dir']);
    const isFilled = await holdsDemo(dataDir);
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const sandbox = await startSandbox();
    const file = join(dataDir, 'demo.yaml');
    writeFileSync(file, JSON.stringify(demoFile(sandbox.url), null, 2), { mode: 0o600 });
    // Without the operator's environment, so that none of their providers is called.
    const own: Environment = {
      GATEWAY_DATA_DIR: dataDir,
      GATEWAY_CONFIG: file,
      GATEWAY_SANDBOX: 'off',
      GATEWAY_FIRST_KEY: 'off',
      GATEWAY_LOG_LEVEL: environment['GATEWAY_LOG_LEVEL'] ?? 'warn',
      GATEWAY_PORT: values.port ?? environment['GATEWAY_PORT'],
      GATEWAY_HOST: environment['GATEWAY_HOST'],
    };
    if (!isFilled) {
      process.stdout.write(`Filling ${dataDir} with ${DAYS} days of invented traffic …\n`);
      try {
        await fill(file, own);
      } catch (error) {
        // Removes an incomplete demo; the directory was empty before.
        rmSync(dataDir, { recursive: true, force: true });
        throw error;
      }
    }
    if (values['no-serve']) {
      await sandbox.stop();
      return 0;
    }
    const { consoleCommand } = await import('./console.ts');
    const { serve } = await import('./serve.ts');
    await serve(own, { workers: 1, config_file: file, hasReloadSignal: () => false });
    process.stdout.write('This is a demo: its data are invented. ');
    await consoleCommand.run([], own);
    return -1;
  },
};
