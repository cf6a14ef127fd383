/** Fields that clients of the public service read and write beyond the contract. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ environment: { GATEWAY_SANDBOX: 'on' } });
});
afterAll(() => gateway.stop());

interface Body {
  data: { id: string; hash: string; created_at: string; last_used_at: string; [name: string]: unknown };
  key: string;
  [name: string]: unknown;
}

async function ask(
  method: 'GET' | 'POST' | 'PATCH' | 'PUT',
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Body }> {
  const answer = await gateway.call(method, path, body, headers);
  return { status: answer.status, body: (await answer.json()) as Body };
}
const manage = (method: 'GET' | 'POST' | 'PATCH' | 'PUT', path: string, body?: unknown) =>
  ask(method, path, body, { authorization: `Bearer ${gateway.management_key}` });

async function made(path: string, body: unknown): Promise<Body['data']> {
  const answer = await manage('POST', path, body);
  expect([answer.status, answer.body]).toEqual([201, expect.anything()]);
  return answer.body.data;
}

async function makeKey(settings: object = {}): Promise<{ key: string; hash: string }> {
  const { status, body } = await manage('POST', '/keys', { name: 'k', ...settings });
  expect(status).toBe(201);
  return { key: body.key, hash: body.data.hash };
}
const hello = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] };
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe('the routing metadata of a call', () => {
  const calls: [string, string, object][] = [
    ['chat', '/chat/completions', hello],
    ['older completions', '/completions', { model: 'sandbox/echo', prompt: 'Hello' }],
    ['Messages', '/messages', { ...hello, max_tokens: 50 }],
    ['Responses', '/responses', { model: 'sandbox/echo', input: 'Hello' }],
    ['embeddings', '/embeddings', { model: 'sandbox/embed', input: 'Hello' }],
  ];
  test.each(calls)(
    '%s: is under both names for a client that sends X-OpenRouter-Metadata, otherwise under one',
    async (_, path, body) => {
      const both = (await ask('POST', path, body, { 'x-openrouter-metadata': 'Enabled' })).body;
      expect(both['openrouter_metadata']).toMatchObject({ strategy: 'direct', attempt: 1 });
      expect(both['gateway_metadata']).toEqual(both['openrouter_metadata']);
      const one = (await ask('POST', path, body, { 'x-gateway-experimental-metadata': 'enabled' })).body;
      expect(one['gateway_metadata']).toMatchObject({ strategy: 'direct' });
      expect(one).not.toHaveProperty('openrouter_metadata');
      const none = (await ask('POST', path, body, { 'x-openrouter-metadata': 'disabled' })).body;
      expect(JSON.stringify(none)).not.toContain('_metadata":{');
    },
  );

  test.each(calls.slice(0, 4))('%s: is in a stream and in an error as well', async (_, path, body) => {
    const headers = { 'x-openrouter-metadata': 'enabled' };
    const stream = await (await gateway.call('POST', path, { ...body, stream: true }, headers)).text();
    expect(stream.match(/"openrouter_metadata":\{/g)).toHaveLength(1);
    const failed = await ask('POST', path, { ...body, model: 'sandbox/fail-503' }, headers);
    expect(failed.status).toBeGreaterThanOrEqual(500);
    expect(failed.body['openrouter_metadata']).toMatchObject({ requested: 'sandbox/fail-503' });
    expect((await ask('POST', path, { ...body, model: 'sandbox/fail-503' })).body).not.toHaveProperty(
      'openrouter_metadata',
    );
  });
});

describe('keys', () => {
  test('show their owner and their last use, and a secret chosen by the caller is refused', async () => {
    const { key, hash } = await makeKey({ external: { user: 'customer 7' } });
    const readKey = async () => (await manage('GET', `/keys/${hash}`)).body.data;
    expect(await readKey()).toMatchObject({ external_user: 'customer 7', last_used_at: null });
    await ask('POST', '/chat/completions', hello, bearer(key));
    const { created_at, last_used_at } = await readKey();
    expect(Date.parse(last_used_at)).toBeGreaterThanOrEqual(Date.parse(created_at));
    const refused = await manage('POST', '/keys', { name: 'k', external: { user: 'u', api_key: 'x'.repeat(40) } });
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining('api_key')]);
    expect(JSON.stringify(refused.body)).not.toContain('x'.repeat(40));
  });

  test('have as effective budget the one with the least left, at any level; an application sees only its own', async () => {
    const { id: workspaceId } = await made('/workspaces', { name: 'Tight', slug: 'tight' });
    const { key } = await makeKey({ limit: 20, workspace_id: workspaceId });
    const effective = async (secret: string) =>
      (await ask('GET', '/key', undefined, bearer(secret))).body.data as unknown as {
        budgets: { scope: string }[];
        effective_budget: { scope: string; limit_usd: number; remaining_usd: number; reset_interval: string | null };
      };
    expect((await effective(key)).effective_budget).toMatchObject({ scope: 'key_limit', remaining_usd: 20 });
    await manage('PUT', '/workspaces/tight/budgets/monthly', { limit_usd: 50 });
    expect((await effective(key)).effective_budget.scope).toBe('key_limit');
    await manage('PUT', '/workspaces/tight/budgets/daily', { limit_usd: 3 });
    const shown = await effective(key);
    expect(shown.effective_budget).toMatchObject({ scope: 'workspace', limit_usd: 3, reset_interval: 'daily' });
    expect(shown.budgets.map(({ scope }) => scope)).toEqual(['key_limit']);
    const { body: code } = await ask(
      'POST',
      '/auth/keys/code',
      { callback_url: 'https://app.example/back', limit: 9 },
      bearer(key),
    );
    const { body: exchanged } = await ask('POST', '/auth/keys', { code: code.data.id });
    expect((await effective(exchanged.key)).effective_budget).toMatchObject({ scope: 'key_limit', limit_usd: 9 });
  });

  test('see their own limit and those of their guardrails, the tightest first, but no budget of their workspace', async () => {
    const { id: workspaceId } = await made('/workspaces', { name: 'Budgets', slug: 'budgets' });
    await manage('PUT', '/workspaces/budgets/budgets/monthly', { limit_usd: 50 });
    const { key, hash } = await makeKey({ limit: 20, workspace_id: workspaceId });
    const { id: guardrailId } = await made('/guardrails', {
      name: 'g',
      limit_usd: 1,
      reset_interval: 'daily',
      workspace_id: workspaceId,
    });
    await manage('POST', `/guardrails/${guardrailId}/assignments/keys`, { key_hashes: [hash] });
    await ask('POST', '/chat/completions', hello, bearer(key));
    const shown = (await ask('GET', '/key', undefined, bearer(key))).body.data as unknown as {
      usage: number;
      budgets: {
        scope: string;
        limit_usd: number;
        spend_usd: number;
        budget_id: string | null;
        guardrail_id: string | null;
      }[];
      effective_budget: { scope: string };
    };
    expect(shown.usage).toBeGreaterThan(0);
    expect(shown.budgets.map(({ scope, limit_usd, spend_usd }) => [scope, limit_usd, spend_usd])).toEqual([
      ['api_key', 1, shown.usage],
      ['key_limit', 20, shown.usage],
    ]);
    expect(shown.budgets.map((one) => [one.budget_id !== null, one.guardrail_id])).toEqual([
      [false, guardrailId],
      [false, null],
    ]);
    expect(shown.effective_budget.scope).toBe('api_key');
    const credits = (await ask('GET', '/credits', undefined, bearer(key))).body.data;
    expect(credits).toEqual({ total_credits: 20, total_usage: shown.usage });
  });

  test('are made by a code in the workspace of its key, or in one that a management key names', async () => {
    const { id: workspaceId } = await made('/workspaces', { name: 'Codes', slug: 'codes' });
    const codeRequest = { callback_url: 'https://app.example/callback', workspace_id: workspaceId };
    const refused = await ask('POST', '/auth/keys/code', codeRequest);
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining('workspace_id')]);
    const { body } = await manage('POST', '/auth/keys/code', codeRequest);
    const { body: exchanged } = await ask('POST', '/auth/keys', { code: body.data.id });
    const own = await ask('GET', '/key', undefined, bearer(exchanged.key));
    expect(own.body.data).toMatchObject({ workspace_id: workspaceId });
  });
});

describe('fields that a plugin does not support are refused, and a disabled plugin requests nothing', () => {
  test.each([
    [{ id: 'moderation' }, 'plugins[0] names moderation'],
    [{ id: 'fusion', analysis_models: ['sandbox/echo'] }, 'plugins[0] names fusion'],
    [{ id: 'pareto-router', max_price: 1 }, 'plugins[0] names pareto-router'],
    [{ id: 'auto-beta-router' }, 'plugins[0].id'],
    [{ id: 'switchyard-router', algorithm: 'random' }, 'plugins[0].id'],
    [{ id: 'auto-router', blocked_models: ['a/*'] }, 'plugins[0].blocked_models'],
    [{ id: 'web', x_search: { allowed_x_handles: ['a'] } }, 'plugins[0].x_search'],
  ])('%j', async (plugin, named) => {
    for (const [path, body] of [
      ['/chat/completions', hello],
      ['/messages', { ...hello, max_tokens: 5 }],
      ['/responses', { model: 'sandbox/echo', input: 'Hello' }],
    ] as const) {
      const refused = await ask('POST', path, { ...body, plugins: [plugin] });
      expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining(named)]);
    }
    if (!named.includes('names')) return;
    const off = await ask('POST', '/chat/completions', { ...hello, plugins: [{ ...plugin, enabled: false }] });
    expect(off.status).toBe(200);
  });
});

describe('an unknown routing preference is refused: it may be a misspelt restriction', () => {
  test.each([
    [{ onyl: ['sandbox'] }, 'provider.onyl'],
    [{ allowed_data_regions: ['europe'] }, 'provider.allowed_data_regions'],
    [{ max_price: { promt: 1 } }, 'provider.max_price.promt'],
  ])('%j', async (provider, named) => {
    for (const [path, body] of [
      ['/chat/completions', hello],
      ['/messages', { ...hello, max_tokens: 5 }],
      ['/responses', { model: 'sandbox/echo', input: 'Hello' }],
      ['/embeddings', { model: 'sandbox/embed', input: 'Hello' }],
    ] as const) {
      const refused = await ask('POST', path, { ...body, provider });
      expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining(named)]);
    }
  });
});

describe('restrictions that a guardrail cannot enforce are refused', () => {
  test.each([
    ['enable_paid_model_training', false],
    ['enable_free_model_training', false],
    ['enable_free_model_publication', false],
    ['allowed_data_regions', ['europe']],
    ['content_filter_builtins', [{ slug: 'regex-prompt-injection', action: 'block', scan_scope: 'user_only' }]],
    ['content_filter_builtins', [{ slug: 'secrets', action: 'block' }]],
    ['content_filter_builtins', [{ slug: 'email', action: 'flag' }]],
  ])('400: %s %j', async (field, value) => {
    const { status, body } = await manage('POST', '/guardrails', { name: 'g', [field]: value });
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining(field)]);
  });

  test('fields that restrict nothing are accepted', async () => {
    const none = { enable_paid_model_training: true, enable_free_model_training: null, allowed_data_regions: null };
    const contentFilterBuiltins = [{ slug: 'regex-prompt-injection', action: 'block', scan_scope: 'all_messages' }];
    await made('/guardrails', { name: 'g', ...none, content_filter_builtins: contentFilterBuiltins });
    await made('/workspaces', { name: 'T', slug: 't', disabled_server_tools: [], include_byok_in_budgets: true });
    const refused = await manage('POST', '/workspaces', {
      name: 'U',
      slug: 'u',
      disabled_server_tools: ['web_search'],
    });
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([
      400,
      expect.stringContaining('disabled_server_tools'),
    ]);
  });
});

test('the status of an endpoint is a text, and a number if the operator configures that', async () => {
  const statusOf = async (one: TestGateway) => {
    const answer = await one.call('GET', '/models/sandbox/echo/endpoints');
    const { data } = (await answer.json()) as { data: { endpoints: Record<string, unknown>[] } };
    return data.endpoints[0]!;
  };
  expect(await statusOf(gateway)).toMatchObject({
    status: '0',
    supports_tool_choice: { auto: expect.any(Boolean), none: expect.any(Boolean) },
    native_tools: {},
    service_tier: null,
    supports_diarization: false,
  });
  const other = await startGateway({
    yaml: 'compatibility: { endpoint_status: integer }',
    environment: { GATEWAY_SANDBOX: 'on' },
  });
  try {
    expect((await statusOf(other))['status']).toBe(0);
  } finally {
    await other.stop();
  }
});
