import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { Random } from '../simulation/random.ts';

/**
 * Which models and endpoints the guardrails of a caller allow: those of its key, of the member who owns it and of its
 * workspace together, as at the public service, for every operation that calls a model.
 */

const VENDORS = ['anthropic', 'openai', 'google', 'acme'] as const;

/** The called providers, in order. */
let calledProviders: string[] = [];
let upstream: Server;

beforeAll(async () => {
  upstream = createServer((request, response) => {
    const [, provider = ''] = (request.url ?? '').split('/');
    calledProviders.push(provider);
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json');
      const usage = { prompt_tokens: 1_000_000, completion_tokens: 0, total_tokens: 1_000_000 };
      const data = [{ object: 'embedding', index: 0, embedding: [1] }];
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }];
      response.end(JSON.stringify({ object: 'chat.completion', created: 1, choices, data, usage }));
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
});
afterAll(() => upstream.close());

function yamlOf(port: number): string {
  const at = (slug: string) => `"http://127.0.0.1:${port}/${slug}"`;
  const prices = 'pricing: { prompt: 1, completion: 1 }';
  const model = (name: string) =>
    `  ${name}: { endpoints: [{ provider: keeping, upstream_model: m, ${prices} }, { provider: clean, upstream_model: m, ${prices} }] }`;
  return `
bundled_catalog: false
providers:
  keeping: { name: Keeping, dialect: openai-chat, base_url: ${at('keeping')}, data_policy: { retention: 30d } }
  clean: { name: Clean, dialect: openai-chat, base_url: ${at('clean')}, data_policy: { retention: none } }
models:
${VENDORS.map((vendor) => model(`${vendor}/m`)).join('\n')}
  acme/vectors: { output_modalities: [embeddings], endpoints: [{ provider: keeping, upstream_model: e, pricing: { prompt: 1 } }] }
`;
}

