import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import type { PublicModel } from '../../schemas/model.ts';
import { retrieved } from './retrieve-model.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

async function get(path: string) {
  const answer = await gateway.call('GET', path);
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

describe('GET /models/{model}', () => {
  test("200: the model's record, in the form of OpenAI's SDK and of Anthropic's", async () => {
    const { body } = await get('/model/sandbox/echo');
    const shown = body['data'] as { id: string; name: string; created: number; context_length: number };
    const openai = new OpenAI({ baseURL: gateway.base_url, apiKey: gateway.key });
    expect(await openai.models.retrieve('sandbox/echo')).toMatchObject({
      ...shown,
      object: 'model',
      owned_by: 'sandbox',
    });
    const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key });
    expect(await anthropic.models.retrieve('sandbox/echo')).toMatchObject({
      id: 'sandbox/echo',
      type: 'model',
      display_name: shown.name,
      created_at: new Date(shown.created * 1000).toISOString(),
      max_input_tokens: shown.context_length,
      max_tokens: 32768,
      lifecycle: 'active',
      retires_at: null,
    });
  });

  test("200: a model with a last day is deprecated, and is retired by that day's end", () => {
    const shown = { id: 'a/b', created: 0, expiration_date: '2026-03-01', top_provider: {} } as PublicModel;
    expect(retrieved(shown)).toMatchObject({ lifecycle: 'deprecated', retires_at: '2026-03-02T00:00:00.000Z' });
  });

  test('200: the list has the same models, and is one page for both SDKs', async () => {
    const openai = new OpenAI({ baseURL: gateway.base_url, apiKey: gateway.key });
    const listed = await openai.models.list();
    expect(listed.object).toBe('list');
    expect(listed.data.find(({ id }) => id === 'sandbox/echo')).toEqual(await openai.models.retrieve('sandbox/echo'));
    const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key });
    const page = await anthropic.models.list();
    expect(page).toMatchObject({ has_more: false, first_id: page.data[0]!.id, last_id: page.data.at(-1)!.id });
    expect(page.data.find(({ id }) => id === 'sandbox/echo')).toMatchObject({ display_name: 'Sandbox echo' });
    expect((await get('/models?output_modalities=rerank')).body).toMatchObject({
      data: [],
      first_id: null,
      last_id: null,
    });
  });

  test.each([
    ['an unescaped slash', 'sandbox/echo', 'sandbox/echo'],
    ['a slash at the end', 'sandbox%2Fecho/', 'sandbox/echo'],
    ['a suffix', 'sandbox%2fecho%3Afloor', 'sandbox/echo'],
  ])('200: with %s', async (_, name, id) => {
    const { status, body } = await get(`/models/${name}`);
    expect(status).toBe(200);
    expect(body['id']).toBe(id);
  });

  test('200: other paths below /models keep their meaning', async () => {
    expect((await get('/models/count')).body).toEqual({ data: { count: expect.any(Number) } });
    expect((await get('/models/user')).body).toMatchObject({ data: expect.any(Array) });
    expect((await get('/models/sandbox/echo/endpoints')).body).toMatchObject({ data: { id: 'sandbox/echo' } });
  });

  test.each(['sandbox%2Fnothing', 'sandbox/nothing', 'nothing', 'sandbox%2Fecho%2Fmore'])('404: %s', async (name) => {
    const { status, body } = await get(`/models/${name}`);
    expect(status).toBe(404);
    expect(body).toMatchObject({ error: { code: 404, message: expect.stringMatching('does not exist') } });
  });

  test.each(['sandbox%2Fecho', 'sandbox/echo'])('401: %s without a credential', async (name) => {
    expect((await fetch(`${gateway.base_url}/models/${name}`)).status).toBe(401);
  });
});
