import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { recordOf } from '../../src/ledger/journal/record-values.ts';
import { type Database, openDatabase } from '../../src/storage/database.ts';
import type { StoreVariant } from '../ledger/store-variants.ts';
import { windowSums } from '../ledger/window-sums.ts';
import {
  childrenOf,
  freePort,
  freshDir,
  type GatewayProcess,
  isAlive,
  metric,
  run,
  type StartOptions,
  serve,
  start,
  stop,
  until,
} from './gateway-process.ts';

const root = join(import.meta.dirname, '../..');
const NODES = 4;
export const CLIENTS = 64;
const SAMPLE_MS = 20;
/** Starting takes a second of a core, and longer on a busy machine. */
const WHOLE_MS_MAX = 60_000;

/** The exact cost of every request of `money/unit` and `money/asked`, and therefore their hold. */
export const UNIT_NANO = 1_000_000;
/** The cost of each output token of `money/tokens`. */
export const TOKEN_NANO = 10_000;

/**
 * The configuration of every gateway: models at an upstream that outlives them, and that can be queried for attempts
 * under one of its names.
 */
export function moneyConfiguration(url: string): string {
  const endpoint = (provider: string, upstreamModel: string, pricing: object) => ({
    provider,
    upstream_model: upstreamModel,
    pricing: { prompt: 0, completion: 0, ...pricing },
    max_completion_tokens: 32_768,
  });
  const upstream = { name: 'Upstream', dialect: 'openai-chat', base_url: `${url}/v1` };
  const unit = { request: UNIT_NANO / 1e9 };
  const model = (endpoint: object) => ({ context_length: 200_000, endpoints: [endpoint] });
  return JSON.stringify({
    bundled_catalog: false,
    logging: { level: 'warn' },
    providers: {
      upstream,
      reporting: { ...upstream, name: 'Reporting', attempts_url: `${url}/sandbox/attempts` },
    },
    models: {
      'money/unit': model(endpoint('upstream', 'echo', unit)),
      'money/asked': model(endpoint('reporting', 'echo', unit)),
      'money/tokens': model(endpoint('upstream', 'story', { completion: TOKEN_NANO / 1e3 })),
    },
  });
}

/** A generation as the store has it. */
export interface Recorded {
  id: string;
  model: string;
  cost: number;
  outcome: string;
  estimated: boolean;
}

/**
 * Several nodes on one store, as an operator runs them: a gateway with this number of workers on one SQLite file, or
 * this number of gateways on one PostgreSQL. Their upstream is a sandbox in this process, which counts its requests.
 */
export interface MoneySite {
  sandbox: Sandbox;
  /** The addresses for clients. */
  gateways: readonly GatewayProcess[];
  /** The end of the test, with any result. */
  readonly ended: boolean;
  /** A key with this spend limit. */
  makeKey(limitNano: number): Promise<string>;
  /** Reads the windows every 20 ms until `stop`. Returns how often, and what was wrong. */
  watch(limitNano: number): { samples: number; over: string[]; stop(): Promise<void> };
  /**
   * Kills any node without warning, also one that is just starting; another takes its place. Returns false if there was
   * none.
   */
  kill(): boolean;
  /** Resolves when every node serves. */
  whole(): Promise<void>;
  /** Stops every gateway gracefully; every window then equals the sum of its generations. */
  end(): Promise<void>;
  recorded(): Promise<Recorded[]>;
  spent(): Promise<{ spent: number; leased: number }>;
}

async function isReady(gateway: GatewayProcess): Promise<boolean> {
  const signal = AbortSignal.timeout(2_000);
  const answer = await fetch(`${gateway.url}/health/ready`, { signal }).catch(() => undefined);
  await answer?.text().catch(() => undefined);
  return answer?.status === 200;
}

