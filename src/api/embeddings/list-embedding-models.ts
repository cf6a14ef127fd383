import { NotModified, sendCached } from '../../http/cached-answer.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { ModelList } from '../catalog/list-models.ts';
import { catalogCacheControl, jsonContentType, type Listings, modelListJson } from '../catalog/listings.ts';
import { modelQuery, queryKey } from '../catalog/model-query.ts';

/** `GET /embeddings/models`: the models that make vectors, newest first. */
export function listEmbeddingModels(server: Server, { listings: current }: { listings: () => Listings }): void {
  const query = modelQuery({ output_modalities: 'embeddings' });
  server.route({
    method: 'GET',
    url: '/embeddings/models',
    config: { access: 'public' },
    schema: {
      operationId: 'listEmbeddingModels',
      tags: ['Embeddings'],
      summary: 'Lists the embedding models that can be called.',
      response: { 200: ModelList, 304: NotModified, ...errors(400, 500) },
    },
    handler: async (request, reply) => {
      const listings = current();
      const answer = listings.answer(queryKey(query), () => ({
        text: modelListJson(listings.models(query)),
        content_type: jsonContentType,
      }));
      return sendCached(request, reply, answer, catalogCacheControl);
    },
  });
}
