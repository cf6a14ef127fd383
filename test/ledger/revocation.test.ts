import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { afterEach, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { describeStores } from './store-variants.ts';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
});

/** Two gateways on one store: on PostgreSQL each with its own data directory, else on one. */
async function pair(databaseUrl: string | undefined): Promise<[TestGateway, TestGateway]> {
  const environment: Record<string, string> = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
  const one = await startGateway({ environment });
  cleanups.push(() => one.stop());
  const other = await startGateway({
    environment,
    ...(databaseUrl === undefined ? { data_dir: one.data_dir } : {}),
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

/** A node's answer to a key, by `GET /key`, which checks the key in the same way as inference. */
const statusOf = async (gateway: TestGateway, key: string) =>
  (await gateway.call('GET', '/key', undefined, { authorization: `Bearer ${key}` })).status;

describeStores('a revoked key', ({ engine, freshUrl }) => {
  test('is accepted by no node once the request is answered, however warm the caches of the others', async () => {
    const [one, other] = await pair(await freshUrl());
    for (let round = 0; round < 20; round += 1) {
      const { key, hash } = await makeKey(one);
      for (const gateway of [one, other]) expect(await statusOf(gateway, key)).toBe(200);
      if (round % 2 === 0) expect((await manage(one, 'PATCH', `/keys/${hash}`, { disabled: true })).status).toBe(200);
      else expect((await manage(one, 'DELETE', `/keys/${hash}`)).status).toBe(200);
      const after = await Promise.all([other, one, other].map((gateway) => statusOf(gateway, key)));
      expect([round, ...after]).toEqual([round, 401, 401, 401]);
    }
  });

  test('is accepted by no node under load either', async () => {
    const [one, other] = await pair(await freshUrl());
    const { key, hash } = await makeKey(one);
    let revoked = false;
    let stop = false;
    const late: number[] = [];
    const load = Array.from({ length: 20 }, async () => {
      while (!stop) {
        const wasRevoked = revoked;
        const status = await statusOf(other, key);
        if (wasRevoked && status !== 401) late.push(status);
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
  });

  test('is refused from the moment it expires, also if it is cached', async () => {
    const [one] = await pair(await freshUrl());
    const { key } = await makeKey(one, { expires_at: new Date(Date.now() + 1_500).toISOString() });
    expect(await statusOf(one, key)).toBe(200);
    await sleep(1_700);
    expect(await statusOf(one, key)).toBe(401);
  });

  if (engine === 'postgres') {
    test('is not accepted by a node while its connection for notifications is down', async () => {
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
      // The feed is connected again: another revocation arrives.
      const next = await makeKey(one);
      expect(await statusOf(other, next.key)).toBe(200);
      expect((await manage(one, 'DELETE', `/keys/${next.hash}`)).status).toBe(200);
      expect(await statusOf(other, next.key)).toBe(401);
    });
  }
});
