/** The behaviour of a node while PostgreSQL is stopped, frozen, cut off or slow, without overspending. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { windowStarts } from '../../src/accounts/key.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { keyStore } from '../../src/storage/keys.ts';
import { verifyLedger } from '../../src/storage/verify-ledger.ts';
import { runProgram } from '../command-line.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { noOwnPostgres, startOwnPostgres } from '../own-postgres.ts';
import { type BreakingWay, breakingWay } from '../routing/breaking-way.ts';

const cleanups: (() => Promise<unknown> | unknown)[] = [];

async function node(url: string, way: BreakingWay | undefined, yaml = '{}'): Promise<TestGateway> {
  const gateway = await startGateway({
    yaml,
    environment: { DATABASE_URL: way?.url(url) ?? url, GATEWAY_SECRET: 'a-secret-that-all-nodes-share-long-enough' },
  });
  cleanups.push(() => gateway.stop());
  return gateway;
}

async function makeKey(gateway: TestGateway, body: object = {}): Promise<{ key: string; hash: string }> {
  const authorization = `Bearer ${gateway.management_key}`;
  const made = await gateway.call('POST', '/keys', { name: 'k', ...body }, { authorization });
  const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
  return { key, hash: data.hash };
}

async function chat(gateway: TestGateway, key = gateway.key, maxTokens = 20) {
  const body = { model: 'sandbox/echo', max_tokens: maxTokens, messages: [{ role: 'user', content: 'hello there' }] };
  const answer = await gateway.call('POST', '/chat/completions', body, { authorization: `Bearer ${key}` });
  await answer.text();
  const { headers, status } = answer;
  return {
    status,
    retry_after: headers.get('retry-after'),
    without_store: headers.get('x-gateway-served-without-store'),
  };
}

const metric = async ({ url }: TestGateway, name: string) => {
  const line = (await (await fetch(`${url}/metrics`)).text()).split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.split(' ')[1]);
};

const SERVED = { status: 200, without_store: null };
const REFUSED = { status: 503, retry_after: '1' };
const WITHOUT_STORE = { status: 200, without_store: 'true' };

/** Waits until a call gets this answer. A node notices within about a second that the store is gone, or back. */
const becomes = (ask: () => Promise<object>, what: object) => expect.poll(ask, { interval: 50 }).toMatchObject(what);

const serveFor = (seconds: number) => `ledger: { on_store_outage: { serve_for: ${seconds} } }`;

