import { Errors } from 'typebox/value';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KNOWN_SECRET, startCatalogServer } from '../../../test/http/catalog-server.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { describeModel } from '../../catalog/describe.ts';
import type { Server } from '../../http/server.ts';
import { PublicModel } from '../../schemas/model.ts';
import { getModel } from './get-model.ts';

let server: Server;
let catalog: Catalog;

beforeAll(async () => {
  ({ server, catalog } = await startCatalogServer(getModel));
});
afterAll(() => server.close());

async function get(url: string, secret = KNOWN_SECRET) {
  const answer = await server.inject({ method: 'GET', url, headers: { authorization: `Bearer ${secret}` } });
  return { status: answer.statusCode, body: answer.json() };
}

describe('GET /model/{author}/{slug}', () => {
  test('200: the record of the list', async () => {
    const { status, body } = await get('/model/openai/gpt-4o');
    expect(status).toBe(200);
    expect(Errors(PublicModel, body.data)).toEqual([]);
    const model = catalog.find('openai/gpt-4o');
    expect(body.data).toEqual(model && describeModel(model));
  });

  test.each([
    ['a dated slug', 'openai/gpt-4o-20240513', 'openai/gpt-4o'],
    ['a suffix', 'openai/gpt-4o:floor', 'openai/gpt-4o'],
    ['an alias', '~anthropic/claude-haiku-latest', 'anthropic/claude-haiku-4.5'],
    ['an alias with a suffix', '~anthropic/claude-haiku-latest:nitro', 'anthropic/claude-haiku-4.5'],
  ])('200: by %s', async (_, name, id) => {
    expect((await get(`/model/${name}`)).body.data.id).toBe(id);
  });

  test('200: a router model', async () => {
    const { body } = await get('/model/gateway/auto');
    expect(Errors(PublicModel, body.data)).toEqual([]);
    expect(body.data).toMatchObject({ id: 'gateway/auto', pricing: { prompt: '-1' } });
  });

  test.each(['gateway/free', 'openai/gpt-0', 'OpenAI/gpt-4o', 'openai/gpt-4o:free', '~openai/nothing-latest'])(
    '404: %s',
    async (name) => {
      const { status, body } = await get(`/model/${name}`);
      expect(status).toBe(404);
      expect(body.error.code).toBe(404);
    },
  );

  test('401: without a credential, and with a wrong one', async () => {
    expect((await server.inject({ method: 'GET', url: '/model/openai/gpt-4o' })).statusCode).toBe(401);
    expect((await get('/model/openai/gpt-4o', 'wrong')).status).toBe(401);
  });
});
