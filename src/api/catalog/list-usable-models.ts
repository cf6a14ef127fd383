import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import { describeModel, type StatisticsOf } from '../../catalog/describe.ts';
import type { Model } from '../../catalog/model.ts';
import { claimOf } from '../../http/bounded-bodies.ts';
import { sendBytes } from '../../http/cached-answer.ts';
import { oneAtATime } from '../../http/one-at-a-time.ts';
import type { Principal } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import type { StoreWait } from '../../http/store-wait.ts';
import { nextTurn } from '../../next-turn.ts';
import type { OwnCredential } from '../../routing/own-credential.ts';
import { errors } from '../../schemas/error.ts';
import { besides, jsonContentType } from './listings.ts';
import { ModelList } from './model-list.ts';
import { type ModelQuery, modelFilters, modelPage, modelQuery, queryKey } from './model-query.ts';
import { factsOf, type ModelFacts, matchesQuery, paged, sorted } from './model-selection.ts';
import { retrieved } from './retrieve-model.ts';
import { exclusionReasons, usable } from './usable-models.ts';

/** Models that are evaluated for a key in one turn of the event loop. */
const USABLE_MODELS_AT_ONCE = 100;

const ExcludedModel = Type.Object(
  {
    id: Type.String(),
    canonical_slug: Type.String(),
    name: Type.String(),
    reasons: Type.Array(
      Type.Object({
        reason: Type.Enum(exclusionReasons),
        detail: Type.String(),
        guardrail_id: Type.Union([Type.String(), Type.Null()], { description: 'The guardrail that excludes it.' }),
        endpoints: Type.Array(Type.String(), { description: 'Tags of the endpoints to which it applies.' }),
      }),
    ),
  },
  { title: 'ExcludedModel' },
);

/** Identifies requests that get the same answer at one moment. */
function nameOf({ organization_id, workspace_id, user_id, key_hash }: Principal, query: ModelQuery): string {
  return [organization_id, workspace_id, user_id, key_hash, queryKey(query)].join(' ');
}

export interface UsableModelsDependencies {
  wholeCatalog: () => Catalog;
  ownCredentials(
    principal: Principal,
    storeWait: StoreWait | undefined,
  ): readonly OwnCredential[] | Promise<readonly OwnCredential[]>;
  allow_unpriced: boolean;
  statistics: StatisticsOf;
  now(): number;
}

/**
 * `GET /models/user`: the models that the caller's key may use, with data of the endpoints that it may use, and every other model with the
 * reason why the key may not use it.
 */
export function listUsableModels(server: Server, dependencies: UsableModelsDependencies): void {
  const { wholeCatalog, ownCredentials, allow_unpriced, statistics, now } = dependencies;
  // It takes tens of milliseconds: only one runs at a time.
  const inTurn = oneAtATime<Buffer>();

  async function listFor(principal: Principal, query: ModelQuery, storeWait: StoreWait | undefined): Promise<Buffer> {
    const catalog = wholeCatalog();
    const caller = {
      guardrails: principal.guardrails,
      own: await ownCredentials(principal, storeWait),
      user: principal,
      allow_unpriced,
    };
    const usableModels: { model: Model; facts: ModelFacts; json: string }[] = [];
    const leftOut: string[] = [];
    for (const [at, model] of catalog.models().entries()) {
      if (at % USABLE_MODELS_AT_ONCE === 0) await nextTurn();
      const { endpoints, excluded: reasons } = usable(model, catalog, caller);
      const may = endpoints.length > 0;
      const seen = may ? { ...model, endpoints } : model;
      const shown = describeModel(seen);
      const facts = factsOf(shown);
      if (!matchesQuery(seen, facts, query, catalog)) continue;
      const { id, canonical_slug, name } = model;
      if (may) usableModels.push({ model: seen, facts, json: JSON.stringify(retrieved(shown)) });
      else leftOut.push(JSON.stringify({ id, canonical_slug, name, reasons }));
    }
    const page = paged(sorted(usableModels, query.sort, statistics), query.page, ({ model }) => model.id);
    const models = page.models.map(({ model }) => model);
    const rest = JSON.stringify(besides({ ...page, models }, '/models/user', query)).slice(1, -1);
    const data = page.models.map(({ json }) => json).join(',');
    const { offset, after_id, before_id } = query.page;
    const isFirst = offset === 0 && after_id === undefined && before_id === undefined;
    return Buffer.from(`{"data":[${data}],${rest},"excluded":[${isFirst ? leftOut.join(',') : ''}]}`);
  }

  server.route({
    method: 'GET',
    url: '/models/user',
    config: { access: 'any', forMembers: true, shared: true },
    schema: {
      operationId: 'listUsableModels',
      tags: ['Catalog'],
      summary: 'Lists the models that this key may use, and the reasons against the others.',
      querystring: Type.Object({ ...modelFilters, ...modelPage }),
      response: {
        200: Type.Object({
          ...ModelList.properties,
          excluded: Type.Array(ExcludedModel, {
            description: 'The models that the key may not use; on the first page only.',
          }),
        }),
        ...errors(400, 401, 500),
      },
    },
    handler: async (request, reply) => {
      // The default is all modalities, not only text.
      const query = modelQuery({ output_modalities: 'all', ...request.query }, now());
      const principal = request.principal as Principal;
      const body = await inTurn(nameOf(principal, query), () => listFor(principal, query, request.store_wait));
      reply.header('cache-control', 'private, no-cache').header('vary', 'authorization, x-api-key, api-key');
      await claimOf(request)?.take(body.byteLength);
      return sendBytes(reply, body, jsonContentType);
    },
  });
}
