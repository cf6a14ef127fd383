import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';

const TOKEN = 'token-of-the-scraper-0123456789abcdef';
const origin = 'https://app.example';

let gateway: TestGateway | undefined;
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
});

const read = (url: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${url}/metrics`, { headers, method });

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

test('browser pages cannot read the metrics, nor other paths outside the API', async () => {
  gateway = await startGateway();
  for (const path of ['/metrics', '/health/live', '/', '/docs', '/sign-in', '/nothing']) {
    const answer = await fetch(gateway.url + path, { headers: { origin } });
    await answer.text();
    expect(answer.headers.get('access-control-allow-origin'), path).toBeNull();
    const preflight = await fetch(gateway.url + path, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'GET' },
    });
    expect(preflight.status, path).toBe(path === '/nothing' ? 404 : 405);
    expect(preflight.headers.get('access-control-allow-origin'), path).toBeNull();
  }
});

test.each(['the file', 'the environment'])('with a token from %s, metrics require it', async (place) => {
  const inFile = place === 'the file';
  gateway = await startGateway({
    yaml: inFile ? 'metrics: { token: "${SCRAPER}" }' : '{}',
    environment: { [inFile ? 'SCRAPER' : 'GATEWAY_METRICS_TOKEN']: TOKEN },
  });
  const refused: Record<string, string>[] = [
    {},
    { authorization: TOKEN },
    { authorization: `Bearer ${TOKEN.slice(1)}` },
    { authorization: `Bearer ${TOKEN}x` },
    { authorization: `Basic ${TOKEN}` },
    { 'x-api-key': TOKEN },
    { authorization: `Bearer ${gateway.management_key}` },
  ];
  for (const headers of refused) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await read(gateway.url, headers, method);
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      expect(await answer.text()).not.toContain('gateway_requests_total');
    }
  }
  expect(await (await read(gateway.url, { authorization: `Bearer ${TOKEN}` })).text()).toContain(
    'gateway_requests_total',
  );
  expect(gateway.log_lines.join('')).not.toContain(TOKEN);
});

test('a separate address for metrics serves them alone, and no other address serves them', async () => {
  const port = await freePort();
  gateway = await startGateway({ yaml: `metrics: { port: ${port}, token: ${TOKEN} }` });
  const own = `http://127.0.0.1:${port}`;
  const headers = { authorization: `Bearer ${TOKEN}` };
  expect((await read(gateway.url, headers)).status).toBe(404);
  expect((await read(own)).status).toBe(401);
  expect(await (await read(own, headers)).text()).toContain('gateway_requests_total');
  for (const path of ['/api/v1/models', '/health/ready', '/sign-in', '/docs', '/']) {
    expect((await fetch(own + path, { headers: { authorization: `Bearer ${gateway.management_key}` } })).status).toBe(
      404,
    );
  }
  await gateway.stop();
  await expect(read(own)).rejects.toThrow();
  gateway = undefined;
});
