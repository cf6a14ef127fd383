import { Value } from 'typebox/value';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { type ConsoleClient, consoleClient } from '../../../test/http/console-client.ts';
import { KeyPolicy } from '../../schemas/key-policy.ts';

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
const policyOf = async (hash: string, client = admin) => {
  const { body } = await client.call('GET', `/keys/${hash}/policy`);
  const data = body['data'] as unknown as KeyPolicy;
  expect([...Value.Errors(KeyPolicy, data)]).toEqual([]);
  return data;
};
const spend = async (key: string) => {
  const body = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'hello' }], max_tokens: 20 };
  const answer = await gateway.call('POST', '/chat/completions', body, { authorization: `Bearer ${key}` });
  return { status: answer.status, body: (await answer.json()) as { error?: { message: string } } };
};

describe('the policy of a key', () => {
  test('lists each limit with spent, held and left amounts, and refuses nothing while all have money', async () => {
    const { data, key } = await manage('POST', '/keys', { name: 'one', limit: 5, limit_reset: 'daily' });
    expect((await spend(key)).status).toBe(200);
    const { limits, refusal, guardrails, effective } = await policyOf(data.hash);
    const [limit] = limits;
    expect(limits).toMatchObject([{ scope: 'key', limit: 5, held: 0, reset_interval: 'daily', refuses: false }]);
    expect(limit?.spent).toBeGreaterThan(0);
    expect((limit?.spent ?? 0) + (limit?.left ?? 0)).toBeCloseTo(5, 9);
    expect(Date.parse(limit?.resets_at ?? '')).toBeGreaterThan(Date.now());
    expect({ refusal, guardrails }).toEqual({ refusal: null, guardrails: [] });
    expect(effective).toMatchObject({ allowed_models: null, ignored_models: [], filters: [] });
  });

  test('names the refusing limit with the message of a refused call, and the limit that still has money', async () => {
    const { data, key } = await manage('POST', '/keys', { name: 'two', limit: 0 });
    const guardrail = await manage('POST', '/guardrails', { name: 'team', limit_usd: 9, reset_interval: 'monthly' });
    await manage('POST', `/guardrails/${guardrail.data.id}/assignments/keys`, { key_hashes: [data.hash] });
    const { limits, refusal, guardrails } = await policyOf(data.hash);
    expect(limits).toMatchObject([
      { scope: 'guardrail', guardrail_id: guardrail.data.id, limit: 9, refuses: false },
      { scope: 'key', guardrail_id: null, limit: 0, left: 0, refuses: true, resets_at: null },
    ]);
    expect(guardrails).toEqual([{ id: guardrail.data.id, name: 'team', scopes: ['api-key'] }]);
    expect(refusal).toMatchObject({ code: 402, resets_at: null });
    const refused = await spend(key);
    expect(refused.status).toBe(402);
    const beginning = 'Insufficient budget: the limit of this API key ($0.00 in all): $0.00 of it is left';
    expect(refusal?.message.startsWith(beginning)).toBe(true);
    expect(refused.body.error?.message.startsWith(beginning)).toBe(true);
  });

  test('refuses a disabled key before any limit', async () => {
    const { data } = await manage('POST', '/keys', { name: 'three', limit: 0 });
    await manage('PATCH', `/keys/${data.hash}`, { disabled: true });
    expect((await policyOf(data.hash)).refusal).toEqual({
      code: 401,
      message: 'This API key is disabled',
      resets_at: null,
    });
  });

  test('combines guardrails as calls do: allowed lists are intersected, the rest are united', async () => {
    const { data } = await manage('POST', '/keys', { name: 'four' });
    const make = (body: object) => manage('POST', '/guardrails', body);
    const ofKey = await make({
      name: 'of the key',
      allowed_models: ['sandbox/echo', 'sandbox/story'],
      ignored_providers: ['sandbox'],
      enforce_zdr_vendor_a: true,
      content_filters: [{ pattern: 'codename-\\d+', action: 'block', label: 'CODENAME' }],
    });
    const ofMember = await make({
      name: 'of the member',
      allowed_models: ['sandbox/echo'],
      ignored_models: ['sandbox/think'],
      content_filter_builtins: [{ slug: 'email', action: 'redact' }],
      content_filter_reversible: true,
    });
    await manage('POST', `/guardrails/${ofKey.data.id}/assignments/keys`, { key_hashes: [data.hash] });
    await manage('POST', `/guardrails/${ofMember.data.id}/assignments/members`, { member_user_ids: [admin.user_id] });
    try {
      const { effective, guardrails } = await policyOf(data.hash);
      expect(guardrails.map(({ name, scopes }) => ({ name, scopes }))).toEqual(
        expect.arrayContaining([
          { name: 'of the key', scopes: ['api-key'] },
          { name: 'of the member', scopes: ['member'] },
        ]),
      );
      expect(effective.allowed_models).toHaveLength(1);
      expect(effective.ignored_models).toHaveLength(1);
      expect(effective).toMatchObject({ ignored_providers: ['sandbox'], zdr: { anthropic: true, openai: false } });
      expect(effective.filters).toMatchObject([
        { filter: 'email', action: 'redact', is_reversible: true, filters_answers: false },
        { filter: 'custom', action: 'block', label: 'CODENAME', is_reversible: false },
      ]);
      expect(JSON.stringify(effective)).not.toContain('codename');
    } finally {
      await manage('DELETE', `/guardrails/${ofMember.data.id}`);
    }
  });

  test('a member reads the policy of its own keys alone, without the amounts of the workspace', async () => {
    const member = await consoleClient(gateway, { email: 'policy@example.com', role: 'member' });
    const { data } = await manage('POST', '/keys', { name: 'another’s' });
    expect((await member.call('GET', `/keys/${data.hash}/policy`)).status).toBe(404);
    const own = (await member.call('POST', '/keys', { name: 'own', limit: 3 })).body['data'] as unknown as {
      hash: string;
      workspace_id: string;
    };
    await manage('PUT', `/workspaces/${own.workspace_id}/budgets/monthly`, { limit_usd: 70 });
    const { limits } = await policyOf(own.hash, member);
    expect(limits).toMatchObject([
      { scope: 'key', limit: 3, left: 3 },
      { scope: 'workspace', limit: null, spent: null, held: null, left: null, refuses: false },
    ]);
    expect((await policyOf(own.hash)).limits[1]).toMatchObject({ scope: 'workspace', limit: 70 });
  });

  test('a limit that a guardrail sets for all of a workspace is one of the workspace: its amounts are hidden where those are', async () => {
    const member = await consoleClient(gateway, { email: 'shared@example.com', role: 'member' });
    const made = await member.call('POST', '/keys', { name: 'own' });
    const { hash, workspace_id: workspaceId } = made.body['data'] as unknown as { hash: string; workspace_id: string };
    const limited = { name: 'of all', workspace_id: workspaceId, limit_usd: 50, reset_interval: 'daily' };
    const guardrail = await manage('POST', '/guardrails', limited);
    await manage('PATCH', `/workspaces/${workspaceId}`, { default_guardrail_id: guardrail.data.id });
    try {
      const ofGuardrail = (policy: KeyPolicy) => policy.limits.find(({ scope }) => scope === 'guardrail');
      expect(ofGuardrail(await policyOf(hash))).toMatchObject({ limit: 50 });
      const hidden = { limit: null, spent: null, held: null, left: null, refuses: false };
      expect(ofGuardrail(await policyOf(hash, member))).toMatchObject(hidden);
      const authorization = `Bearer ${String(made.body['key'])}`;
      const current = await gateway.call('GET', '/key', undefined, { authorization });
      expect(JSON.stringify(await current.json())).not.toContain(guardrail.data.id);
      const body = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'hello' }], max_tokens: 10 };
      const explained = await gateway.call('POST', '/route/explain', body, { authorization });
      const { data } = (await explained.json()) as { data: { hold: { budgets: object[] } | null } };
      expect(data.hold?.budgets).toContainEqual(
        expect.objectContaining({ scope: 'guardrail', limit: null, spent: null, available: null }),
      );
    } finally {
      await manage('PATCH', `/workspaces/${workspaceId}`, { default_guardrail_id: null });
      await manage('DELETE', `/guardrails/${guardrail.data.id}`);
    }
  });
});
