/** Probes of endpoints without traffic: within a budget, by one node, and visible in the records. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.ts';
import type { PublicEndpoint } from '../../src/schemas/endpoint.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { verifyLedger } from '../../src/storage/verify-ledger.ts';
import { withLimits } from '../changed-limits.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { responseHead, type Step, startWireServer } from '../wires/wire-server.ts';

withLimits({ probes_look_ms: 30, probe_wait_ms: 100 });

const event = (data: object) =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'x', ...data })}\n\n`;
// Near the hold of a probe: a prompt of one word and the tokens of a template.
const usage = { prompt_tokens: 200, completion_tokens: 1, total_tokens: 201 };
const ANSWER: Step[] = [
  responseHead(200, 'text/event-stream'),
  event({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Hey' }, finish_reason: null }] }) +
    event({ choices: [{ index: 0, delta: {}, finish_reason: 'length' }] }) +
    event({ choices: [], usage }) +
    'data: [DONE]\n\n',
  'END',
];

/** The cost of one probe with the prices below, 1000 USD a million tokens. */
const PROBE_USD = 0.201;

async function startSite(
  probes: object | undefined,
  models = 5,
  answer: Step[] | ((model: string) => Step[]) = ANSWER,
) {
  const upstream = await startWireServer(({ body }) =>
    typeof answer === 'function' ? answer((JSON.parse(body) as { model: string }).model) : answer,
  );
  const provider = { dialect: 'openai-chat', base_url: upstream.url };
  const pricing = { prompt: 1000, completion: 1000 };
  const yaml = JSON.stringify({
    bundled_catalog: false,
    providers: { acme: provider },
    models: Object.fromEntries(
      Array.from({ length: models }, (_, n) => [
        `acme/m${n}`,
        { endpoints: [{ provider: 'acme', upstream_model: `m${n}`, pricing }] },
      ]),
    ),
    ...(probes === undefined ? {} : { probes }),
  });
  return { upstream, yaml };
}

interface KeySeen {
  name: string;
  usage: number;
  limit: number | null;
  limit_remaining: number | null;
  limit_reset: string | null;
  disabled: boolean;
  hash: string;
}

async function manage<T>(gateway: TestGateway, method: string, path: string, body?: object): Promise<T> {
  const response = await gateway.call(method, path, body, { authorization: `Bearer ${gateway.management_key}` });
  return ((await response.json()) as { data: T }).data;
}

async function probeKey(gateway: TestGateway): Promise<KeySeen | undefined> {
  return (await manage<KeySeen[]>(gateway, 'GET', '/keys')).find(({ name }) => name === 'Health probes');
}

/** The time in which endpoints are checked for probes several times. */
const looks = () => sleep(12 * limits.probes_look_ms);

/** Waits until this number of requests has arrived, and then no more. */
async function settled(count: () => number, least: number): Promise<number> {
  await expect.poll(count, { interval: 10 }).toBeGreaterThanOrEqual(least);
  for (let before = -1; before !== count(); ) {
    before = count();
    await looks();
  }
  return count();
}

/** The usage of the probe key, once all sent probes are accounted for. */
async function spentOn(gateway: TestGateway, probes: number): Promise<number> {
  const used = async () => (await probeKey(gateway))?.usage;
  await expect.poll(used, { interval: 20 }).toBeCloseTo(probes * PROBE_USD, 9);
  return (await used()) ?? 0;
}

