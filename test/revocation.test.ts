import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { afterEach, expect, test } from 'vitest';
import { startGateway, type TestGateway } from './harness.ts';
import { describeStores } from './store-variants.ts';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
});

/** Two gateways on one store: on PostgreSQL each with its own data directory, else on one. */
async function pair(database_url: string | undefined): Promise<[TestGateway, TestGateway]> {
  const environment: Record<string, string> = database_url === undefined ? {} : { DATABASE_URL: database_url };
  const one = await startGateway({ environment });
  cleanups.push(() => one.stop());
  const other = await startGateway({
    environment,
    ...(database_url === undefined ? { data_dir: one.data_dir } : {}),
  });
  cleanups.push(() => other.stop());
  return [one, other];
}

async function makeKey(gateway: TestGateway, body: object = {}): Promise<{ key: string; hash: string }> {
  const authorization = `Bearer ${gateway.management_key}`;
  const made = await gateway.call('POST', '/keys', { name: 'k', ...body }, { authorization });
  const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
  return { key, hash: data.hash };
}

const manage = (gateway: TestGateway, method: string, path: string, body?: unknown) =>
  gateway.call(method, path, body, { authorization: `Bearer ${gateway.management_key}` });

/** What a node says to a key; its credit is asked by `GET /key`, which passes the same door as inference. */
const statusOf = async (gateway: TestGateway, key: string) =>
  (await gateway.call('GET', '/key', undefined, { authorization: `Bearer ${key}` })).status;

describeStores('a revoked key', ({ engine, freshUrl }) => {
  test('is taken by no node once the answer is there, however warm the memory of the other', async () => {
    const [one, other] = await pair(await freshUrl());
    for (let round = 0; round < 20; round += 1) {
      const { key, hash } = await makeKey(one);
      for (const gateway of [one, other]) expect(await statusOf(gateway, key)).toBe(200);
      if (round % 2 === 0) expect((await manage(one, 'PATCH', `/keys/${hash}`, { disabled: true })).status).toBe(200);
      else expect((await manage(one, 'DELETE', `/keys/${hash}`)).status).toBe(200);
      const after = await Promise.all([other, one, other].map((gateway) => statusOf(gateway, key)));
      expect([round, ...after]).toEqual([round, 401, 401, 401]);
    }
  }, 60_000);

  test('is taken by no node under load either', async () => {
    const [one, other] = await pair(await freshUrl());
    const { key, hash } = await makeKey(one);
    let revoked = false;
    let stop = false;
    const late: number[] = [];
    const load = Array.from({ length: 20 }, async () => {
      while (!stop) {
        const was_revoked = revoked;
        const status = await statusOf(other, key);
        if (was_revoked && status !== 401) late.push(status);
      }
    });
    await sleep(300);
    expect((await manage(one, 'PATCH', `/keys/${hash}`, { disabled: true })).status).toBe(200);
    revoked = true;
    await sleep(300);
    stop = true;
    await Promise.all(load);
    expect(late).toEqual([]);
    expect((await manage(one, 'PATCH', `/keys/${hash}`, { disabled: false })).status).toBe(200);
    expect(await statusOf(other, key)).toBe(200);
  }, 60_000);

  test('that expires is refused at that moment, from memory too', async () => {
    const [one] = await pair(await freshUrl());
    const { key } = await makeKey(one, { expires_at: new Date(Date.now() + 1_500).toISOString() });
    expect(await statusOf(one, key)).toBe(200);
    await sleep(1_700);
    expect(await statusOf(one, key)).toBe(401);
  }, 60_000);

  if (engine === 'postgres') {
    test('is not taken by a node whose connection for notifications is cut, before it is back', async () => {
      const url = (await freshUrl()) ?? '';
      const [one, other] = await pair(url);
      const { key, hash } = await makeKey(one);
      expect(await statusOf(other, key)).toBe(200);
      const client = new Client({ connectionString: url });
      await client.connect();
      cleanups.push(() => client.end());
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'model-gateway changes'",
      );
      expect((await manage(one, 'PATCH', `/keys/${hash}`, { disabled: true })).status).toBe(200);
      expect(await statusOf(other, key)).toBe(401);
      await sleep(1_500);
      // The feed is back: another one is heard again.
      const next = await makeKey(one);
      expect(await statusOf(other, next.key)).toBe(200);
      expect((await manage(one, 'DELETE', `/keys/${next.hash}`)).status).toBe(200);
      expect(await statusOf(other, next.key)).toBe(401);
    }, 60_000);
  }
});

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Asks on a connection of its own, so that the kernel may deal it to any worker. */
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

test('a key that one worker revokes is taken by none of the others', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gateway-revocation-'));
  const port = await freePort();
  const MANAGEMENT = 'test-management-key-0123456789abcdef';
  const child: ChildProcess = spawn(
    process.execPath,
    [join(import.meta.dirname, '..', 'src', 'main.ts'), 'serve', '--workers', '3'],
    {
      cwd: data_dir,
      stdio: 'ignore',
      env: {
        ...process.env,
        GATEWAY_DATA_DIR: data_dir,
        GATEWAY_PORT: String(port),
        GATEWAY_MANAGEMENT_KEY: MANAGEMENT,
        GATEWAY_LOG_LEVEL: 'silent',
      },
    },
  );
  cleanups.push(async () => {
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    await gone;
    rmSync(data_dir, { recursive: true, force: true });
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
  while (readdirSync(join(data_dir, 'slots')).length < 3) await sleep(100);
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
}, 90_000);
