import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generation } from '../../../test/generation-fixture.ts';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { createServer } from '../../http/create-server.ts';
import type { Principal } from '../../http/principal.ts';
import type { AttemptRecord, GenerationRecord } from '../../ledger/records.ts';
import { getGeneration } from './get-generation.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

type Fields = Record<string, unknown>;

async function lookUp(id: string): Promise<Fields> {
  const response = await gateway.call('GET', `/generation?id=${id}`);
  expect(response.status).toBe(200);
  return ((await response.json()) as { data: Fields }).data;
}

async function complete(
  body: object,
  headers?: Record<string, string>,
): Promise<{ id: string; usage: { cost: number; prompt_tokens: number; completion_tokens: number } }> {
  const response = await gateway.call(
    'POST',
    '/chat/completions',
    { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }], ...body },
    headers,
  );
  return (await response.json()) as {
    id: string;
    usage: { cost: number; prompt_tokens: number; completion_tokens: number };
  };
}

test('200: immediately after the answer, with attribution, attempts and the charges', async () => {
  const { id, usage } = await complete(
    { user: 'end-user-1', session_id: 's-1' },
    {
      'http-referer': 'https://app.example',
      'x-title': 'An app',
      'x-gateway-categories': 'cli-agent, game',
      'x-request-id': 'my-request',
    },
  );
  const record = await lookUp(id);
  expect(record).toMatchObject({
    id,
    request_id: 'my-request',
    api_type: 'completions',
    model: 'sandbox/echo',
    provider_name: 'Sandbox',
    external_user: 'end-user-1',
    session_id: 's-1',
    http_referer: 'https://app.example',
    title: 'An app',
    categories: ['cli-agent', 'game'],
    streamed: false,
    cancelled: false,
    is_byok: false,
    finish_reason: 'stop',
    outcome: 'completed',
    estimated: false,
    tokens_prompt: usage.prompt_tokens,
    native_tokens_completion: usage.completion_tokens,
    total_cost: usage.cost,
    usage: usage.cost,
    provider_responses: [{ provider_name: 'Sandbox', status: 200, failure: null, is_byok: false }],
  });
  const charges = record['charges'] as { units: number; unit_price: string; amount: string }[];
  expect(charges.length).toBe(2);
  for (const { units, unit_price, amount } of charges)
    expect(units * Number(unit_price)).toBeCloseTo(Number(amount), 15);
  expect(charges.reduce((sum, { amount }) => sum + Number(amount), 0)).toBeCloseTo(usage.cost, 8);
});

test('200: the same from the store as from the journal', async () => {
  const { id } = await complete({});
  const fresh = await lookUp(id);
  await sleep(300);
  expect(await lookUp(id)).toEqual(fresh);
});

test('200: a client that disconnected has a record within a second, cancelled and charged', async () => {
  const controller = new AbortController();
  const response = await fetch(`${gateway.base_url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'sandbox/story',
      messages: [{ role: 'user', content: 'Hello' }],
      stream: true,
      sandbox: { tokens: 2000, chunk_delay_ms: 20 },
    }),
    signal: controller.signal,
  });
  const id = response.headers.get('x-generation-id') ?? '';
  const reader = response.body?.getReader();
  await reader?.read();
  await reader?.read();
  controller.abort();
  await sleep(900);
  expect(await lookUp(id)).toMatchObject({ cancelled: true, outcome: 'cancelled', estimated: true, streamed: true });
  expect((await lookUp(id))['total_cost']).toBeGreaterThan(0);
});

test('200: a request that failed at every provider has a record without cost', async () => {
  const response = await gateway.call('POST', '/chat/completions', {
    model: 'sandbox/fail-503',
    messages: [{ role: 'user', content: 'Hello' }],
  });
  expect(response.status).toBe(503);
  const record = await lookUp(response.headers.get('x-generation-id') ?? '');
  expect(record).toMatchObject({ outcome: 'failed', total_cost: 0, finish_reason: 'error' });
  expect((record['provider_responses'] as unknown[]).length).toBe(2);
});

test('404: an unknown id', async () => {
  const response = await gateway.call('GET', '/generation?id=gen-0-nothing');
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { code: 404, message: 'Generation gen-0-nothing not found' } });
});

test('400: no id', async () => {
  const response = await gateway.call('GET', '/generation');
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { message: 'id is required' } });
});

test('401: no credential', async () => {
  const response = await fetch(`${gateway.base_url}/generation?id=x`);
  expect(response.status).toBe(401);
});

describe('access to parts of a generation', () => {
  const record = generation({ id: 'gen-1' });
  const { organization_id, workspace_id } = record;
  const principals: Record<string, Principal> = {
    own: {
      kind: 'key',
      key_hash: 'a',
      key_id: 1,
      organization_id,
      workspace_id,
      user_id: null,
      budgets: [],
      guardrails: [],
      budget_mode: null,
    },
    neighbour: {
      kind: 'key',
      key_hash: 'b',
      key_id: 2,
      organization_id,
      workspace_id: 'other',
      user_id: null,
      budgets: [],
      guardrails: [],
      budget_mode: null,
    },
    management: {
      kind: 'management',
      key_hash: 'c',
      key_id: 3,
      organization_id,
      workspace_id: 'other',
      user_id: null,
      budgets: [],
      guardrails: [],
      budget_mode: null,
    },
    stranger: {
      kind: 'management',
      key_hash: 'd',
      key_id: 4,
      organization_id: 'other',
      workspace_id,
      user_id: null,
      budgets: [],
      guardrails: [],
      budget_mode: null,
    },
  };

  async function see(who: string, record: GenerationRecord, id = 'gen-1') {
    const lookups: string[] = [];
    const server = createServer({
      authenticate: (secret) => principals[secret] as Principal,
      logger: false,
      body_bytes_max: 1024,
    });
    const find = (wanted: string) => {
      lookups.push(wanted);
      return record;
    };
    getGeneration(server, { generations: { find } });
    const headers = { authorization: `Bearer ${who}` };
    const answer = await server.inject({ method: 'GET', url: `/generation?id=${encodeURIComponent(id)}`, headers });
    await server.close();
    return { status: answer.statusCode, data: answer.json().data, lookups };
  }

  test.each([
    ['a key of its workspace', 'own', 200],
    ['a key of another workspace', 'neighbour', 404],
    ['a management key of its organization', 'management', 200],
    ['a management key of another organization', 'stranger', 404],
  ])('%s', async (_title, who, status) => {
    expect((await see(who, record)).status).toBe(status);
  });

  test('404: an id that no store can contain is not looked up', async () => {
    expect(await see('own', record, 'gen-\u0000')).toMatchObject({ status: 404, lookups: [] });
  });

  test('every class of tokens and every failed attempt is shown', async () => {
    const attempt = { ...(record.attempts[0] as AttemptRecord), status: 503, failure: 'overloaded' };
    const usage = { in_uncached: 10, in_cache_read: 5, out_text: 3, out_reasoning: 2, out_image: 1 };
    const { data } = await see('own', { ...record, usage, attempts: [attempt, ...record.attempts] });
    expect(data).toMatchObject({
      tokens_prompt: 15,
      tokens_completion: 6,
      native_tokens_cached: 5,
      native_tokens_reasoning: 2,
      native_tokens_completion_images: 1,
      provider_responses: [
        { status: 503, failure: 'overloaded' },
        { status: 200, failure: null },
      ],
    });
  });
});
