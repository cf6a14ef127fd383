import { afterEach, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { openDatabase } from '../../storage/database.ts';
import type { ListEndpointHealthDependencies } from './list-endpoint-health.ts';

type Row = Awaited<ReturnType<ListEndpointHealthDependencies['days']>>[number];

let gateway: TestGateway;
afterEach(() => gateway.stop());

test('the health of endpoints is listed by day, with an uptime from ten calls on; 404, 401', async () => {
  gateway = await startGateway();
  const operation: string = '/models/sandbox/echo/endpoints/health';
  const first = (await (await gateway.call('GET', operation)).json()) as { data: { tag: string; days: object[] }[] };
  expect(first.data.map(({ tag }) => tag)).toContain('sandbox');
  const database = await openDatabase({ data_dir: gateway.data_dir });
  const today = Math.floor(Date.now() / 86_400_000);
  const counts = { endpoint_id: 'sandbox|sandbox/echo', rate_limited: 1 };
  await database.queries
    .insertInto('endpoint_days')
    .values([
      { ...counts, day: today - 1, successes: 9, errors: 1 },
      { ...counts, day: today - 2, successes: 5, errors: 0 },
      { ...counts, day: today - 40, successes: 5, errors: 0 },
    ] satisfies Row[])
    .execute();
  await database.close();
  const { data } = (await (await gateway.call('GET', operation)).json()) as typeof first;
  expect(data.find(({ tag }) => tag === 'sandbox')?.days).toMatchObject([
    { calls: 5, uptime: null },
    { calls: 10, errors: 1, rate_limited: 1, uptime: 90 },
  ]);
  expect((await gateway.call('GET', '/models/no/such/endpoints/health')).status).toBe(404);
  expect((await fetch(`${gateway.base_url}${operation}`)).status).toBe(401);
});