describeStores('a store that does not answer', ({ engine, freshUrl }) => {
  if (engine === 'sqlite') {
    test('does not concern the embedded store: its calls have no header', async () => {
      const gateway = await startGateway({ yaml: serveFor(60) });
      cleanups.push(() => gateway.stop());
      expect(await chat(gateway)).toMatchObject(SERVED);
    });
    afterEach(tidyUp);
    return;
  }
  afterEach(tidyUp);

  const setUp = async (yaml?: string) => {
    const url = (await freshUrl()) ?? '';
    const way = await breakingWay(url);
    cleanups.push(() => way.stop());
    const gateway = await node(url, way, yaml);
    expect(await chat(gateway)).toMatchObject(SERVED);
    return { url, way, gateway };
  };

  test.each(['closed', 'silent'] as const)(
    '%s: calls are refused with 503 at once, and served again when the store returns',
    async (state) => {
      const { way, gateway } = await setUp();
      way.set(state);
      await becomes(() => chat(gateway), REFUSED);
      const called = async () => {
        await chat(gateway);
        return { value: await metric(gateway, 'gateway_store_reachable') };
      };
      await becomes(called, { value: 0 });
      // Each of these would wait for the store if it were read.
      const many = await Promise.all(Array.from({ length: 50 }, () => chat(gateway)));
      for (const one of many) expect(one).toMatchObject(REFUSED);
      way.set('open');
      await becomes(() => chat(gateway), SERVED);
      expect(await metric(gateway, 'gateway_store_reachable')).toBe(1);
    },
  );

  test('that is slow: a key whose records are in time singly but not together is refused', async () => {
    const { way, gateway } = await setUp();
    way.delay(700);
    const { key } = await makeKey(gateway).catch(() => ({ key: 'sk-never-seen' }));
    expect(await chat(gateway, key)).toMatchObject({ status: 503 });
    way.delay(0);
    await becomes(() => chat(gateway), SERVED);
  });

  test.each(['closed', 'silent'] as const)(
    '%s: if allowed, recently used keys are served for the configured time, and this is reported',
    async (state) => {
      const { way, gateway } = await setUp(serveFor(8));
      const unseen = await makeKey(gateway);
      way.set(state);
      await becomes(() => chat(gateway), WITHOUT_STORE);
      expect(await chat(gateway, unseen.key)).toMatchObject(REFUSED);
      expect(await metric(gateway, 'gateway_served_without_store_total')).toBeGreaterThan(0);
      expect(gateway.log_lines.some((line) => line.includes('"served_without_store":true'))).toBe(true);
      await becomes(() => chat(gateway), REFUSED);
      way.set('open');
      await becomes(() => chat(gateway), SERVED);
    },
  );

  test('a key that an operator revokes on the node is refused there with and without the store, until that is undone', async () => {
    const { way, gateway } = await setUp(serveFor(300));
    way.set('silent');
    await becomes(() => chat(gateway), WITHOUT_STORE);
    const env = { GATEWAY_DATA_DIR: gateway.data_dir, DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none' };
    const revoke = (...more: string[]) =>
      runProgram(['keys', 'revoke', '--on-this-node', gateway.key_hash, ...more], { env, cwd: gateway.data_dir });
    expect(await revoke()).toMatchObject({ code: 0, stdout: expect.stringContaining('refuse the key') });
    expect(await chat(gateway)).toMatchObject({ status: 401 });
    way.set('open');
    await becomes(() => metric(gateway, 'gateway_store_reachable').then((value) => ({ value })), { value: 1 });
    expect(await chat(gateway)).toMatchObject({ status: 401 });
    expect(await revoke('--undo')).toMatchObject({ code: 0 });
    expect(await chat(gateway)).toMatchObject(SERVED);
  });

  test('a key that another node revokes is refused once the store is reachable, and at the end of the time at the latest', async () => {
    const { url, way, gateway } = await setUp(serveFor(6));
    const other = await node(url, undefined);
    way.set('silent');
    await becomes(() => chat(gateway), WITHOUT_STORE);
    const authorization = `Bearer ${other.management_key}`;
    expect((await other.call('DELETE', `/keys/${gateway.key_hash}`, undefined, { authorization })).status).toBe(200);
    await becomes(() => chat(gateway), REFUSED);
    way.set('open');
    await becomes(() => chat(gateway), { status: 401 });
  });

  test('two nodes do not exceed a limit while the store is unreachable', async () => {
    const { url, way, gateway } = await setUp(serveFor(60));
    const other = await node(url, way, serveFor(60));
    const limit = 0.0004;
    const { key, hash } = await makeKey(gateway, { limit });
    for (const one of [gateway, other]) expect(await chat(one, key)).toMatchObject(SERVED);
    way.set('silent');
    let served = 0;
    const deadline = performance.now() + 5_000;
    while (performance.now() < deadline) {
      const all = await Promise.all([gateway, other, gateway, other].map((one) => chat(one, key)));
      served += all.filter(({ status }) => status === 200).length;
      expect(all.every(({ status }) => status === 200 || status === 503)).toBe(true);
      if (all.every(({ status }) => status === 503)) break;
    }
    expect(served).toBeGreaterThan(0);
    way.set('open');
    for (const one of [gateway, other]) await becomes(() => chat(one), SERVED);
    for (const one of [gateway, other]) await one.gateway.stop();
    const database = await openDatabase({ database_url: url });
    const { total = 0 } = (await keyStore(database.queries).findUsage(hash, windowStarts(Date.now()))).usage;
    expect(total).toBeGreaterThan(0);
    expect(total).toBeLessThanOrEqual(limit * 1e9);
    expect((await verifyLedger(database.queries)).differences).toEqual([]);
    await database.close();
  });
});

async function tidyUp(): Promise<void> {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
}

describe.skipIf(noOwnPostgres !== undefined)(`a PostgreSQL of its own ${noOwnPostgres ?? ''} (postgres)`, () => {
  afterEach(tidyUp);

  test('stopped and frozen: calls are refused, or served as configured, and everything recovers with it', async () => {
    const own = await startOwnPostgres();
    cleanups.push(() => own.remove());
    const strict = await node(own.url, undefined);
    const lenient = await node(own.url, undefined, serveFor(60));
    const served = async () => {
      for (const one of [strict, lenient]) await becomes(() => chat(one), SERVED);
    };
    await served();
    for (const [breakIt, mendIt] of [
      [own.freeze, own.thaw],
      [own.stop, own.start],
    ] as const) {
      breakIt();
      await becomes(() => chat(strict), REFUSED);
      await becomes(() => chat(lenient), WITHOUT_STORE);
      await sleep(500);
      mendIt();
      await served();
    }
  });
});
