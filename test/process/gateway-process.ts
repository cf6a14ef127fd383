import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** A gateway as an operator runs it: a process of its own, observed by its output, its port and its end. */
export interface GatewayProcess {
  child: ChildProcess;
  url: string;
  base_url: string;
  data_dir: string;
  /** Its standard output and standard error so far. */
  out(): string;
  err(): string;
  /** The lines of its log, parsed. */
  log(): Record<string, unknown>[];
  /** Resolves with its exit code, or the signal that ended it, once its output is closed. */
  ended: Promise<number | NodeJS.Signals>;
  /** Waits until it accepts requests. */
  ready(): Promise<void>;
  call(method: string, path: string, options?: CallOptions): Promise<Response>;
}

export interface CallOptions {
  key?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface StartOptions {
  /** The program that runs `bin/model-gateway.cjs`; by default this process's own Node. */
  node?: string;
  launcher?: string;
  args?: string[];
  environment?: Record<string, string>;
  data_dir?: string;
  port?: number;
  /** Text of a gateway.yaml. */
  yaml?: string;
}

export const MANAGEMENT_KEY = 'test-management-key-0123456789abcdef';

/** A fresh directory, removed at the end of the test. */
export function freshDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'gateway-process-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A free port below those that the system assigns to outgoing connections, so that it stays free until it is used. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}

/** Whether a process exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Waits until a condition holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not reached within ${withinMs} ms: ${what}`);
    await sleep(20);
  }
}

/** Runs a program and follows it; the end of the test kills it. */
export function run(command: string, args: string[], options: { cwd?: string; env?: Record<string, string> } = {}) {
  const child = spawn(command, args, {
    cwd: options.cwd ?? root,
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (bytes) => {
    out += bytes;
  });
  child.stderr.on('data', (bytes) => {
    err += bytes;
  });
  const ended = once(child, 'close').then(([code, signal]) => (signal ?? code) as number | NodeJS.Signals);
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await ended;
  });
  return { child, out: () => out, err: () => err, ended };
}

/** Starts a gateway; it may not serve yet when this resolves. */
export async function start(options: StartOptions = {}): Promise<GatewayProcess> {
  const home = freshDir();
  const dataDir = options.data_dir ?? join(home, 'data');
  const port = options.port ?? (await freePort());
  const configFile = join(home, 'gateway.yaml');
  writeFileSync(configFile, options.yaml ?? '{}');
  const launcher = options.launcher ?? join(root, 'bin/model-gateway.cjs');
  const followed = run(options.node ?? process.execPath, [launcher, 'serve', ...(options.args ?? [])], {
    env: {
      GATEWAY_PORT: String(port),
      GATEWAY_DATA_DIR: dataDir,
      GATEWAY_CONFIG: configFile,
      GATEWAY_MANAGEMENT_KEY: MANAGEMENT_KEY,
      ...options.environment,
    },
  });
  const url = `http://127.0.0.1:${port}`;
  const baseUrl = `${url}/api/v1`;
  return {
    ...followed,
    url,
    base_url: baseUrl,
    data_dir: dataDir,
    log: () =>
      followed
        .out()
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    ready: () =>
      until('the gateway is ready', async () => {
        const { exitCode, signalCode } = followed.child;
        if (exitCode !== null || signalCode !== null) {
          throw new Error(`the gateway ended (${exitCode ?? signalCode}): ${followed.err()}${followed.out()}`);
        }
        const answer = await fetch(`${url}/health/ready`).catch(() => undefined);
        await answer?.text();
        return answer?.status === 200;
      }),
    call: (method, path, { key = MANAGEMENT_KEY, body, headers, signal } = {}) =>
      fetch(`${baseUrl}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      }),
  };
}

/** Starts a gateway and waits until it serves. */
export async function serve(options: StartOptions = {}): Promise<GatewayProcess> {
  const gateway = await start(options);
  await gateway.ready();
  return gateway;
}

/** Makes an ordinary key. */
export async function makeKey(gateway: GatewayProcess, name = 'test'): Promise<{ key: string; hash: string }> {
  const answer = await gateway.call('POST', '/keys', { body: { name } });
  if (answer.status !== 201) throw new Error(`no key could be made: ${answer.status} ${await answer.text()}`);
  const { key, data } = (await answer.json()) as { key: string; data: { hash: string } };
  return { key, hash: data.hash };
}

/**
 * A request for a chat completion of a sandbox model, over the wire that passes `sandbox` on: it is the cheaper one,
 * and not drawn.
 */
export function chat(model: string, more: Record<string, unknown> = {}) {
  return { model, messages: [{ role: 'user', content: 'Hello' }], provider: { sort: 'price' }, ...more };
}

/** Stops a gateway gracefully, and waits for its end. */
export async function stop(gateway: GatewayProcess): Promise<number | NodeJS.Signals> {
  gateway.child.kill('SIGTERM');
  return gateway.ended;
}

/** The child processes of this one. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return (
          Number(
            readFileSync(`/proc/${name}/stat`, 'utf8')
              .replace(/^.*\) . /s, '')
              .split(' ')[0],
          ) === pid
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** The value of a metric, summed over its lines that contain `label`. */
export async function metric(gateway: GatewayProcess, name: string, label = ''): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .filter((line) => line.includes(label))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
