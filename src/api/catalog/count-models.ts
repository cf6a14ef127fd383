import Type from 'typebox';
import { NotModified, sendCached } from '../../http/cached-answer.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { catalogCacheControl, jsonContentType, type Listings } from './listings.ts';
import { modelFilters, modelQuery, queryKey } from './model-query.ts';

/** `GET /models/count`: the number of models that `GET /models` lists for the same filters. */
export function countModels(
  server: Server,
  { listings: current, now }: { listings: () => Listings; now: () => number },
): void {
  server.route({
    method: 'GET',
    url: '/models/count',
    config: { access: 'public' },
    schema: {
      operationId: 'countModels',
      tags: ['Catalog'],
      summary: 'Counts the models that can be called.',
      querystring: Type.Object(modelFilters),
      response: {
        200: Type.Object({ data: Type.Object({ count: Type.Integer() }) }),
        304: NotModified,
        ...errors(400, 500),
      },
    },
    handler: async (request, reply) => {
      const query = modelQuery(request.query, now());
      const listings = current();
      const answer = listings.answer(`count;${queryKey(query)}`, () => ({
        text: JSON.stringify({ data: { count: listings.models(query).length } }),
        content_type: jsonContentType,
      }));
      return sendCached(request, reply, answer, catalogCacheControl);
    },
  });
}
