import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

test.each(['live', 'ready'])('200: /health/%s needs no credential', async (name) => {
  const response = await fetch(`${gateway.url}/health/${name}`);
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ status: 'ok' });
});

test('503: a draining gateway is alive but not ready, refuses new requests, and finishes running ones', async () => {
  const draining = await startGateway();
  const running = draining.call('POST', '/chat/completions', {
    model: 'sandbox/story',
    stream: true,
    messages: [{ role: 'user', content: 'Hello' }],
    sandbox: { tokens: 60, chunk_delay_ms: 10 },
  });
  const response = await running;
  const reader = response.body?.getReader();
  await reader?.read();
  const stopped = draining.stop();
  let text = '';
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read())
    text += Buffer.from(read.value).toString();
  expect(text).toMatch(/data: \[DONE\]\n\n$/);
  await stopped;
  await expect(fetch(`${draining.url}/health/ready`)).rejects.toThrow();
});
