import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Server } from '../../http/server.ts';
import { tagOf } from '../../routing/candidate.ts';
import type { Counts } from '../../routing/endpoint-bucket.ts';
import type { EndpointStatistics } from '../../routing/endpoint-statistics.ts';
import { type FailingEndpoint as Failing, failingEndpoints } from '../../routing/failing-endpoints.ts';
import type { Health } from '../../routing/health.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import { errors } from '../../schemas/error.ts';
import { FailingEndpoint } from '../../schemas/failing-endpoint.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import { namedModel } from './named-model.ts';

interface Dependencies {
  catalog: () => Catalog;
  routers: () => RouterRules;
  health: Pick<Health, 'condition' | 'failures' | 'coolingUntil'>;
  statistics: Pick<EndpointStatistics, 'counts'>;
  now: () => number;
}

/** Serves `GET /endpoints/failing`. */
export function listFailingEndpoints(server: Server, dependencies: Dependencies): void {
  const { catalog, routers, health, statistics, now } = dependencies;
  server.route({
    method: 'GET',
    url: '/endpoints/failing',
    config: { access: 'any', forMembers: true },
    schema: {
      operationId: 'listFailingEndpoints',
      tags: ['Catalog'],
      summary: 'Lists the endpoints that fail now, or failed in the last day.',
      description:
        "An endpoint is listed while it cools down, until a call of it is answered again, and as long as at least 5 percent of its calls of the last day failed; the most severe first. Calls with the gateway's own accounts count, those with own credentials do not. Calls are counted on all nodes; cool-downs are those of the node that answers.",
      querystring: Type.Object({
        ...PageQuery,
        model: Type.Optional(Type.String({ description: 'Only the endpoints of this model.', maxLength: 256 })),
      }),
      response: { 200: PageOf(FailingEndpoint), ...errors(400, 401, 403, 404, 429, 500) },
    },
    handler: async (request, reply) => {
      reply.header('cache-control', 'private, no-store');
      const source = catalog();
      const { model } = request.query;
      const endpoints =
        model === undefined ? source.endpoints() : namedModel(model, { catalog: source, routers: routers() }).endpoints;
      const failing = failingEndpoints(endpoints, { health, statistics, now_ms: now() });
      const { offset, limit } = pageOf(request.query);
      return {
        data: failing.slice(offset, offset + limit).map((one) => describe(one, source)),
        total_count: failing.length,
      };
    },
  });
}

function describe({ endpoint, tier, ...one }: Failing, catalog: Catalog) {
  return {
    model_id: endpoint.model,
    model_name: catalog.find(endpoint.model)?.name ?? endpoint.model,
    provider_name: catalog.provider(endpoint.provider)?.name ?? endpoint.provider,
    tag: tier === undefined ? endpoint.tag : tagOf({ endpoint, tier }),
    endpoint_id: endpoint.id,
    condition: one.condition,
    last_failure: one.failures?.failure ?? null,
    failing_since: momentOf(one.failures?.since_ms),
    last_failure_at: momentOf(one.failures?.last_ms),
    cooling_down_until: momentOf(one.cooling_until_ms),
    last_30m: callsOf(one.half_hour),
    last_1d: callsOf(one.day),
  };
}

function momentOf(ms = 0): string | null {
  return ms === 0 ? null : new Date(ms).toISOString();
}

function callsOf({ successes, errors: failures, rate_limited }: Counts) {
  return { calls: successes + failures, errors: failures, rate_limited };
}
