/** Endpoint health in a running gateway: from real traffic, over restarts, and from node to node. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { PublicEndpoint } from '../../src/schemas/endpoint.ts';
import { withLimits } from '../changed-limits.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { responseHead, startWireServer } from '../wires/wire-server.ts';

withLimits({ statistics_exchange_ms: 200, performance_fresh_ms: 200 });

/** The endpoint that is listed first; another one serves the same models. */
const FIRST = { order: ['sandbox'] };

async function ask(gateway: TestGateway, model: string, body: object = {}): Promise<number> {
  const messages = [{ role: 'user', content: 'tell me' }];
  const response = await gateway.call('POST', '/chat/completions', { model, messages, provider: FIRST, ...body });
  await response.text();
  return response.status;
}

async function listed(gateway: TestGateway, model: string, headers?: Record<string, string>): Promise<PublicEndpoint> {
  const response = await gateway.call('GET', `/models/${model}/endpoints`, undefined, headers);
  expect(response.status).toBe(200);
  const { data } = (await response.json()) as { data: { endpoints: PublicEndpoint[] } };
  const [endpoint] = data.endpoints;
  if (endpoint === undefined) throw new Error(`${model} has no endpoint`);
  return endpoint;
}

async function times(count: number, work: () => Promise<unknown>): Promise<void> {
  for (let n = 0; n < count; n += 1) await work();
}

async function eventually<T>(read: () => Promise<T>, wanted: (value: T) => boolean): Promise<T> {
  for (let tries = 0; tries < 300; tries += 1) {
    const value = await read();
    if (wanted(value)) return value;
    await sleep(50);
  }
  throw new Error('the expected health did not arrive');
}

const NOBODY = { authorization: '' };

describeStores('the health in lists of endpoints', ({ freshUrl }) => {
  test('follows from traffic, survives a restart, and is known to other nodes', async () => {
    const url = await freshUrl();
    const environment = url === undefined ? {} : { DATABASE_URL: url };
    const first = await startGateway({ environment });
    try {
      expect(await listed(first, 'sandbox/story')).toMatchObject({
        status: '0',
        latency_last_30m: null,
        throughput_last_30m: null,
        uptime_last_5m: null,
      });
      await times(12, () => ask(first, 'sandbox/story', { stream: true, sandbox: { tokens: 30, chunk_delay_ms: 1 } }));
      await times(12, () => ask(first, 'sandbox/fail-503'));
      const story = await listed(first, 'sandbox/story');
      expect(story).toMatchObject({ status: '0', uptime_last_5m: 100, uptime_last_30m: 100, uptime_last_1d: 100 });
      expect(story.latency_last_30m?.p50).toBeGreaterThan(0);
      expect(story.latency_last_30m?.p99).toBeGreaterThanOrEqual(story.latency_last_30m?.p50 ?? 0);
      expect(story.throughput_last_30m?.p50).toBeGreaterThan(0);
      const failing = { status: '-5', uptime_last_5m: 0, uptime_last_1d: 0, latency_last_30m: null };
      expect(await listed(first, 'sandbox/fail-503')).toMatchObject(failing);

      await first.gateway.stop();
      const again = await startGateway({ environment, data_dir: first.data_dir });
      try {
        const known = (of: PublicEndpoint) => of.uptime_last_5m !== null;
        expect(await eventually(() => listed(again, 'sandbox/story'), known)).toEqual(story);
        expect(await listed(again, 'sandbox/fail-503')).toMatchObject(failing);
        const shared = url === undefined ? { data_dir: first.data_dir } : {};
        const second = await startGateway({ environment, ...shared });
        try {
          expect(await eventually(() => listed(second, 'sandbox/story'), known)).toEqual(story);
          await times(12, () => ask(again, 'sandbox/echo'));
          const echo = await eventually(() => listed(second, 'sandbox/echo'), known);
          expect(echo.uptime_last_1d).toBe(100);
        } finally {
          await second.stop();
        }
      } finally {
        await again.stop();
      }
    } finally {
      await first.stop();
    }
  });
});