/** Starts the nodes of one store. */
export async function moneySite(
  variant: StoreVariant,
  cleanUp: (after: () => Promise<void>) => void,
): Promise<MoneySite> {
  const sandbox = await startSandbox();
  cleanUp(() => sandbox.stop());
  let ending = false;
  cleanUp(async () => {
    ending = true;
  });
  const yaml = moneyConfiguration(sandbox.url);
  const databaseUrl = await variant.freshUrl();
  const sharedDir = join(freshDir(), 'data');
  const environment: Record<string, string> = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
  const settings: StartOptions[] = [];
  for (let node = 0; node < (databaseUrl === undefined ? 1 : NODES); node += 1) {
    const dataDir = databaseUrl === undefined ? sharedDir : join(freshDir(), 'data');
    const args = databaseUrl === undefined ? ['--workers', String(NODES)] : [];
    settings.push({ data_dir: dataDir, port: await freePort(), yaml, environment, args });
  }
  // The first node creates the store; the others may start together.
  const [first, ...others] = settings as [StartOptions, ...StartOptions[]];
  const gateways = [await serve(first), ...(await Promise.all(others.map((options) => serve(options))))];
  const whole = async () => {
    const back = settings.map((_, index) =>
      until('a gateway serves again', () => isReady(gateways[index]!), WHOLE_MS_MAX),
    );
    await Promise.all(back);
    const [only] = gateways;
    if (databaseUrl !== undefined || only === undefined) return;
    const all = async () => (await metric(only, 'gateway_processes')) === NODES;
    await until('all workers serve', all, WHOLE_MS_MAX);
  };
  const serving = new Set(gateways);
  let kills = 0;
  /** Like a supervisor: a gateway that ends is restarted. */
  const keep = async (index: number) => {
    for (;;) {
      await gateways[index]!.ended;
      if (ending) return;
      const next = await start(settings[index]);
      gateways[index] = next;
      void until('it serves', () => isReady(next), WHOLE_MS_MAX).then(
        () => serving.add(next),
        () => undefined,
      );
    }
  };
  const kept = Promise.all(settings.map((_, index) => keep(index)));
  await whole();
  const database: Database = await openDatabase(
    databaseUrl === undefined ? { data_dir: sharedDir } : { database_url: databaseUrl },
  );
  cleanUp(() => database.close());

  const windows = () => windowSums(database.queries).execute();
  const spent = async () => {
    const rows = await windows();
    const sum = { spent: 0, leased: 0 };
    for (const row of rows) {
      sum.spent += row.spent;
      sum.leased += row.leased;
    }
    return sum;
  };

  return {
    sandbox,
    gateways,
    get ended() {
      return ending;
    },
    spent,
    async makeKey(limitNano) {
      const answer = await gateways[0]!.call('POST', '/keys', { body: { name: 'spender', limit: limitNano / 1e9 } });
      expect(answer.status).toBe(201);
      return ((await answer.json()) as { key: string }).key;
    },
    watch(limitNano) {
      let stopped = false;
      const watched = { samples: 0, over: [] as string[], stop: async () => {} };
      const looking = (async () => {
        while (!stopped) {
          const sum = await spent();
          watched.samples += 1;
          if (sum.spent + sum.leased > limitNano) watched.over.push(JSON.stringify(sum));
          await sleep(SAMPLE_MS);
        }
      })();
      watched.stop = async () => {
        stopped = true;
        await looking;
      };
      cleanUp(watched.stop);
      return watched;
    },
    kill() {
      const living = gateways.filter(({ child }) => isAlive(child.pid!));
      // Every fourth may be a gateway that is just starting. The workers of one gateway cannot be distinguished.
      const met = kills % 4 === 3 ? living : living.filter((gateway) => serving.has(gateway));
      const pids = met.map(({ child }) => child.pid!);
      // The parent replaces killed workers.
      const nodes = databaseUrl === undefined ? pids.flatMap(childrenOf) : pids;
      const chosen = nodes[Math.floor(Math.random() * nodes.length)];
      if (chosen === undefined) return false;
      process.kill(chosen, 'SIGKILL');
      kills += 1;
      return true;
    },
    whole,
    async end() {
      await whole();
      ending = true;
      for (const code of await Promise.all(gateways.map(stop))) expect(code).toBe(0);
      await kept;
      expect((await spent()).leased).toBe(0);
      const verified = run(process.execPath, [join(root, 'bin/model-gateway.cjs'), 'ledger', 'verify'], {
        env: { GATEWAY_DATA_DIR: settings[0]!.data_dir!, GATEWAY_CONFIG: '', ...environment },
      });
      expect([await verified.ended, verified.out(), verified.err()]).toEqual([
        0,
        expect.stringContaining('no differences'),
        '',
      ]);
    },
    async recorded() {
      const rows = await database.queries
        .selectFrom('ledger_generations')
        .select(['id', 'cost', 'outcome', 'record'])
        .execute();
      return rows.map(({ id, cost, outcome, record }) => {
        const { model, usage } = recordOf(record);
        return { id, model, cost, outcome, estimated: usage?.estimated === true };
      });
    },
  };
}
