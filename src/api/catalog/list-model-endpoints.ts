import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import type { StatisticsOf } from '../../catalog/describe.ts';
import { describeModelEndpoints } from '../../catalog/describe.ts';
import { sendBytes } from '../../http/cached-answer.ts';
import type { Server } from '../../http/server.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import { errors } from '../../schemas/error.ts';
import { ModelEndpoints } from '../../schemas/model.ts';
import { endpointRecords, setEndpointCaching } from './endpoint-records.ts';
import { jsonContentType, type Listings } from './listings.ts';
import { EscapedModelParams, ModelParams, namedModel } from './named-model.ts';

/** `GET /models/{author}/{slug}/endpoints`: a model by any name that requests can use, with the endpoints that may serve it. */
export function listModelEndpoints(
  server: Server,
  {
    catalog,
    listings,
    routers,
    statistics,
  }: {
    catalog: () => Catalog;
    listings: () => Listings;
    routers: () => RouterRules;
    statistics: StatisticsOf;
  },
): void {
  const schema = {
    tags: ['Catalog'],
    response: { 200: Type.Object({ data: ModelEndpoints }), ...errors(404, 500) },
  };
  const answer = async (name: string, request: FastifyRequest, reply: FastifyReply) => {
    const source = catalog();
    const { model, endpoints } = namedModel(name, { catalog: source, routers: routers() });
    const isKnown = request.principal !== undefined;
    setEndpointCaching(request, reply);
    const places = endpoints.map((endpoint) => model.endpoints.indexOf(endpoint));
    const bytes = await listings().current(`${model.id};${places.join()};${isKnown}`, () => {
      const records = endpointRecords(model, endpoints, { catalog: source, statistics, is_known: isKnown });
      return JSON.stringify({ data: describeModelEndpoints(model, records) });
    });
    return sendBytes(reply, bytes, jsonContentType);
  };
  server.route({
    method: 'GET',
    url: '/models/:author/:slug/endpoints',
    config: { access: 'public' },
    schema: {
      ...schema,
      operationId: 'listModelEndpoints',
      summary: 'Lists the endpoints of a model.',
      params: ModelParams,
    },
    handler: (request, reply) => answer(`${request.params.author}/${request.params.slug}`, request, reply),
  });
  // Some clients escape the slash of the id.
  server.route({
    method: 'GET',
    url: '/models/:model/endpoints',
    config: { access: 'public' },
    schema: { ...schema, params: EscapedModelParams },
    handler: (request, reply) => answer(request.params.model, request, reply),
  });
}
