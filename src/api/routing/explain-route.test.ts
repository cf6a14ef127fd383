import { Value } from 'typebox/value';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { startWireServer, type WireServer } from '../../../test/wires/wire-server.ts';
import { limits } from '../../limits.ts';
import { RouteExplanation } from '../../schemas/route-explanation.ts';

let wire: WireServer;
let gateway: TestGateway;
let requests = 0;

const model = (...endpoints: object[]) => ({ context_length: 100_000, endpoints });
const at = (provider: string, prompt: number, completion: number, more: object = {}) => ({
  provider,
  upstream_model: 'scripted',
  pricing: { prompt, completion },
  max_completion_tokens: 20_000,
  ...more,
});

beforeAll(async () => {
  wire = await startWireServer(() => {
    requests += 1;
    return [{ send: 'HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n' }] as never;
  });
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      logging: { level: 'warn' },
      providers: {
        chat: { name: 'Chat', dialect: 'openai-chat', base_url: wire.url, data_policy: { training: false } },
        claude: { name: 'Claude', dialect: 'anthropic-messages', base_url: wire.url },
        gemini: { name: 'Gemini', dialect: 'gemini-generate-content', base_url: wire.url },
      },
      models: {
        'wire/both': model(
          at('chat', 1, 2, { supported_parameters: ['max_tokens'] }),
          at('claude', 3, 4, { max_completion_tokens: 200 }),
        ),
        'wire/images': { ...model(at('gemini', 1, 2)), input_modalities: ['text', 'image', 'file'] },
        'wire/unpriced': model({ provider: 'chat', upstream_model: 'm' }),
      },
      ledger: { journal_sync: 'os', default_output_tokens: 1_000 },
    }),
  });
});
afterAll(async () => {
  await gateway.stop();
  await wire.stop();
});
beforeEach(() => {
  requests = 0;
});

const text = (content: unknown) => [{ role: 'user', content }];

async function explain(body: object, key = gateway.key) {
  const answer = await gateway.call('POST', '/route/explain', body, { authorization: `Bearer ${key}` });
  expect(answer.status).toBe(200);
  const { data } = (await answer.json()) as { data: RouteExplanation };
  expect([...Value.Errors(RouteExplanation, data)]).toEqual([]);
  return data;
}

async function limitedKey(limit: number): Promise<string> {
  const authorization = `Bearer ${gateway.management_key}`;
  const made = await gateway.call('POST', '/keys', { name: 'limited', limit }, { authorization });
  return ((await made.json()) as { key: string }).key;
}

