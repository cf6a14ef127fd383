import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import { describeModelEndpoints } from '../../catalog/describe.ts';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { ModelEndpoints } from '../../schemas/model.ts';
import { catalogCacheControl } from './listings.ts';

/** `GET /models/{author}/{slug}/endpoints`: a model, named by id or canonical slug, with all its endpoints. */
export function listModelEndpoints(server: Server, { catalog }: { catalog: () => Catalog }): void {
  server.route({
    method: 'GET',
    url: '/models/:author/:slug/endpoints',
    config: { access: 'public' },
    schema: {
      operationId: 'listModelEndpoints',
      tags: ['Catalog'],
      summary: 'Lists the endpoints of a model.',
      params: Type.Object({
        author: Type.String({ description: 'Organization of the model.' }),
        slug: Type.String({ description: 'Slug of the model.' }),
      }),
      response: { 200: Type.Object({ data: ModelEndpoints }), ...errors(404, 500) },
    },
    handler: async (request, reply) => {
      const id = `${request.params.author}/${request.params.slug}`;
      const model = catalog().find(id);
      if (model === undefined) throw new GatewayError(404, `Model ${id} does not exist`);
      reply.header('cache-control', catalogCacheControl);
      return { data: describeModelEndpoints(model, catalog()) };
    },
  });
}
