/** Revocation over the workers of one gateway. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
});

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Sends requests on a connection of its own, so that the kernel may assign it to any worker. */
async function ask(url: string, key: string, method = 'GET', body?: object): Promise<number> {
  const answer = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      connection: 'close',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

test('no worker accepts a key that another one revoked', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gateway-revocation-'));
  const port = await freePort();
  const MANAGEMENT = 'test-management-key-0123456789abcdef';
  const child: ChildProcess = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../src/main.ts'), 'serve', '--workers', '3'],
    {
      cwd: dataDir,
      stdio: 'ignore',
      env: {
        ...process.env,
        GATEWAY_DATA_DIR: dataDir,
        GATEWAY_PORT: String(port),
        GATEWAY_MANAGEMENT_KEY: MANAGEMENT,
        GATEWAY_LOG_LEVEL: 'silent',
      },
    },
  );
  cleanups.push(async () => {
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
    rmSync(dataDir, { recursive: true, force: true });
  });
  const base = `http://127.0.0.1:${port}/api/v1`;
  for (let tries = 0; ; tries += 1) {
    if (
      await fetch(`http://127.0.0.1:${port}/health/ready`).then(
        (answer) => answer.ok,
        () => false,
      )
    )
      break;
    if (tries > 200) throw new Error('the workers do not serve');
    await sleep(100);
  }
  // Each worker takes a slot of the data directory just before it listens.
  while (readdirSync(join(dataDir, 'slots')).length < 3) await sleep(100);
  await sleep(1_500);
  for (let round = 0; round < 5; round += 1) {
    const made = await fetch(`${base}/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${MANAGEMENT}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ name: 'k' }),
    });
    const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
    // Enough connections that every worker has seen the key.
    const before = await Promise.all(Array.from({ length: 30 }, () => ask(`${base}/key`, key)));
    expect(new Set(before)).toEqual(new Set([200]));
    expect(await ask(`${base}/keys/${data.hash}`, MANAGEMENT, 'PATCH', { disabled: true })).toBe(200);
    const after = await Promise.all(Array.from({ length: 30 }, () => ask(`${base}/key`, key)));
    expect(new Set(after)).toEqual(new Set([401]));
  }
});