describeStores('guardrails of key, member and workspace', ({ freshUrl }) => {
  let gateway: TestGateway;
  let workspace: string;

  beforeEach(async () => {
    const url = await freshUrl();
    const yaml = yamlOf((upstream.address() as AddressInfo).port);
    gateway = await startGateway({ yaml, ...(url === undefined ? {} : { environment: { DATABASE_URL: url } }) });
    workspace = (await manage('GET', '/workspaces/default')).data.id;
    calledProviders = [];
  });
  afterEach(() => gateway.stop());

  async function manage(method: string, path: string, body?: unknown, status?: number) {
    const authorization = `Bearer ${gateway.management_key}`;
    const answer = await gateway.call(method, path, body, { authorization });
    const answerBody = (await answer.json()) as {
      data: { id: string; default_guardrail_id: string | null; updated_at: string };
      key: string;
    };
    if (status === undefined) expect(answer.ok, JSON.stringify(answerBody)).toBe(true);
    else expect(answer.status, JSON.stringify(answerBody)).toBe(status);
    return answerBody;
  }
  const guardrail = async (settings: object) =>
    (await manage('POST', '/guardrails', { name: 'g', ...settings })).data.id;
  const holdsFor = {
    key: (id: string) => manage('POST', `/guardrails/${id}/assignments/keys`, { key_hashes: [gateway.key_hash] }),
    async member(id: string) {
      const { data } = (await manage('GET', '/organization/members')) as unknown as { data: { id: string }[] };
      const memberUserIds = [data[0]!.id];
      await manage('POST', `/guardrails/${id}/assignments/members`, { member_user_ids: memberUserIds });
    },
    workspace: (id: string | null) => manage('PATCH', `/workspaces/${workspace}`, { default_guardrail_id: id }),
  };
  async function chat(model: string, extra: object = {}) {
    const messages = [{ role: 'user', content: 'Is it?' }];
    const response = await gateway.call('POST', '/chat/completions', { model, messages, max_tokens: 20, ...extra });
    const answerBody = (await response.json()) as {
      model: string;
      provider: string;
      error?: { message: string; metadata: unknown };
    };
    return { status: response.status, ...answerBody };
  }
  async function usable(): Promise<Record<string, string[]>> {
    const { data } = (await (await gateway.call('GET', '/models/user')).json()) as { data: { id: string }[] };
    return Object.fromEntries(data.map(({ id }) => [id, []]));
  }

  test('a call without endpoints because of guardrails alone is a 403 in every operation, and the funnel names the step', async () => {
    await holdsFor.key(await guardrail({ allowed_models: ['acme/m'] }));
    expect((await chat('acme/m')).status).toBe(200);
    calledProviders = [];
    const text = { model: 'openai/m', max_tokens: 20 };
    const messages = [{ role: 'user', content: 'Is it?' }];
    const calls: [path: string, body: object][] = [
      ['/chat/completions', { ...text, messages }],
      ['/chat/completions', { ...text, messages, stream: true }],
      ['/completions', { ...text, prompt: 'Is it?' }],
      ['/responses', { model: 'openai/m', input: 'Is it?' }],
      ['/messages', { ...text, messages }],
      ['/messages/count_tokens', { model: 'openai/m', messages }],
      ['/embeddings', { model: 'acme/vectors', input: 'Is it?' }],
    ];
    for (const [path, body] of calls) {
      const response = await gateway.call('POST', path, body);
      const answerBody = await response.text();
      expect(response.status, `${path}: ${answerBody}`).toBe(403);
      expect(answerBody).toContain('matching your guardrail restrictions');
    }
    expect(calledProviders).toEqual([]);
    expect((await chat('openai/m')).error?.metadata).toMatchObject({
      failed_routing_step: 'Filter by Guardrails',
      constraint: { field: 'model' },
    });
    const explained = await gateway.call('POST', '/route/explain', { ...text, messages });
    expect(await explained.text()).toContain('model-not-allowed-by-guardrail');
    expect(Object.keys(await usable())).toEqual(['acme/m']);
  });

  test('the 403 of a guardrail names it in the pipeline if the header requests the routing', async () => {
    const id = await guardrail({ ignored_models: ['openai/m'] });
    await holdsFor.key(id);
    const messages = [{ role: 'user', content: 'Is it?' }];
    const headers = { 'x-gateway-experimental-metadata': 'enabled' };
    const response = await gateway.call('POST', '/chat/completions', { model: 'openai/m', messages }, headers);
    expect(response.status).toBe(403);
    expect(((await response.json()) as { gateway_metadata: unknown }).gateway_metadata).toMatchObject({
      requested: 'openai/m',
      endpoints: { total: 2, available: [] },
      pipeline: [
        {
          type: 'guardrail',
          name: 'restrictions',
          guardrail_id: id,
          guardrail_scope: 'api-key',
          data: { action: 'blocked', counts: { 'model-ignored-by-guardrail': 2 } },
        },
      ],
    });
  });

  test('a call without endpoints is a 404 if anything besides guardrails excludes one of them', async () => {
    await holdsFor.key(await guardrail({ ignored_models: ['openai/m'], allowed_providers: ['clean'] }));
    const status = async (model: string, extra: object) => (await chat(model, extra)).status;
    expect(await status('openai/m', {})).toBe(403);
    expect(await status('openai/m', { models: ['acme/vectors'] })).toBe(400);
    // The guardrail excludes both endpoints of one model, the request those of the other.
    expect(await status('openai/m', { models: ['acme/m'], provider: { ignore: ['clean'] } })).toBe(404);
    expect(await status('openai/m', { provider: { only: ['keeping'] } })).toBe(404);
    expect(await status('openai/m', { provider: { max_price: { prompt: 0 } } })).toBe(404);
    expect(await status('openai/m', { provider: { zdr: true } })).toBe(404);
    expect(await status('openai/m', { models: ['google/m'], provider: { ignore: ['clean'] } })).toBe(404);
    // The guardrail alone excludes all endpoints of both.
    await holdsFor.workspace(await guardrail({ ignored_models: ['google/m'] }));
    expect(await status('openai/m', { models: ['google/m'] })).toBe(403);
    expect(await status('openai/m', { models: ['acme/m'] })).toBe(200);
  });

  test('of several candidates the forbidden ones are skipped', async () => {
    await holdsFor.key(await guardrail({ ignored_models: ['openai/m'], ignored_providers: ['Keeping'] }));
    const answerBody = await chat('openai/m', { models: ['acme/m'] });
    expect(answerBody).toMatchObject({ status: 200, model: 'acme/m', provider: 'Clean' });
    expect(calledProviders).toEqual(['clean']);
  });

  test('allowed lists are intersected, ignored ones are united', async () => {
    await holdsFor.workspace(await guardrail({ allowed_models: ['acme/m', 'openai/m'] }));
    await holdsFor.member(
      await guardrail({ allowed_models: ['openai/m', 'google/m'], ignored_providers: ['keeping'] }),
    );
    expect(Object.keys(await usable())).toEqual(['openai/m']);
    expect((await chat('acme/m')).status).toBe(403);
    expect((await chat('google/m')).status).toBe(403);
    expect(await chat('openai/m')).toMatchObject({ status: 200, provider: 'Clean' });
    await holdsFor.key(await guardrail({ ignored_providers: ['clean'] }));
    expect((await chat('openai/m')).status).toBe(403);
    expect(await usable()).toEqual({});
  });

  test('zero retention applies to the models of the vendors that any of the guardrails names, and a request cannot remove it', async () => {
    await holdsFor.key(await guardrail({ enforce_zdr_vendor_a: true, enforce_zdr_vendor_b: false }));
    await holdsFor.workspace(await guardrail({ enforce_zdr_vendor_c: true }));
    const served = async () =>
      Object.fromEntries(
        await Promise.all(
          VENDORS.map(async (vendor) => [vendor, (await chat(`${vendor}/m`, { provider: { zdr: false } })).provider]),
        ),
      ) as Record<string, string>;
    expect(await served()).toEqual({ anthropic: 'Clean', openai: 'Keeping', google: 'Clean', acme: 'Keeping' });
    await holdsFor.member(await guardrail({ enforce_zdr: true, enforce_zdr_vendor_b: false }));
    expect(await served()).toEqual({ anthropic: 'Clean', openai: 'Keeping', google: 'Clean', acme: 'Clean' });
    const strict = await chat('openai/m', { provider: { zdr: true } });
    expect(strict.provider).toBe('Clean');
  });

  test('a guardrail of the workspace applies at once to all its keys, and ends with its assignment or its deletion', async () => {
    expect((await chat('openai/m')).status).toBe(200);
    const id = await guardrail({ ignored_models: ['openai/m'] });
    expect((await holdsFor.workspace(id)).data.default_guardrail_id).toBe(id);
    expect((await chat('openai/m')).status).toBe(403);
    await manage('PATCH', `/guardrails/${id}`, { ignored_models: ['acme/m'] });
    expect((await chat('openai/m')).status).toBe(200);
    expect((await chat('acme/m')).status).toBe(403);
    const other = await manage('POST', '/workspaces', { name: 'Other', slug: 'other' });
    const elsewhere = await manage('POST', '/keys', { name: 'k', workspace_id: other.data.id });
    const there = await gateway.call(
      'POST',
      '/chat/completions',
      { model: 'acme/m', messages: [{ role: 'user', content: 'x' }] },
      { authorization: `Bearer ${elsewhere.key}` },
    );
    expect(there.status).toBe(200);
    await holdsFor.workspace(null);
    expect((await chat('acme/m')).status).toBe(200);
    const held = await holdsFor.workspace(id);
    expect((await chat('acme/m')).status).toBe(403);
    await manage('DELETE', `/guardrails/${id}`);
    expect((await chat('acme/m')).status).toBe(200);
    const left = await manage('GET', '/workspaces/default');
    expect(left.data.default_guardrail_id).toBe('');
    expect(left.data.updated_at > held.data.updated_at).toBe(true);
  });

  test('the listed models of a key are those that its requests can use, with any combination of guardrails', async () => {
    const random = new Random(8);
    const draw = () => random.next();
    const some = (names: readonly string[]) => {
      const drawn = names.filter(() => draw() < 0.6);
      return draw() < 0.5 || drawn.length === 0 ? undefined : drawn;
    };
    const flag = () => (draw() < 0.7 ? undefined : draw() < 0.5);
    const models = VENDORS.map((vendor) => `${vendor}/m`);
    for (let round = 0; round < 12; round += 1) {
      const ids: string[] = [];
      const settings = [];
      for (const holds of Object.values(holdsFor)) {
        if (draw() < 0.4) continue;
        const drawn = {
          allowed_models: some(models),
          ignored_models: draw() < 0.3 ? some(models) : undefined,
          allowed_providers: some(['keeping', 'clean']),
          enforce_zdr: flag(),
          enforce_zdr_anthropic: flag(),
          enforce_zdr_other: flag(),
        };
        const id = await guardrail(drawn);
        await holds(id);
        ids.push(id);
        settings.push(drawn);
      }
      const answerBody = await usable();
      const reached = [];
      for (const model of models) if ((await chat(model)).status === 200) reached.push(model);
      expect(reached.sort(), JSON.stringify(settings)).toEqual(
        Object.keys(answerBody)
          .filter((id) => models.includes(id))
          .sort(),
      );
      for (const id of ids) await manage('DELETE', `/guardrails/${id}`);
    }
  });

  test('a workspace accepts only an existing guardrail', async () => {
    const nobody = '00000000-0000-4000-8000-000000000000';
    await manage('PATCH', `/workspaces/${workspace}`, { default_guardrail_id: nobody }, 400);
    await manage('POST', '/workspaces', { name: 'N', slug: 'n', default_guardrail_id: nobody }, 400);
    const id = await guardrail({});
    const made = await manage('POST', '/workspaces', { name: 'N', slug: 'n', default_guardrail_id: id });
    expect(made.data.default_guardrail_id).toBe(id);
    await manage('DELETE', `/workspaces/${made.data.id}`);
    await manage('DELETE', `/guardrails/${id}`);
  });

  test('all keys of a workspace share the spend limit of its guardrail', async () => {
    // A million prompt tokens cost a dollar.
    const id = await guardrail({ limit_usd: 1.5, reset_interval: 'daily' });
    await holdsFor.workspace(id);
    const second = await manage('POST', '/keys', { name: 'second' });
    const body = { model: 'acme/m', messages: [{ role: 'user', content: 'Is it?' }], max_tokens: 20 };
    expect((await chat('acme/m')).status).toBe(200);
    const refused = async (key: string) => {
      const response = await gateway.call('POST', '/chat/completions', body, { authorization: `Bearer ${key}` });
      return { status: response.status, answerBody: await response.text() };
    };
    // The second call passes the limit, which was not known before it answered.
    expect((await refused(second.key)).status).toBe(200);
    for (const key of [gateway.key, second.key]) {
      const { status, answerBody } = await refused(key);
      expect(status, answerBody).toBe(402);
      expect(answerBody).toContain('all of this workspace');
    }
    await manage('PATCH', `/guardrails/${id}`, { limit_usd: 100 });
    expect((await refused(second.key)).status).toBe(200);
    await manage('PATCH', `/guardrails/${id}`, { limit_usd: 1.5 });
    // Money that was reserved under the higher limit may still be spent, for a second.
    await vi.waitFor(async () => expect((await refused(gateway.key)).status).toBe(402), {
      timeout: 60_000,
      interval: 200,
    });
    await holdsFor.workspace(await guardrail({}));
    expect((await refused(gateway.key)).status).toBe(200);
  });
});
