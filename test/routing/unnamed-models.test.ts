/** Requests without a model, and unknown model names. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';

let upstream: Server;
let baseUrl: string;
let gateway: TestGateway | undefined;

beforeAll(async () => {
  upstream = createServer((request, response) => {
    let text = '';
    request.on('data', (piece: Buffer) => {
      text += piece.toString();
    });
    request.on('end', () => {
      const { model } = JSON.parse(text) as { model: string };
      const choices = [{ index: 0, message: { role: 'assistant', content: model }, finish_reason: 'stop' }];
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model, choices, usage }));
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
});
afterAll(() => upstream.close());
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
});

const model = (upstreamModel: string, usd: number, created: number) => ({
  created,
  endpoints: [{ provider: 'acme', upstream_model: upstreamModel, pricing: { prompt: usd, completion: usd } }],
});
const yaml = (more: object = {}) =>
  JSON.stringify({
    bundled_catalog: false,
    providers: { acme: { dialect: 'openai-chat', base_url: baseUrl, api_key: 'k' } },
    models: {
      'acme/large-3': model('large-3', 90, 1_700_000_300),
      'acme/small-2': model('small-2', 1, 1_700_000_200),
      'acme/search-preview': model('search-preview', 1, 1_700_000_250),
      'acme/small-1': model('small-1', 1, 1_700_000_100),
    },
    ...more,
  });

async function ask(body: object = {}): Promise<{ status: number; answer: JsonObject & { model?: string } }> {
  const messages = [{ role: 'user', content: 'Hi' }];
  const response = await gateway!.call('POST', '/chat/completions', { messages, ...body });
  return { status: response.status, answer: (await response.json()) as JsonObject & { model?: string } };
}
async function refusal(body: object): Promise<[number, string]> {
  const { status, answer } = await ask(body);
  return [status, (answer['error'] as { message: string } | undefined)?.message ?? ''];
}
async function manage(method: string, path: string, body: object): Promise<{ data: { id: string } }> {
  const authorization = `Bearer ${gateway!.management_key}`;
  const response = await gateway!.call(method, path, body, { authorization });
  expect(response.ok, await response.clone().text()).toBe(true);
  return (await response.json()) as { data: { id: string } };
}

describe('a request without a model, and openrouter/auto', () => {
  test.each([[{}], [{ model: 'openrouter/auto' }], [{ model: 'gateway/auto' }]])(
    'are answered by the newest general model below the price cap: %j',
    async (body) => {
      gateway = await startGateway({ yaml: yaml() });
      expect(await ask(body)).toMatchObject({ status: 200, answer: { model: 'acme/small-2' } });
    },
  );

  test('obey the guardrails of the key, and the price cap of the request', async () => {
    gateway = await startGateway({ yaml: yaml() });
    const { data } = await manage('POST', '/guardrails', { name: 'one', allowed_models: ['acme/small-1'] });
    await manage('POST', `/guardrails/${data.id}/assignments/keys`, { key_hashes: [gateway.key_hash] });
    expect(await ask()).toMatchObject({ status: 200, answer: { model: 'acme/small-1' } });
    expect((await ask({ provider: { max_price: { prompt: 0.5 } } })).status).toBe(404);
  });

  test('begin with the default, at any price', async () => {
    gateway = await startGateway({ yaml: yaml(), environment: { GATEWAY_DEFAULT_MODEL: 'acme/large-3' } });
    for (const body of [{}, { model: 'openrouter/auto' }]) {
      expect(await ask(body)).toMatchObject({ status: 200, answer: { model: 'acme/large-3' } });
    }
  });

  test('never use the sandbox while a provider is enabled', async () => {
    const environment = { GATEWAY_SANDBOX: 'on' };
    gateway = await startGateway({ yaml: yaml({ models: {} }), environment });
    expect(await refusal({})).toEqual([
      400,
      expect.stringMatching(/^model is required: no model of the active providers/),
    ]);
    expect(await refusal({ model: 'openrouter/auto' })).toEqual([404, expect.stringContaining('routing.auto_models')]);
  });

  test('use the sandbox if there is nothing else, under its name', async () => {
    gateway = await startGateway();
    expect(await ask()).toMatchObject({ status: 200, answer: { model: 'sandbox/echo' } });
  });

  test('use only the operator’s models of the router', async () => {
    gateway = await startGateway({ yaml: yaml({ routing: { auto_models: ['acme/large-3'] } }) });
    expect(await ask()).toMatchObject({ status: 200, answer: { model: 'acme/large-3' } });
  });
});

describe('an unknown model name', () => {
  test('of the catalog is a 404 with the variable that enables it', async () => {
    gateway = await startGateway({ yaml: yaml({ bundled_catalog: true }) });
    const message = 'openai/gpt-4o-mini has no provider that is on: set OPENAI_API_KEY for OpenAI';
    expect(await refusal({ model: 'openai/gpt-4o-mini' })).toEqual([404, expect.stringContaining(message)]);
    expect(await refusal({ model: 'openai/gpt-4o-mini:free' })).toEqual([404, expect.stringContaining(message)]);
  });

  test.each([
    ['acme/smal-2', 'acme/small-2'],
    ['small-1', 'acme/small-1'],
    ['ACME/small-1', 'acme/small-1'],
    ['other/small-1', 'acme/small-1'],
  ])('that is similar to another is a 404 with that one: %s', async (name, meant) => {
    gateway = await startGateway({ yaml: yaml() });
    expect(await refusal({ model: name })).toEqual([400, `${name} is not a valid model ID; did you mean ${meant}?`]);
  });

  test('gets no suggestion that the key may not use', async () => {
    gateway = await startGateway({ yaml: yaml() });
    const { data } = await manage('POST', '/guardrails', { name: 'one', allowed_models: ['acme/large-3'] });
    await manage('POST', `/guardrails/${data.id}/assignments/keys`, { key_hashes: [gateway.key_hash] });
    expect(await refusal({ model: 'acme/smal-2' })).toEqual([400, 'acme/smal-2 is not a valid model ID']);
  });

  test('of the disabled sandbox names its setting', async () => {
    gateway = await startGateway({ yaml: yaml() });
    expect(await refusal({ model: 'sandbox/echo' })).toEqual([
      404,
      expect.stringContaining('the sandbox, which is off while a provider is on: set GATEWAY_SANDBOX=on'),
    ]);
  });

  test('of great length costs no search, and one that is far from all names gets no suggestion', async () => {
    gateway = await startGateway({ yaml: yaml() });
    const name = `acme/small-2${'x'.repeat(200)}`;
    expect(await refusal({ model: name })).toEqual([400, `${name} is not a valid model ID`]);
    expect(await refusal({ model: 'nobody/nothing' })).toEqual([400, 'nobody/nothing is not a valid model ID']);
  });

  test('presets are refused by name, in a field or in the model', async () => {
    gateway = await startGateway({ yaml: yaml() });
    for (const [path, body] of [
      ['/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
      ['/completions', { prompt: 'Hi' }],
      ['/responses', { input: 'Hi' }],
      ['/messages', { max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] }],
    ] as const) {
      const response = await gateway.call('POST', path, { model: 'acme/small-1', preset: 'mine', ...body });
      expect([response.status, await response.text()], path).toEqual([400, expect.stringContaining('preset is not')]);
    }
    expect(await refusal({ model: '@preset/mine' })).toEqual([400, expect.stringContaining('is a preset')]);
  });
});
