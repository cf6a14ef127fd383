import type { Catalog } from '../../catalog/catalog.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { catalogCacheControl, ModelList, modelList } from '../catalog/list-models.ts';

/** `GET /embeddings/models`: the models that make vectors, newest first. */
export function listEmbeddingModels(server: Server, { catalog }: { catalog: () => Catalog }): void {
  const built = new WeakMap<Catalog, string>();
  server.route({
    method: 'GET',
    url: '/embeddings/models',
    config: { access: 'public' },
    schema: {
      operationId: 'listEmbeddingModels',
      tags: ['Embeddings'],
      summary: 'Lists the embedding models that can be called.',
      response: { 200: ModelList, ...errors(400, 500) },
    },
    handler: (_request, reply) => {
      const source = catalog();
      const body = built.get(source) ?? modelList(source, ['embeddings']);
      built.set(source, body);
      reply.header('cache-control', catalogCacheControl).type('application/json; charset=utf-8');
      // A string is sent as it is; the schema stands for the document.
      return body as unknown as ModelList;
    },
  });
}
