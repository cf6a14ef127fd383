import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Gateway, startGateway as start } from '../src/cli/start-gateway.ts';
import { type Environment, loadConfig } from '../src/config.ts';
import type { Clock } from '../src/inference/call.ts';
import { DATABASE_FILE, openDatabase } from '../src/storage/database.ts';
import { createLog } from '../src/telemetry/log.ts';
import { checkStreamOf } from './grammar/check-stream.ts';

export interface TestGatewayOptions {
  /** The text of a gateway.yaml. Not set: the sandbox serves. */
  yaml?: string;
  environment?: Environment;
  /** The data directory, which may exist and is kept. */
  data_dir?: string;
  clock?: Clock;
  /** The random numbers of routing. Default: always 0, which is the cheapest first. */
  chance?: () => number;
}

export interface TestGateway {
  url: string;
  /** `url` with the path prefix, as SDKs want it. */
  base_url: string;
  management_key: string;
  /** An ordinary key. */
  key: string;
  key_hash: string;
  log_lines: string[];
  data_dir: string;
  /** The store, if it is PostgreSQL. */
  database_url: string | undefined;
  gateway: Gateway;
  /**
   * Calls an operation with the ordinary key; a path without `/api/v1`. A stream that is read as text is checked
   * against its grammar.
   */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  stop(): Promise<void>;
}

const MANAGEMENT_KEY = 'test-management-key-0123456789abcdef';

/** An empty store of this version: gateways that begin with a copy of it need not create a hundred tables each. */
let migrated: Promise<Buffer> | undefined;
async function migratedStore(): Promise<Buffer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  try {
    const database = await openDatabase({ data_dir: dataDir });
    await database.close();
    return readFileSync(join(dataDir, DATABASE_FILE));
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Starts the real gateway on a free port, with a store and a journal of its own, and makes one ordinary key. */
export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const home = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  const dataDir = options.data_dir ?? join(home, 'data');
  const configFile = join(home, 'gateway.yaml');
  writeFileSync(configFile, options.yaml ?? '{}');
  if (!existsSync(dataDir) && options.environment?.['DATABASE_URL'] === undefined) {
    migrated ??= migratedStore();
    mkdirSync(dataDir, { mode: 0o700 });
    writeFileSync(join(dataDir, DATABASE_FILE), await migrated, { mode: 0o600 });
  }
  const logLines: string[] = [];
  const config = loadConfig(
    {
      GATEWAY_HOST: '127.0.0.1',
      GATEWAY_PORT: '0',
      GATEWAY_DATA_DIR: dataDir,
      GATEWAY_MANAGEMENT_KEY: MANAGEMENT_KEY,
      ...options.environment,
    },
    { config_file: configFile },
  );
  const log = createLog(config.log_level, { write: (line) => void logLines.push(line) });
  const gateway = await start({
    config,
    log,
    chance: options.chance ?? (() => 0),
    ...(options.clock ? { clock: options.clock } : {}),
  });
  // `vitest.config.ts` sets it to run tests of hostile clients on the framework's edge as well.
  if (process.env['TEST_EDGE'] === 'framework') gateway.app.server.directEdge.serve = () => false;
  const baseUrl = `${gateway.url}/api/v1`;
  const made = await fetch(`${baseUrl}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'test' }),
  });
  if (made.status !== 201) throw new Error(`no key could be made: ${made.status} ${await made.text()}`);
  const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
  return {
    url: gateway.url,
    base_url: baseUrl,
    management_key: MANAGEMENT_KEY,
    key,
    key_hash: data.hash,
    log_lines: logLines,
    data_dir: dataDir,
    database_url: options.environment?.['DATABASE_URL'],
    gateway,
    async call(method, path, body, headers) {
      const response = await fetch(`${baseUrl}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      return withCheckedText(response, (text) => checkStreamOf(path, body, text));
    },
    async stop() {
      await gateway.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** The response. Reading its text throws if it is a stream that violates the grammar. */
function withCheckedText(response: Response, check: (text: string) => void): Response {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response;
  const read = response.text.bind(response);
  const text = async () => {
    const value = await read();
    check(value);
    return value;
  };
  return Object.defineProperty(response, 'text', { value: text });
}
