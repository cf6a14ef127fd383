import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { type ConsoleClient, consoleClient } from '../../../test/http/console-client.ts';
import type { RouteExplanation } from '../../schemas/route-explanation.ts';

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
const messages = [{ role: 'user', content: 'hello' }];

test('the route of a key’s request uses its limits and guardrails, for an administrator and for its owner', async () => {
  const member = await consoleClient(gateway, { email: 'route@example.com', role: 'member' });
  const own = (await member.call('POST', '/keys', { name: 'own', limit: 3 })).body['data'] as unknown as {
    hash: string;
  };
  const guardrail = await manage('POST', '/guardrails', { name: 'no echo', ignored_models: ['sandbox/echo'] });
  for (const client of [admin, member]) {
    const { status, body } = await client.call('POST', `/keys/${own.hash}/route/explain`, {
      model: 'sandbox/echo',
      messages,
    });
    expect(status).toBe(200);
    const { endpoints, hold, error } = body['data'] as unknown as RouteExplanation;
    expect(endpoints.planned[0]?.model).toBe('sandbox/echo');
    expect(hold?.budgets.map(({ scope }) => scope)).toEqual(['key']);
    expect(error).toBeNull();
  }
  await manage('POST', `/guardrails/${guardrail.data.id}/assignments/keys`, { key_hashes: [own.hash] });
  const { body } = await member.call('POST', `/keys/${own.hash}/route/explain`, { model: 'sandbox/echo', messages });
  const { endpoints, error } = body['data'] as unknown as RouteExplanation;
  expect(endpoints.planned).toEqual([]);
  expect(endpoints.excluded[0]).toMatchObject({ step: 'Filter by Guardrails' });
  expect(error?.code).toBe(403);
  const usage = await admin.call('GET', `/keys/${own.hash}`);
  expect(usage.body['data']).toMatchObject({ usage: 0, last_used_at: null });
});

test('the route of a key’s request is a 404 for an unknown key and for the key of another member', async () => {
  const member = await consoleClient(gateway, { email: 'stranger@example.com', role: 'member' });
  for (const hash of [gateway.key_hash, 'nothing']) {
    const answer = await member.call('POST', `/keys/${hash}/route/explain`, { model: 'sandbox/echo', messages });
    expect([hash, answer.status]).toEqual([hash, 404]);
  }
  const refused = await gateway.call('POST', `/keys/${gateway.key_hash}/route/explain`, {
    model: 'sandbox/echo',
    messages,
  });
  expect(refused.status).toBe(403);
});
