import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parameters } from '../../src/schemas/endpoint.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { type WatchedServer, watchServer } from './watched-server.ts';

/** Longer than a busy machine needs. */
const WAIT = { timeout: 60_000 };

let gateway: TestGateway;
let watched: WatchedServer;
beforeAll(async () => {
  const description = 'x'.repeat(20_000);
  const endpoints = [
    {
      provider: 'acme',
      upstream_model: 'm',
      supported_parameters: [...parameters],
      pricing: { prompt: 1, completion: 1 },
    },
  ];
  const models = Object.fromEntries(
    Array.from({ length: 200 }, (_, index) => [`acme/m-${index}`, { description, endpoints }]),
  );
  const providers = { acme: { dialect: 'openai-chat', base_url: 'http://127.0.0.1:1', api_key: 'k' } };
  gateway = await startGateway({
    yaml: JSON.stringify({ bundled_catalog: false, providers, models, limits: { memory_bytes: 32 * 1024 * 1024 } }),
  });
  watched = watchServer(gateway);
});
afterAll(async () => {
  watched.stop();
  await gateway.stop();
});

test('lists of models with a different filter for each client use only a share of the memory, and others are served', async () => {
  const whole = (await (await fetch(`${gateway.base_url}/models`)).arrayBuffer()).byteLength;
  expect(whole).toBeGreaterThan(3_500_000);
  const tried = parameters.slice(0, 20);
  const clients = await Promise.all(
    tried.map(async (name) => {
      const one = await watched.open();
      const request = `GET /api/v1/models?supported_parameters=${name} HTTP/1.1\r\nhost: x\r\n\r\n`;
      // The system's buffers take the first of them.
      one.client.write(request.repeat(6));
      return one;
    }),
  );
  const held = () => Number(/gateway_request_memory_bytes (\d+)/.exec(metrics)?.[1]);
  let metrics = '';
  await vi.waitFor(async () => {
    metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(held()).toBeGreaterThan(whole);
  }, WAIT);
  expect(held()).toBeLessThanOrEqual(0.75 * 32 * 1024 * 1024);
  const small = await gateway.call('POST', '/messages/count_tokens', {
    model: 'acme/m-1',
    messages: [{ role: 'user', content: 'x' }],
  });
  expect(small.status).toBe(200);
  expect((await fetch(`${gateway.base_url}/models`)).status).toBe(200);
  for (const { client } of clients) client.destroy();
  await vi.waitFor(async () => {
    metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(held()).toBe(0);
  }, WAIT);
});
