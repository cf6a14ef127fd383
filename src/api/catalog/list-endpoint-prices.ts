import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import { pricingText } from '../../catalog/describe.ts';
import type { EndpointPrices, PriceList } from '../../catalog/model.ts';
import { changedPrices } from '../../catalog/price-history.ts';
import { invalidField } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import { EndpointPrice } from '../../schemas/endpoint-price.ts';
import { errors } from '../../schemas/error.ts';
import { NextCursor } from '../../schemas/generation-list.ts';
import { PageQuery, pageOf } from '../../schemas/page.ts';
import {
  type EndpointPriceStore,
  type ListedPrices,
  PRICES_OF_ENDPOINT_MAX,
  type PricePlace,
} from '../../storage/endpoint-prices.ts';
import { ModelParams, namedModel } from './named-model.ts';

const ENDPOINTS_MAX = 200;

interface Dependencies {
  catalog: () => Catalog;
  routers: () => RouterRules;
  prices: EndpointPriceStore['list'];
}

/** Serves `GET /models/{author}/{slug}/endpoints/prices`. */
export function listEndpointPrices(server: Server, { catalog, routers, prices }: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/models/:author/:slug/endpoints/prices',
    config: { access: 'any', forMembers: true },
    schema: {
      operationId: 'listEndpointPrices',
      tags: ['Catalog'],
      summary: "Lists the prices of a model's endpoints over time, the newest first.",
      description: `The gateway records prices when it starts, when a reload changes them, and when a dated price comes into force. The last ${PRICES_OF_ENDPOINT_MAX} prices of each endpoint are kept.`,
      params: ModelParams,
      querystring: Type.Object({
        limit: PageQuery.limit,
        cursor: Type.Optional(Type.String({ description: '`next_cursor` of the page before.', maxLength: 1_000 })),
      }),
      response: {
        200: Type.Object({ data: Type.Array(EndpointPrice), next_cursor: NextCursor }),
        ...errors(400, 401, 403, 404, 429, 500),
      },
    },
    handler: async (request, reply) => {
      reply.header('cache-control', 'private, no-store');
      const source = catalog();
      const name = `${request.params.author}/${request.params.slug}`;
      const { model } = namedModel(name, { catalog: source, routers: routers() });
      const endpoints = new Map(model.endpoints.slice(0, ENDPOINTS_MAX).map((endpoint) => [endpoint.id, endpoint]));
      const { limit } = pageOf(request.query);
      const after = placeOf(request.query.cursor);
      // One more than the page shows whether there is a next one.
      const rows = await prices([...endpoints.keys()], { limit: limit + 1, after });
      const page = rows.slice(0, limit);
      return {
        data: page.flatMap((row) => {
          const endpoint = endpoints.get(row.endpoint_id);
          if (endpoint === undefined) return [];
          const providerName = source.provider(endpoint.provider)?.name ?? endpoint.provider;
          return [{ tag: endpoint.tag, provider_name: providerName, ...describe(row) }];
        }),
        next_cursor: rows.length > limit ? cursorOf(page.at(-1)) : null,
      };
    },
  });
}

function describe({ from_ms: fromMs, until_ms: untilMs, prices, prices_before: before }: ListedPrices) {
  const known = JSON.parse(prices) as EndpointPrices;
  const tiers = Object.entries(known.service_tiers ?? {}).map(([name, list]) => [name, describeList(list)]);
  return {
    from: new Date(fromMs).toISOString(),
    until: untilMs === null ? null : new Date(untilMs).toISOString(),
    changed: before === null ? null : changedPrices(before, prices),
    ...describeList(known),
    service_tiers: Object.fromEntries(tiers) as Record<string, ReturnType<typeof describeList>>,
  };
}

function describeList({ pricing, price_tiers: tiers = [] }: PriceList) {
  return {
    pricing: pricingText(pricing),
    price_tiers: tiers.map(({ prompt_tokens_over, price }) => ({ prompt_tokens_over, pricing: pricingText(price) })),
  };
}

function cursorOf(place: PricePlace | undefined): string | null {
  if (place === undefined) return null;
  return Buffer.from(`${place.from_ms} ${place.seq} ${place.endpoint_id}`).toString('base64url');
}

/** The inverse of `cursorOf`; a 400 for any other text. */
function placeOf(cursor: string | undefined): PricePlace | undefined {
  if (cursor === undefined) return undefined;
  const match = /^(\d{1,15}) (\d{1,15}) ([^\0]+)$/.exec(Buffer.from(cursor, 'base64url').toString());
  const [, fromMs = '', seq = '', endpointId = ''] = match ?? [];
  const place = { from_ms: Number(fromMs), seq: Number(seq), endpoint_id: endpointId };
  if (match === null || cursorOf(place) !== cursor) {
    throw invalidField('cursor', 'must be `next_cursor` of an earlier page');
  }
  return place;
}
