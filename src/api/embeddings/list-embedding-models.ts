import Type from 'typebox';
import type { StatisticsOf } from '../../catalog/describe.ts';
import { NotModified } from '../../http/cached-answer.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { answerModels } from '../catalog/answer-models.ts';
import type { Listings } from '../catalog/listings.ts';
import { ModelList } from '../catalog/model-list.ts';
import { modelFilters, modelPage, modelQuery } from '../catalog/model-query.ts';

/** `GET /embeddings/models`: the embedding models, newest first. */
export function listEmbeddingModels(
  server: Server,
  { listings, statistics, now }: { listings: () => Listings; statistics: StatisticsOf; now: () => number },
): void {
  const { output_modalities: _, ...filters } = modelFilters;
  server.route({
    method: 'GET',
    url: '/embeddings/models',
    config: { access: 'public' },
    schema: {
      operationId: 'listEmbeddingModels',
      tags: ['Embeddings'],
      summary: 'Lists the embedding models that can be called.',
      querystring: Type.Object({ ...filters, ...modelPage }),
      response: { 200: ModelList, 304: NotModified, ...errors(400, 500) },
    },
    handler: async (request, reply) => {
      const query = modelQuery({ ...request.query, output_modalities: 'embeddings' }, now());
      return answerModels(request, reply, { listings: listings(), statistics, query, path: '/embeddings/models' });
    },
  });
}
