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

test('an answer, a stream and an error are readable by a page, with the gateway’s headers', async () => {
  const send = (stream: boolean, model: string) =>
    gateway.call(
      'POST',
      '/chat/completions',
      { model, stream, messages: [{ role: 'user', content: 'Hi' }] },
      { origin },
    );
  for (const response of [
    await send(false, 'sandbox/echo'),
    await send(true, 'sandbox/echo'),
    await send(false, 'no/model'),
  ]) {
    await response.text();
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('access-control-expose-headers')).toContain('x-generation-id');
  }
});

test("pages can read the header from which Anthropic's SDK reads the request id", async () => {
  const response = await gateway.call(
    'POST',
    '/messages',
    { model: 'sandbox/echo', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] },
    { origin },
  );
  await response.text();
  expect(response.headers.get('request-id')).toBeTruthy();
  const exposed = response.headers.get('access-control-expose-headers')?.split(', ');
  expect(exposed).toEqual(expect.arrayContaining(['request-id', 'x-should-retry']));
});

test('pages can read the etag of a record for If-Match', async () => {
  const headers = { origin, authorization: `Bearer ${gateway.management_key}` };
  const response = await gateway.call('GET', '/workspaces/default', undefined, headers);
  expect(response.headers.get('etag')).toBeTruthy();
  expect(response.headers.get('access-control-expose-headers')?.split(', ')).toContain('etag');
});

test('clients other than browsers get no CORS header', async () => {
  const response = await gateway.call('GET', '/providers');
  await response.text();
  expect(response.status).toBe(200);
  expect(response.headers.get('access-control-allow-origin')).toBeNull();
});

test('cacheable answers are readable by pages, whichever client requested them first', async () => {
  for (const path of ['/models', '/models/count', '/models?use_rss=true', '/endpoints/zdr', '/embeddings/models']) {
    const response = await fetch(`${gateway.base_url}${path}`);
    await response.text();
    expect(response.headers.get('cache-control'), path).toMatch(/^public/);
    expect(response.headers.get('access-control-allow-origin'), path).toBe('*');
  }
});

test('OPTIONS without a preflight is an unsupported method', async () => {
  const response = await fetch(`${gateway.base_url}/chat/completions`, { method: 'OPTIONS' });
  expect(response.status).toBe(405);
});

test('shared caches must not keep an answer that depends on a credential, in any header', async () => {
  for (const path of [
    '/credits',
    '/keys',
    '/providers',
    '/model/sandbox/echo',
    '/models/user',
    '/models/sandbox/echo/endpoints',
  ]) {
    for (const headers of [
      { authorization: `Bearer ${gateway.management_key}` },
      { 'x-api-key': gateway.management_key },
    ] as Record<string, string>[]) {
      const response = await fetch(`${gateway.base_url}${path}`, { headers });
      await response.text();
      expect(response.status, path).toBe(200);
      expect(response.headers.get('cache-control'), path).toMatch(/^private, no-/);
    }
  }
  const refused = await fetch(`${gateway.base_url}/credits`);
  expect(refused.headers.get('cache-control')).toBe('private, no-store');
});

test('a 304 to HEAD states the length of the answer to GET, not zero', async () => {
  const url = `${gateway.base_url}/models`;
  const whole = await fetch(url);
  const length = Buffer.byteLength(await whole.text());
  const headers = { 'if-none-match': whole.headers.get('etag') ?? '' };
  const head = await fetch(url, { method: 'HEAD', headers });
  expect([head.status, head.headers.get('content-length')]).toEqual([304, String(length)]);
  const get = await fetch(url, { headers });
  expect([get.status, await get.text()]).toEqual([304, '']);
});