describe('explains', () => {
  test('the order, with weights, reasons, expected costs and changes of the request', async () => {
    const explanation = await explain({ model: 'wire/both', messages: text('Hello'), temperature: 1, max_tokens: 100 });
    expect(explanation).toMatchObject({
      requested: 'wire/both',
      models: ['wire/both'],
      strategy: 'direct',
      error: null,
    });
    const [first, second] = explanation.endpoints.planned;
    expect(first).toMatchObject({
      position: 1,
      endpoint_id: 'chat|wire/both',
      provider: 'Chat',
      output_tokens: 100,
      adjusted_parameters: [{ kind: 'dropped', field: 'temperature' }],
      refusal: null,
      is_reached: true,
      hold: null,
      health: { cooling_down_until: null, had_recent_outage: false },
    });
    expect(second).toMatchObject({
      position: 2,
      endpoint_id: 'claude|wire/both',
      output_tokens: 100,
      adjusted_parameters: [],
    });
    expect((first?.weight ?? 0) + (second?.weight ?? 0)).toBeCloseTo(1);
    expect(first?.because.length).toBeGreaterThan(0);
    const { expected_prompt_tokens: prompt, expected_completion_tokens: completion } = explanation;
    expect(completion).toBe(100);
    expect(first?.expected_cost).toBe((prompt * 1 + 100 * 2) / 1e6);
    expect(second?.expected_cost).toBe((prompt * 3 + 100 * 4) / 1e6);
    expect(first?.worst_case_cost).toBeGreaterThan(first?.expected_cost ?? 1);
    expect(requests).toBe(0);
  });

  test('a very long request for its first endpoints alone', async () => {
    const explanation = await explain({
      model: 'wire/both',
      messages: text('word '.repeat(1_700_000)),
      max_tokens: 100,
    });
    const [first, second] = explanation.endpoints.planned;
    expect(first).toMatchObject({ output_tokens: 100, worst_case_cost: expect.any(Number) });
    expect(second).toMatchObject({ output_tokens: null, worst_case_cost: null, expected_cost: expect.any(Number) });
  });

  test('the models of each name', async () => {
    const explanation = await explain({ model: 'wire/both:floor', models: ['wire/images'], messages: text('Hello') });
    expect(explanation).toMatchObject({
      requested: 'wire/both:floor',
      models: ['wire/both', 'wire/images'],
      names: [
        { name: 'wire/both:floor', models: ['wire/both'] },
        { name: 'wire/images', models: ['wire/images'] },
      ],
      strategy: 'fallback',
    });
    expect(explanation.endpoints.planned.map(({ tag }) => tag)).toEqual(['chat', 'claude', 'gemini']);
  });

  test('the expected cost of an answer of unknown length', async () => {
    const explanation = await explain({ model: 'wire/both', messages: text('Hello') });
    expect(explanation.expected_completion_tokens).toBe(limits.expected_completion_tokens);
  });

  test('the excluded endpoints with step and reason, and the number left after each step', async () => {
    const explanation = await explain({
      model: 'wire/both',
      messages: text('Hello'),
      provider: { ignore: ['claude'] },
    });
    expect(explanation.endpoints.excluded).toMatchObject([
      { endpoint_id: 'claude|wire/both', step: 'Filter by Ignored Providers', reason: 'it is in provider.ignore' },
    ]);
    expect(explanation.routing_funnel).toContainEqual({ step: 'Filter by Ignored Providers', endpoint_count: 1 });
    expect(explanation.endpoints.total).toBe(2);
  });

  test('a request without an endpoint, with the error that it would get', async () => {
    const body = { model: 'wire/unpriced', messages: text('Hello') };
    const explanation = await explain(body);
    const refused = (await (await gateway.call('POST', '/chat/completions', body)).json()) as { error: object };
    expect(explanation).toMatchObject({
      endpoints: { planned: [], excluded: [{ step: 'Filter by Known Price' }] },
      hold: null,
    });
    expect(explanation.error).toEqual(refused.error);
    expect(explanation.error).toMatchObject({ code: 404, metadata: { failed_routing_step: 'Filter by Known Price' } });
  });

  test('the amount that would be held in each budget, and the amount that would be left', async () => {
    const key = await limitedKey(0.01);
    const explanation = await explain({ model: 'wire/both', messages: text('Hello'), max_tokens: 100 }, key);
    expect(explanation.hold).toMatchObject({
      lowers_output: false,
      budgets: [{ scope: 'key', limit: 0.01, spent: 0, available: 0.01, resets_at: null }],
    });
    expect(explanation.hold?.amount).toBe(explanation.hold?.wanted);
    expect(explanation.hold?.amount).toBe(explanation.endpoints.planned[0]?.worst_case_cost);
    expect(await explain({ model: 'wire/both', messages: text('Hello'), max_tokens: 100 }, key)).toMatchObject({
      hold: explanation.hold,
    });
  });

  test('without the amounts of a workspace for its keys', async () => {
    const authorization = `Bearer ${gateway.management_key}`;
    const made = await gateway.call('POST', '/workspaces', { name: 'Team', slug: 'team' }, { authorization });
    const { id } = ((await made.json()) as { data: { id: string } }).data;
    await gateway.call('PUT', `/workspaces/${id}/budgets/monthly`, { limit_usd: 5 }, { authorization });
    const key = await gateway.call(
      'POST',
      '/keys',
      { name: 'of the team', limit: 1, workspace_id: id },
      { authorization },
    );
    const body = { model: 'wire/both', messages: text('Hello'), max_tokens: 100 };
    const { hold } = await explain(body, ((await key.json()) as { key: string }).key);
    expect(hold?.budgets).toMatchObject([
      { scope: 'key', limit: 1, spent: 0, available: 1 },
      { scope: 'workspace', limit: null, spent: null, available: null, resets_at: expect.any(String) },
    ]);
  });

  test('that a budget lowers the output bound', async () => {
    const key = await limitedKey(0.002);
    const explanation = await explain({ model: 'wire/both', messages: text('Hello'), max_tokens: 20_000 }, key);
    expect(explanation.hold).toMatchObject({ lowers_output: true, wanted: expect.closeTo(0.04, 2) });
    expect(explanation.hold?.amount).toBeLessThanOrEqual(0.002);
    expect(explanation.endpoints.planned[0]?.output_tokens).toBeLessThan(1_000);
    expect(explanation.endpoints.planned[0]?.adjusted_parameters).toContainEqual(
      expect.objectContaining({ kind: 'clamped', field: 'max_tokens' }),
    );
  });

  test('that no budget can pay for it', async () => {
    const key = await limitedKey(0.0000001);
    const body = { model: 'wire/both', messages: text('Hello'), max_tokens: 100 };
    const explanation = await explain(body, key);
    const refused = await gateway.call('POST', '/chat/completions', body, { authorization: `Bearer ${key}` });
    expect(explanation.error).toEqual(((await refused.json()) as { error: object }).error);
    expect(explanation.error).toMatchObject({ code: 402, metadata: { budget: 'key' } });
    expect(explanation.hold).toMatchObject({ amount: 0, lowers_output: false });
  });

  test('media without fetching them: the cost of an image is known, and that of a file is not', async () => {
    const picture = { type: 'image_url', image_url: { url: 'https://files.example/a.png' } };
    const file = { type: 'file', file: { file_data: 'https://files.example/a.pdf', filename: 'a.pdf' } };
    const costOf = async (...parts: object[]) => {
      const explanation = await explain({ model: 'wire/images', messages: text(parts), max_tokens: 100 });
      return explanation.endpoints.planned[0];
    };
    expect(await costOf(picture)).toMatchObject({ unfetched_media: 1, worst_case_cost: expect.any(Number) });
    expect(await costOf(picture, file)).toMatchObject({ unfetched_media: 2, worst_case_cost: null, hold: null });
    expect(requests).toBe(0);
  });
});

