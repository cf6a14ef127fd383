import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { createServer } from '../../http/create-server.ts';
import { createLog } from '../../telemetry/log.ts';
import { health } from './health.ts';

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

test('503: the answer states the reason, and a probe of a gateway that is not ready is no error in the log', async () => {
  const levels: string[] = [];
  const write = (line: string) => void levels.push((JSON.parse(line) as { level: string }).level);
  const server = createServer({
    authenticate: () => Promise.reject(new Error()),
    logger: createLog('info', { write }),
    body_bytes_max: 1_000,
  });
  health(server, { unready: () => Promise.resolve('the gateway is starting') });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const response = await fetch(`${url}/health/ready`);
  expect(response.status).toBe(503);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(await response.json()).toEqual({
    error: { code: 503, message: 'Not ready: the gateway is starting', metadata: null },
    gateway_metadata: null,
    user_id: null,
  });
  await server.close();
  expect(levels).toEqual(['info']);
});
