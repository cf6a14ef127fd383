import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Server } from '../../http/server.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import { EndpointHealth } from '../../schemas/endpoint-health.ts';
import { errors } from '../../schemas/error.ts';
import { type EndpointDay, HEALTH_DAYS } from '../../storage/endpoint-statistics.ts';
import { ModelParams, namedModel } from './named-model.ts';

const DAY_MS = 86_400_000;
/** Fewer calls say nothing about an endpoint, as in the uptimes of shorter windows. */
const CALLS_MIN = 10;
const ENDPOINTS_MAX = 200;

export interface ListEndpointHealthDependencies {
  catalog: () => Catalog;
  routers: () => RouterRules;
  days: (endpointIds: readonly string[], from: number) => Promise<EndpointDay[]>;
  now: () => number;
}

/** Serves `GET /models/{author}/{slug}/endpoints/health`. */
export function listEndpointHealth(server: Server, dependencies: ListEndpointHealthDependencies): void {
  const { catalog, routers, days, now } = dependencies;
  server.route({
    method: 'GET',
    url: '/models/:author/:slug/endpoints/health',
    config: { access: 'any', forMembers: true },
    schema: {
      operationId: 'listEndpointHealth',
      tags: ['Catalog'],
      summary: `Lists the uptime of a model's endpoints on each of the last ${HEALTH_DAYS} UTC days.`,
      description:
        "The calls with the gateway's own accounts, on all nodes. Today is counted up to the last minutes. Days without a call are not listed.",
      params: ModelParams,
      response: { 200: Type.Object({ data: Type.Array(EndpointHealth) }), ...errors(401, 403, 404, 429, 500) },
    },
    handler: async (request, reply) => {
      reply.header('cache-control', 'private, no-store');
      const source = catalog();
      const name = `${request.params.author}/${request.params.slug}`;
      const endpoints = namedModel(name, { catalog: source, routers: routers() }).endpoints.slice(0, ENDPOINTS_MAX);
      const from = Math.floor(now() / DAY_MS) - HEALTH_DAYS + 1;
      const rows = await days(
        endpoints.map(({ id }) => id),
        from,
      );
      return {
        data: endpoints.map((endpoint) => ({
          tag: endpoint.tag,
          provider_name: source.provider(endpoint.provider)?.name ?? endpoint.provider,
          days: rows
            .filter(({ endpoint_id }) => endpoint_id === endpoint.id)
            .map(({ day, successes, errors: failures, rate_limited }) => ({
              date: new Date(day * DAY_MS).toISOString().slice(0, 10),
              calls: successes + failures,
              errors: failures,
              rate_limited,
              uptime: successes + failures < CALLS_MIN ? null : (successes / (successes + failures)) * 100,
            })),
        })),
      };
    },
  });
}
