import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import type { StatisticsOf } from '../../catalog/describe.ts';
import { sendBytes } from '../../http/cached-answer.ts';
import type { Server } from '../../http/server.ts';
import { dataPolicyOf } from '../../providers/provider.ts';
import { PublicEndpoint } from '../../schemas/endpoint.ts';
import { errors } from '../../schemas/error.ts';
import { endpointRecords, setEndpointCaching } from './endpoint-records.ts';
import { jsonContentType, type Listings } from './listings.ts';

/** `GET /endpoints/zdr`: the endpoints that are allowed under zero data retention. */
export function listZdrEndpoints(
  server: Server,
  { catalog, listings, statistics }: { catalog: () => Catalog; listings: () => Listings; statistics: StatisticsOf },
): void {
  server.route({
    method: 'GET',
    url: '/endpoints/zdr',
    config: { access: 'public' },
    schema: {
      operationId: 'listZdrEndpoints',
      tags: ['Catalog'],
      summary:
        "Lists the endpoints of providers that are known to keep no data, by the operator's declaration or else by what they publish.",
      response: { 200: Type.Object({ data: Type.Array(PublicEndpoint) }), ...errors(500) },
    },
    handler: async (request, reply) => {
      const source = catalog();
      const isKnown = request.principal !== undefined;
      setEndpointCaching(request, reply);
      const bytes = await listings().current(`zdr;${isKnown}`, () => {
        const data = source.models().flatMap((model) => {
          const kept = model.endpoints.filter((endpoint) => {
            const provider = source.provider(endpoint.provider);
            return provider !== undefined && dataPolicyOf(provider, model, endpoint).retention_days === 0;
          });
          return endpointRecords(model, kept, { catalog: source, statistics, is_known: isKnown });
        });
        return JSON.stringify({ data });
      });
      return sendBytes(reply, bytes, jsonContentType);
    },
  });
}