test('no endpoint is probed without configuration', async () => {
  const { upstream, yaml } = await startSite(undefined);
  const gateway = await startGateway({ yaml });
  try {
    expect(await settled(() => upstream.exchanges.length, 0)).toBe(0);
    expect(await probeKey(gateway)).toBeUndefined();
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
});

test('each probe requests one token, counts as traffic, and is recorded under a key without a secret', async () => {
  const { upstream, yaml } = await startSite({ usd_per_day: 10 });
  const gateway = await startGateway({ yaml });
  try {
    expect(await settled(() => upstream.exchanges.length, 5)).toBe(5);
    for (const { body } of upstream.exchanges) {
      expect(JSON.parse(body)).toMatchObject({
        stream: true,
        max_tokens: 1,
        messages: [{ role: 'user', content: 'Hi' }],
      });
    }
    const messages = [{ role: 'user', content: 'Hi' }];
    const explained = await gateway.call('POST', '/route/explain', { model: 'acme/m3', messages });
    const { data } = (await explained.json()) as { data: { endpoints: { planned: { health: object }[] } } };
    expect(data.endpoints.planned[0]?.health).toMatchObject({ latency: { p50: expect.any(Number) }, throughput: null });
    // The listing shows the small number of measurements.
    const response = await gateway.call('GET', '/models/acme/m3/endpoints');
    const listed = (await response.json()) as { data: { endpoints: PublicEndpoint[] } };
    expect(listed.data.endpoints[0]).toMatchObject({
      latency_last_30m: { p50: expect.any(Number) },
      samples_last_30m: 1,
    });
    const key = await probeKey(gateway);
    expect(key).toMatchObject({ limit: 10, limit_reset: 'daily', disabled: false });
    await spentOn(gateway, 5);
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
});

test('probes use the listed models, if any are listed', async () => {
  const { upstream, yaml } = await startSite({ usd_per_day: 10, models: ['acme/m0', 'acme/m1'] });
  const gateway = await startGateway({ yaml });
  try {
    expect(await settled(() => upstream.exchanges.length, 2)).toBe(2);
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
});

test('probes never exceed their budget, and their key can be disabled', async () => {
  // Enough for two probes, and a part of a third.
  const budget = 2.9 * PROBE_USD;
  const { upstream, yaml } = await startSite({ usd_per_day: budget, every_minutes: 1 }, 12);
  let aheadMs = 0;
  const clock = { nowMs: () => Date.now() + aheadMs, monotonicMs: () => performance.now() + aheadMs };
  const gateway = await startGateway({ yaml, clock });
  try {
    const rests = () => gateway.log_lines.filter((line) => line.includes('the budget does not pay for another probe'));
    await expect.poll(rests, { interval: 10 }).toHaveLength(1);
    const first = upstream.exchanges.length;
    expect(first).toBeGreaterThan(0);
    expect(await spentOn(gateway, first)).toBeLessThanOrEqual(budget);
    await looks();
    expect(upstream.exchanges).toHaveLength(first);
    expect(rests()).toHaveLength(1);

    const key = await probeKey(gateway);
    await manage(gateway, 'PATCH', `/keys/${key?.hash}`, { disabled: true });
    aheadMs += 86_400_000;
    await looks();
    expect(upstream.exchanges).toHaveLength(first);
    await manage(gateway, 'PATCH', `/keys/${key?.hash}`, { disabled: false });
    expect(await settled(() => upstream.exchanges.length, 2 * first)).toBe(2 * first);
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
});

test('probes skip endpoints that had calls before a restart', async () => {
  const { upstream, yaml } = await startSite(undefined);
  const before = await startGateway({ yaml });
  const messages = [{ role: 'user', content: 'Hi' }];
  const response = await before.call('POST', '/chat/completions', { model: 'acme/m0', stream: true, messages });
  await response.text();
  await before.gateway.stop();
  const probing = JSON.stringify({ ...(JSON.parse(yaml) as object), probes: { usd_per_day: 10 } });
  const gateway = await startGateway({ yaml: probing, data_dir: before.data_dir });
  try {
    expect(await settled(() => upstream.exchanges.length, 5)).toBe(5);
    const models = upstream.exchanges.map(({ body }) => (JSON.parse(body) as { model: string }).model);
    expect(models.toSorted()).toEqual(['m0', 'm1', 'm2', 'm3', 'm4']);
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
});

test('a probe without an answer delays no others', async () => {
  const silent: Step[] = [{ until: new Promise(() => {}) }];
  const { upstream, yaml } = await startSite({ usd_per_day: 10 }, 5, (model) => (model === 'm1' ? silent : ANSWER));
  const gateway = await startGateway({ yaml });
  try {
    await upstream.exchange(4);
    expect(new Set(upstream.exchanges.map(({ body }) => (JSON.parse(body) as { model: string }).model)).size).toBe(5);
    // It gets no other probe meanwhile either.
    await looks();
    expect(upstream.exchanges).toHaveLength(5);
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
});

test('a probe in progress does not delay a stop, and is not recorded as a failure', async () => {
  const { upstream, yaml } = await startSite({ usd_per_day: 10 }, 1, [{ until: new Promise(() => {}) }]);
  const gateway = await startGateway({ yaml });
  try {
    await upstream.exchange(0);
    await gateway.gateway.stop();
    const again = await startGateway({
      yaml: yaml.replace('usd_per_day', 'every_minutes":1440,"usd_per_day'),
      data_dir: gateway.data_dir,
    });
    try {
      const response = await again.call('GET', '/models/acme/m0/endpoints');
      const { data } = (await response.json()) as { data: { endpoints: PublicEndpoint[] } };
      expect(data.endpoints[0]).toMatchObject({ status: '0' });
      expect(upstream.exchanges).toHaveLength(1);
    } finally {
      await again.stop();
    }
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
});

describeStores('probes of two nodes', ({ freshUrl }) => {
  test.each([
    ['if it pays for all', 100, 12],
    ['if it does not', 5.9 * PROBE_USD, undefined],
  ])(
    'are one for each endpoint, from one budget, %s',
    async (_title, budget, expected) => {
      const url = await freshUrl();
      const { upstream, yaml } = await startSite({ usd_per_day: budget }, 12);
      const environment = url === undefined ? {} : { DATABASE_URL: url };
      const one = await startGateway({ yaml, environment });
      const shared = url === undefined ? { data_dir: one.data_dir } : {};
      const other = await startGateway({ yaml, environment, ...shared });
      try {
        const count = await settled(() => upstream.exchanges.length, expected ?? 1);
        expect(count).toBeGreaterThan(0);
        if (expected !== undefined) expect(count).toBe(expected);
        const models = upstream.exchanges.map(({ body }) => (JSON.parse(body) as { model: string }).model);
        expect(new Set(models).size).toBe(count);
        const spent = await spentOn(one, count);
        expect(spent).toBeLessThanOrEqual(budget);
        expect(await probeKey(other)).toMatchObject({ usage: spent });
      } finally {
        await other.stop();
        await one.gateway.stop();
      }
      const database = await openDatabase(url === undefined ? { data_dir: one.data_dir } : { database_url: url });
      try {
        expect(await verifyLedger(database.queries)).toMatchObject({ differences: [] });
      } finally {
        await database.close();
        await one.stop();
        await upstream.stop();
      }
    },
    60_000,
  );
});
