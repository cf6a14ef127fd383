import { afterEach, expect, test, vi } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { consoleClient } from '../../../test/http/console-client.ts';

const PRICES = '/models/sandbox/echo/endpoints/prices';

let gateway: TestGateway;
afterEach(() => gateway.stop());

test('the first start records prices; 400, 404, 401; members get the same list', async () => {
  gateway = await startGateway();
  const list = async () => (await (await gateway.call('GET', PRICES)).json()) as { data: object[] };
  await vi.waitFor(async () => expect((await list()).data).not.toEqual([]), { timeout: 100_000 });
  const { data } = await list();
  expect(data[0]).toMatchObject({ until: null, changed: null, price_tiers: [], service_tiers: {} });
  const nul = Buffer.from('1 1 a\0').toString('base64url');
  for (const query of ['?limit=0', '?limit=101', '?cursor=x', `?cursor=${nul}`, `?cursor=${'x'.repeat(1_001)}`])
    expect([query, (await gateway.call('GET', `${PRICES}${query}`)).status]).toEqual([query, 400]);
  expect((await gateway.call('GET', '/models/no/such/endpoints/prices')).status).toBe(404);
  expect((await fetch(`${gateway.base_url}${PRICES}`)).status).toBe(401);
  const member = await consoleClient(gateway, { email: 'member@example.com', role: 'member' });
  expect((await member.call('GET', PRICES)).body).toEqual({ data, next_cursor: null });
});
