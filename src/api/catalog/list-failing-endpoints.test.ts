import { afterEach, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { consoleClient } from '../../../test/http/console-client.ts';

interface Answer {
  data: Record<string, unknown>[];
  total_count: number;
}

let gateway: TestGateway;
afterEach(() => gateway.stop());

const list = async (query = ''): Promise<Answer> =>
  (await (await gateway.call('GET', `/endpoints/failing${query}`)).json()) as Answer;
const ask = async (model: string, times = 1) => {
  for (let n = 0; n < times; n += 1)
    await (
      await gateway.call('POST', '/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }] })
    ).text();
};

test('a failing endpoint is listed with cool-down and counts, an answering one is not, and pages are bounded', async () => {
  gateway = await startGateway();
  expect(await list()).toEqual({ data: [], total_count: 0 });
  await ask('sandbox/echo');
  await ask('sandbox/fail-503', 2);
  // The model has two endpoints, and both fail.
  const { data, total_count } = await list();
  expect(total_count).toBe(2);
  expect(data).toContainEqual({
    model_id: 'sandbox/fail-503',
    model_name: expect.any(String),
    provider_name: 'Sandbox',
    tag: 'sandbox',
    endpoint_id: expect.stringContaining('sandbox'),
    condition: 'failing',
    last_failure: 'unavailable',
    failing_since: expect.stringMatching(/Z$/),
    last_failure_at: expect.stringMatching(/Z$/),
    cooling_down_until: expect.stringMatching(/Z$/),
    last_30m: { calls: 2, errors: 2, rate_limited: 0 },
    last_1d: { calls: 2, errors: 2, rate_limited: 0 },
  });
  const [one] = data;
  expect(String(one?.['failing_since']) <= String(one?.['last_failure_at'])).toBe(true);
  expect(await list('?model=sandbox/echo')).toEqual({ data: [], total_count: 0 });
  expect((await list('?model=sandbox/fail-503')).total_count).toBe(2);
  expect(await list('?offset=2')).toEqual({ data: [], total_count: 2 });
});

test('400 for bad input, 404 for an unknown model, 401 without a credential; a member gets the same list', async () => {
  gateway = await startGateway();
  await ask('sandbox/fail-503');
  for (const query of ['?limit=0', '?limit=101', '?offset=-1', `?model=${'x'.repeat(257)}`])
    expect([query, (await gateway.call('GET', `/endpoints/failing${query}`)).status]).toEqual([query, 400]);
  expect((await gateway.call('GET', '/endpoints/failing?model=no/such')).status).toBe(404);
  expect((await fetch(`${gateway.base_url}/endpoints/failing`)).status).toBe(401);
  const member = await consoleClient(gateway, { email: 'member@example.com', role: 'member' });
  expect((await member.call('GET', '/endpoints/failing')).body).toMatchObject({ total_count: 2 });
});
