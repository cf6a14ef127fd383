import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  chat,
  childrenOf,
  freePort,
  freshDir,
  isAlive,
  MANAGEMENT_KEY,
  makeKey,
  metric,
  run,
  serve,
  start,
  stop,
  until,
} from './gateway-process.ts';

const root = join(import.meta.dirname, '../..');

/** A Node outside this project that is too old to run it; undefined if the machine has none. */
function oldNode(): string | undefined {
  const folders = ['/usr/bin', '/usr/local/bin', ...(process.env['PATH'] ?? '').split(delimiter)];
  return folders
    .map((folder) => join(folder, 'node'))
    .filter((file) => !file.includes('node_modules') && existsSync(file))
    .find((file) => {
      const version = /^v(\d+)/.exec(spawnSync(file, ['--version'], { encoding: 'utf8' }).stdout)?.[1];
      return version !== undefined && Number(version) < 24;
    });
}

const old = oldNode();
if (old === undefined)
  process.stdout.write('Tests of the launcher under an old Node are skipped: no old Node is installed\n');

/** A copy of the launcher in a tree of its own, with or without packages. */
function launcherWith(packages: readonly string[]): string {
  const tree = freshDir();
  cpSync(join(root, 'bin'), join(tree, 'bin'), { recursive: true });
  mkdirSync(join(tree, 'node_modules'));
  for (const name of packages) symlinkSync(join(root, 'node_modules', name), join(tree, 'node_modules', name));
  return join(tree, 'bin/model-gateway.cjs');
}

describe.skipIf(old === undefined || process.platform !== 'linux')('under an older Node', () => {
  const node = old ?? '';

  test('the gateway runs on the pinned runtime; SIGTERM to the launcher drains it, and both end with 0', async () => {
    const gateway = await serve({ node });
    const [child = 0, ...others] = childrenOf(gateway.child.pid ?? 0);
    expect(others).toEqual([]);
    expect(readFileSync(`/proc/${child}/cmdline`, 'utf8')).toMatch(
      /node_modules\/node-linux-[^/]+\/bin\/node\0--no-memory-reducer\0--use-largepages=silent\0/,
    );
    const { key } = await makeKey(gateway);
    const body = chat('sandbox/story', { stream: true, sandbox: { tokens: 60, chunk_delay_ms: 10 } });
    const answer = await gateway.call('POST', '/chat/completions', { key, body });
    const text = answer.text();
    expect(await stop(gateway)).toBe(0);
    expect(await text).toMatch(/data: \[DONE\]\n\n$/);
    expect(isAlive(child)).toBe(false);
    expect(gateway.log().at(-1)).toMatchObject({ msg: 'stopped' });
  });

  test('an interrupt to both launcher and gateway, as from a terminal, drains once', async () => {
    const gateway = await serve({ node });
    const [child = 0] = childrenOf(gateway.child.pid ?? 0);
    process.kill(child, 'SIGINT');
    gateway.child.kill('SIGINT');
    expect(await gateway.ended).toBe(0);
    expect(gateway.log().map(({ msg }) => msg)).toContain('stopped');
  });

  test('a launcher that is killed leaves no gateway behind', async () => {
    const gateway = await serve({ node });
    const [child = 0] = childrenOf(gateway.child.pid ?? 0);
    gateway.child.kill('SIGKILL');
    try {
      await until('the gateway has ended', () => !isAlive(child));
    } finally {
      if (isAlive(child)) process.kill(child, 'SIGKILL');
    }
    expect(await gateway.ended).toBe('SIGKILL');
    expect(gateway.log().at(-1)).toMatchObject({ msg: 'stopped' });
  });

  test('a gateway that is killed ends the launcher the same way', async () => {
    const gateway = await serve({ node });
    const [child = 0] = childrenOf(gateway.child.pid ?? 0);
    process.kill(child, 'SIGKILL');
    expect(await gateway.ended).toBe('SIGKILL');
  });

  test('a failed start ends the launcher with its code', async () => {
    const gateway = await start({ node, yaml: 'nonsense: 1\n' });
    expect(await gateway.ended).toBe(1);
    expect(gateway.err()).toMatch(/nonsense/);
  });

  test('without the pinned runtime it names the required Node and how to get it', async () => {
    const ran = run(node, [launcherWith(['fastify']), 'serve']);
    expect(await ran.ended).toBe(1);
    expect(ran.err()).toMatch(/^Model Gateway needs Node 24 or newer; this is v\d+/);
    expect(ran.err()).toContain('https://nodejs.org');
  });

  test('`npm start` runs the pinned runtime directly, and ends with npm', { timeout: 180_000 }, async () => {
    const npm = join(node, '../npm');
    if (!existsSync(npm)) return;
    const port = await freePort();
    const home = freshDir();
    const environment = {
      GATEWAY_PORT: String(port),
      GATEWAY_DATA_DIR: join(home, 'data'),
      GATEWAY_MANAGEMENT_KEY: MANAGEMENT_KEY,
      PATH: `${join(node, '..')}${delimiter}${process.env['PATH'] ?? ''}`,
    };
    const ran = run(npm, ['start'], { env: environment });
    await until('ready', async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => undefined);
      return answer?.status === 200;
    });
    const tree = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(tree)];
    const pids = tree(ran.child.pid ?? 0);
    const gateways = pids.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('model-gateway.cjs\0'));
    expect(gateways).toHaveLength(1);
    expect(readFileSync(`/proc/${gateways[0]}/cmdline`, 'utf8')).toContain(
      '\0--no-memory-reducer\0--use-largepages=silent\0--max-semi-space-size=32\0',
    );
    expect(readFileSync(`/proc/${gateways[0]}/status`, 'utf8')).toMatch(/^PPid:/m);
    ran.child.kill('SIGTERM');
    await until('everything has ended', () => !pids.some(isAlive));
    expect(ran.out()).toContain('"msg":"stopped"');
  });
});

test.skipIf(process.platform !== 'linux')('worker processes get flags and variables of memory', async () => {
  const gateway = await serve({ args: ['--workers', '2'] });
  await until('two workers serve', async () => (await metric(gateway, 'gateway_processes')) === 2);
  const workers = childrenOf(gateway.child.pid ?? 0);
  expect(workers).toHaveLength(2);
  for (const pid of workers) {
    expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toContain(
      '\0--no-allocation-site-pretenuring\0--heap-growing-percent=50\0',
    );
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')).toContain('MALLOC_ARENA_MAX=1');
  }
  expect(await stop(gateway)).toBe(0);
});

test('without packages it requests npm ci', async () => {
  const launcher = launcherWith([]);
  const ran = run(old ?? process.execPath, [launcher, 'serve']);
  expect(await ran.ended).toBe(1);
  expect(ran.err()).toMatch(/packages of Model Gateway are not installed\.\nRun `npm ci`/);
  rmSync(join(launcher, '../../node_modules'), { recursive: true });
});