test.each([
  ['a body that is not valid', { model: 'wire/both', messages: 1 }, 400],
  ['an unknown model', { model: 'wire/none', messages: text('Hello') }, 400],
])('%s is refused like the request itself', async (_title, body, status) => {
  const explained = await gateway.call('POST', '/route/explain', body);
  const answer = await gateway.call('POST', '/chat/completions', body);
  expect(explained.status).toBe(status);
  expect(((await explained.json()) as { error: object }).error).toEqual(
    ((await answer.json()) as { error: object }).error,
  );
});

test('management keys are refused, and so are requests without a key', async () => {
  const body = { model: 'wire/both', messages: text('Hello') };
  const explainWith = (authorization: string) => gateway.call('POST', '/route/explain', body, { authorization });
  expect((await explainWith(`Bearer ${gateway.management_key}`)).status).toBe(403);
  expect((await explainWith('')).status).toBe(401);
});

test('the explained routing is in the metadata of the answer and in its record', async () => {
  const sandbox = await startGateway({});
  try {
    const authorization = `Bearer ${sandbox.management_key}`;
    const made = await sandbox.call('POST', '/keys', { name: 'limited', limit: 1 }, { authorization });
    const { key } = (await made.json()) as { key: string };
    const headers = { authorization: `Bearer ${key}`, 'x-gateway-experimental-metadata': 'enabled' };
    const body = {
      model: 'sandbox/fallback',
      messages: text('Hello'),
      max_tokens: 50,
      provider: { order: ['sandbox'], ignore: ['nobody'] },
    };
    const explained = await sandbox.call('POST', '/route/explain', body, headers);
    const { data: explanation } = (await explained.json()) as { data: RouteExplanation };
    const answer = await sandbox.call('POST', '/chat/completions', body, headers);
    const { id, gateway_metadata: shown } = (await answer.json()) as { id: string; gateway_metadata: never };
    const generation = await sandbox.call('GET', `/generation?id=${id}`, undefined, headers);
    const { data: record } = (await generation.json()) as { data: { routing: never } };

    const ids = explanation.endpoints.planned.map(({ endpoint_id }) => endpoint_id);
    expect(ids).toHaveLength(2);
    const places = explanation.endpoints.planned.map(({ weight, because }) => ({ weight, because }));
    const [first, second] = places;
    expect(shown).toMatchObject({
      strategy: explanation.strategy,
      endpoints: {
        total: explanation.endpoints.total,
        available: [
          { endpoint_id: ids[0], position: 1, selected: false, ...first },
          { endpoint_id: ids[1], position: 2, selected: true, ...second },
        ],
        excluded: explanation.endpoints.excluded,
      },
      routing_funnel: explanation.routing_funnel,
      hold: { amount: explanation.endpoints.planned[1]?.hold?.amount, budgets: ['key never'] },
    });
    expect(record.routing).toMatchObject({
      strategy: explanation.strategy,
      endpoints: {
        total: explanation.endpoints.total,
        planned: [
          { endpoint_id: ids[0], selected: false, ...first },
          { endpoint_id: ids[1], selected: true, ...second },
        ],
        excluded: [],
      },
      hold: { amount: explanation.endpoints.planned[1]?.hold?.amount, budgets: ['key never'] },
    });
  } finally {
    await sandbox.stop();
  }
});
