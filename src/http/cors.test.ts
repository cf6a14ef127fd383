import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../test/harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const origin = 'https://app.example';

test('a preflight is answered without a credential, for any path', async () => {
  const response = await fetch(`${gateway.base_url}/chat/completions`, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization, x-title',
    },
  });
  expect(response.status).toBe(204);
  expect(response.headers.get('access-control-allow-origin')).toBe('*');
  expect(response.headers.get('access-control-allow-methods')).toContain('POST');
  expect(response.headers.get('access-control-allow-headers')).toBe('authorization, x-title');
});

test('an answer, a stream and an error can be read by a page, with our headers', async () => {
  const ask = (stream: boolean, model: string) =>
    gateway.call(
      'POST',
      '/chat/completions',
      { model, stream, messages: [{ role: 'user', content: 'Hi' }] },
      { origin },
    );
  for (const response of [
    await ask(false, 'sandbox/echo'),
    await ask(true, 'sandbox/echo'),
    await ask(false, 'no/model'),
  ]) {
    await response.text();
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('access-control-expose-headers')).toContain('x-generation-id');
  }
});

test('who is no browser gets no such header', async () => {
  const response = await fetch(`${gateway.base_url}/models`);
  await response.text();
  expect(response.headers.get('access-control-allow-origin')).toBeNull();
});

test('OPTIONS that is no preflight is an unsupported method', async () => {
  const response = await fetch(`${gateway.base_url}/chat/completions`, { method: 'OPTIONS' });
  expect(response.status).toBe(405);
});
