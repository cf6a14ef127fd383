import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Catalog } from '../../catalog/catalog.ts';
import { describeEndpoint, type StatisticsOf } from '../../catalog/describe.ts';
import type { Endpoint, Model } from '../../catalog/model.ts';
import { letCachesKeep } from '../../http/cached-answer.ts';
import { healthId } from '../../routing/candidate.ts';
import type { PublicEndpoint } from '../../schemas/endpoint.ts';
import { catalogCacheControl } from './listings.ts';

/** The records of a model's endpoints and of their service tiers. Callers without a credential do not see performance (specification, Public endpoint record). */
export function endpointRecords(
  model: Model,
  endpoints: readonly Endpoint[],
  { catalog, statistics, is_known }: { catalog: Catalog; statistics: StatisticsOf; is_known: boolean },
): PublicEndpoint[] {
  const hidden = is_known ? {} : { latency_last_30m: null, throughput_last_30m: null, samples_last_30m: null };
  return endpoints.flatMap((endpoint) => {
    const providerName = catalog.provider(endpoint.provider)?.name ?? endpoint.provider;
    const tiers = [undefined, ...Object.keys(endpoint.service_tiers ?? {})];
    return tiers.map((tier) => {
      const served = tier === undefined ? {} : { tier };
      const shown = { ...statistics(healthId({ endpoint, ...served })), ...hidden };
      return describeEndpoint(model, endpoint, { provider_name: providerName, ...served, statistics: shown });
    });
  });
}

/** Lets shared caches store a public answer; an answer that depends on the caller is private. */
export function setEndpointCaching({ principal }: FastifyRequest, reply: FastifyReply): void {
  reply.header('vary', 'authorization, x-api-key, api-key');
  if (principal === undefined) letCachesKeep(reply, catalogCacheControl);
  else reply.header('cache-control', 'private, no-cache');
}
