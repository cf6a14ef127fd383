import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCatalogServer } from '../../../test/http/catalog-server.ts';
import type { Server } from '../../http/server.ts';
import { countModels } from './count-models.ts';
import { listModels } from './list-models.ts';

let server: Server;

beforeAll(async () => {
  ({ server } = await startCatalogServer((scope, options) => {
    listModels(scope, options);
    countModels(scope, options);
  }));
});
afterAll(() => server.close());

async function get(url: string) {
  const answer = await server.inject({ method: 'GET', url });
  return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
}

describe('GET /models/count', () => {
  test.each([
    '',
    '?output_modalities=all',
    '?output_modalities=embeddings',
    '?category=programming&supported_parameters=tools',
  ])('200: %s counts the models of the same list query', async (query) => {
    const { status, body } = await get(`/models/count${query}`);
    expect(status).toBe(200);
    expect(body).toEqual({ data: { count: (await get(`/models${query}`)).body.data.length } });
    expect(body.data.count).toBeGreaterThan(0);
  });

  test('304: an unchanged answer is not sent again', async () => {
    const { etag } = (await get('/models/count')).headers;
    const again = await server.inject({ method: 'GET', url: '/models/count', headers: { 'if-none-match': `${etag}` } });
    expect(again.statusCode).toBe(304);
  });

  test('400: a bad modality', async () => {
    expect((await get('/models/count?output_modalities=smell')).status).toBe(400);
  });
});
