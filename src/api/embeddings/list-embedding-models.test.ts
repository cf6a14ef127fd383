import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCatalogServer } from '../../../test/http/catalog-server.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Server } from '../../http/server.ts';
import type { PublicModel } from '../../schemas/model.ts';
import { listEmbeddingModels } from './list-embedding-models.ts';

let server: Server;
let catalog: Catalog;

beforeAll(async () => {
  ({ server, catalog } = await startCatalogServer(listEmbeddingModels));
});
afterAll(() => server.close());

describe('GET /embeddings/models', () => {
  test('200: the embedding models of the catalog, without a credential, newest first', async () => {
    const answer = await server.inject({ method: 'GET', url: '/embeddings/models' });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['cache-control']).toMatch(/^public, max-age=120/);
    const { data } = answer.json() as { data: PublicModel[] };
    const made = catalog.models().filter(({ output_modalities }) => output_modalities.includes('embeddings'));
    expect(data.map(({ id }) => id)).toEqual(made.map(({ id }) => id));
    expect(data.map(({ id }) => id)).toContain('openai/text-embedding-3-small');
    expect(data.every(({ architecture }) => architecture.output_modalities.includes('embeddings'))).toBe(true);
  });

  test('200: an embedding model lists no parameters, no output bound and no completion price', async () => {
    const answer = await server.inject({ method: 'GET', url: '/embeddings/models' });
    const { data } = answer.json() as { data: PublicModel[] };
    for (const model of data) {
      expect(model.supported_parameters, model.id).toEqual([]);
      expect(model.top_provider.max_completion_tokens, model.id).toBeNull();
      expect(model.pricing.completion, model.id).toBe('0');
    }
  });
});
