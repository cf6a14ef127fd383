import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { type ConsoleClient, consoleClient } from '../../../test/http/console-client.ts';
import type { SpendingLimit } from '../../schemas/key-policy.ts';

let gateway: TestGateway;
let admin: ConsoleClient;
beforeAll(async () => {
  gateway = await startGateway();
  admin = await consoleClient(gateway);
});
afterAll(() => gateway.stop());

const manage = async (method: string, path: string, body?: object) => {
  const answer = await admin.call(method, path, body);
  expect([path, answer.status]).toEqual([path, method === 'POST' ? expect.any(Number) : 200]);
  return answer.body as unknown as { data: { id: string; hash: string }; key: string };
};
test('all limits are listed with names and amounts, by filter and in pages', async () => {
  const { data } = await manage('POST', '/keys', { name: 'listed', limit: 2, limit_reset: 'weekly' });
  const two = await manage('POST', '/keys', { name: 'two' });
  const guardrail = await manage('POST', '/guardrails', { name: 'team', limit_usd: 9, reset_interval: 'monthly' });
  await manage('POST', `/guardrails/${guardrail.data.id}/assignments/keys`, { key_hashes: [two.data.hash] });
  await manage('PUT', '/workspaces/default/budgets/monthly', { limit_usd: 70 });
  const list = async (query: string) => {
    const { status, body } = await admin.call('GET', `/budgets?${query}`);
    expect(status).toBe(200);
    return body as unknown as { data: SpendingLimit[]; total_count: number };
  };
  const all = await list('limit=100');
  expect(all.total_count).toBe(all.data.length);
  expect(new Set(all.data.map(({ scope }) => scope))).toEqual(new Set(['guardrail', 'key', 'workspace']));
  for (const { limit, spent, held, left } of all.data) expect(spent + held + left).toBeCloseTo(limit, 9);
  expect((await list('limit=1&offset=1')).data).toEqual([all.data[1]]);
  expect((await list('scope=workspace')).data).toMatchObject([
    { assignee: { type: 'workspace', name: expect.any(String) }, limit: 70, reset_interval: 'monthly' },
  ]);
  const ofKey = await list(`api_key_hash=${data.hash}`);
  expect(ofKey.data).toMatchObject([{ scope: 'key', assignee: { type: 'key', id: data.hash, name: 'listed' } }]);
  expect((await list('api_key_hash=nothing')).total_count).toBe(0);
  const [ofGuardrail] = (await list('scope=guardrail')).data;
  expect(ofGuardrail).toMatchObject({ guardrail_name: 'team', assignee: { type: 'key', name: 'two' } });
});