test('the speed of endpoints is shown to callers with a credential, and not cached for others', async () => {
  const gateway = await startGateway();
  try {
    await times(10, () => ask(gateway, 'sandbox/story', { stream: true, sandbox: { tokens: 30, chunk_delay_ms: 1 } }));
    expect((await listed(gateway, 'sandbox/story')).latency_last_30m).not.toBeNull();
    for (const headers of [NOBODY, { authorization: 'Bearer sk-gw-v1-wrong' }]) {
      const shown = await listed(gateway, 'sandbox/story', headers);
      expect(shown).toMatchObject({ latency_last_30m: null, throughput_last_30m: null, uptime_last_30m: 100 });
    }
    const path = '/models/sandbox/story/endpoints';
    const known = await gateway.call('GET', path);
    expect(known.headers.get('cache-control')).toContain('private');
    const unknown = await gateway.call('GET', path, undefined, NOBODY);
    expect(unknown.headers.get('cache-control')).toContain('public');
    for (const { headers } of [known, unknown]) expect(headers.get('vary')).toMatch(/authorization/i);
  } finally {
    await gateway.stop();
  }
});

test('rate limits, refusals and disconnected clients are neither successes nor errors', async () => {
  const gateway = await startGateway();
  try {
    expect(await ask(gateway, 'sandbox/fail-429')).toBe(429);
    await times(11, () => ask(gateway, 'sandbox/fail-429'));
    expect(await listed(gateway, 'sandbox/fail-429')).toMatchObject({ status: '-1', uptime_last_1d: null });
    await times(12, () => ask(gateway, 'sandbox/echo', { sandbox: { status: 400 } }));
    expect(await listed(gateway, 'sandbox/echo')).toMatchObject({ status: '0', uptime_last_1d: null });
    await times(12, async () => {
      const leaving = new AbortController();
      const messages = [{ role: 'user', content: 'tell me' }];
      const body = {
        model: 'sandbox/story',
        messages,
        provider: FIRST,
        stream: true,
        sandbox: { tokens: 500, chunk_delay_ms: 5 },
      };
      const response = await fetch(`${gateway.base_url}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: leaving.signal,
      });
      await response.body?.getReader().read();
      leaving.abort();
    });
    const story = await eventually(
      () => listed(gateway, 'sandbox/story'),
      (of) => of.latency_last_30m !== null,
    );
    expect(story).toMatchObject({ status: '0', uptime_last_1d: null, throughput_last_30m: null });
  } finally {
    await gateway.stop();
  }
});

describe('through one gateway, with a different model in each test', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.stop());

  test.each(['sandbox/fail-mid-stream', 'sandbox/fail-late', 'sandbox/fail-500-html'])(
    'an answer that breaks off is an error: %s',
    async (model) => {
      await times(10, () => ask(gateway, model, { stream: true }));
      const shown = await listed(gateway, model);
      expect(shown).toMatchObject({ status: '-5', uptime_last_5m: 0, throughput_last_30m: null });
    },
  );

  test('routing learns the quality of tool calls', async () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' } } };
    const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
    await times(5, () => ask(gateway, 'sandbox/tools', { tools, stream: true }));
    await times(5, () => ask(gateway, 'sandbox/tools', { tools }));
    await vi.waitFor(
      async () => {
        const response = await gateway.call('POST', '/route/explain', {
          model: 'sandbox/tools',
          messages: [{ role: 'user', content: 'x' }],
        });
        expect(await response.text()).toContain('"tool_success":1');
      },
      { timeout: 60_000, interval: 200 },
    );
  });
});

test('an answer whose end reports a failure is an error despite its text', async () => {
  const event = (choice: object) => `data: ${JSON.stringify({ id: 'u', choices: [{ index: 0, ...choice }] })}\n\n`;
  const upstream = await startWireServer(() => [
    responseHead(200, 'text/event-stream'),
    event({ delta: { content: 'Well' } }) +
      event({ delta: {}, finish_reason: 'function_call_filter' }) +
      'data: [DONE]\n\n',
    'END',
  ]);
  const pricing = { prompt: 1, completion: 1 };
  const yaml = JSON.stringify({
    providers: { acme: { dialect: 'openai-chat', base_url: upstream.url } },
    models: { 'acme/one': { endpoints: [{ provider: 'acme', upstream_model: 'one', pricing }] } },
  });
  const gateway = await startGateway({ yaml });
  try {
    await times(10, () => ask(gateway, 'acme/one', { stream: true, provider: {} }));
    expect(await listed(gateway, 'acme/one')).toMatchObject({ uptime_last_5m: 0, status: '-5' });
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
});
