import { setImmediate as turn } from 'node:timers/promises';
import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import { describeModel } from '../../catalog/describe.ts';
import type { Principal } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import type { StoreWait } from '../../http/store-wait.ts';
import { limits } from '../../limits.ts';
import type { OwnCredential } from '../../routing/own-credential.ts';
import { errors } from '../../schemas/error.ts';
import { ModelList } from './list-models.ts';
import { onePage } from './listings.ts';
import { isWanted, modelFilters, modelQuery } from './model-query.ts';
import { retrieved } from './retrieve-model.ts';
import { exclusionReasons, usable } from './usable-models.ts';

const ExcludedModel = Type.Object(
  {
    id: Type.String(),
    canonical_slug: Type.String(),
    name: Type.String(),
    reasons: Type.Array(
      Type.Object({
        reason: Type.Enum(exclusionReasons),
        detail: Type.String(),
        guardrail_id: Type.Union([Type.String(), Type.Null()], { description: 'The guardrail that leaves it out.' }),
        endpoints: Type.Array(Type.String(), { description: 'Tags of the endpoints that it holds for.' }),
      }),
    ),
  },
  { title: 'ExcludedModel' },
);

export interface UsableModelsDependencies {
  wholeCatalog: () => Catalog;
  ownCredentials(
    principal: Principal,
    store_wait: StoreWait | undefined,
  ): readonly OwnCredential[] | Promise<readonly OwnCredential[]>;
  allow_unpriced: boolean;
}

/**
 * `GET /models/user`: what the caller's key may use, with the figures of the endpoints that it may use, and every other model
 * with what keeps it from the key.
 */
export function listUsableModels(server: Server, dependencies: UsableModelsDependencies): void {
  const { wholeCatalog, ownCredentials, allow_unpriced } = dependencies;
  server.route({
    method: 'GET',
    url: '/models/user',
    config: { access: 'any' },
    schema: {
      operationId: 'listUsableModels',
      tags: ['Catalog'],
      summary: 'Lists the models that this key may use, and why not the others.',
      querystring: Type.Object(modelFilters),
      response: {
        200: Type.Object({
          ...ModelList.properties,
          excluded: Type.Array(ExcludedModel, { description: 'The models that the key may not use.' }),
        }),
        ...errors(400, 401, 500),
      },
    },
    handler: async (request, reply) => {
      // Whoever asks what a key may do wants all of it, not what writes text alone.
      const query = modelQuery({ output_modalities: 'all', ...request.query });
      const principal = request.principal as Principal;
      const catalog = wholeCatalog();
      const caller = {
        guardrails: principal.guardrails,
        own: await ownCredentials(principal, request.store_wait),
        user: principal,
        allow_unpriced,
      };
      const wanted = [];
      for (const [at, model] of catalog.models().entries()) {
        // A large catalog takes tens of milliseconds, in which streams must go on.
        if (at % limits.usable_models_at_once === 0) await turn();
        const { endpoints, excluded } = usable(model, catalog, caller);
        const shown = describeModel(endpoints.length === 0 ? model : { ...model, endpoints });
        if (!isWanted(model, shown.supported_parameters, query)) continue;
        wanted.push({ model, shown, reasons: [...excluded], may: endpoints.length > 0 });
      }
      reply.header('cache-control', 'private, no-cache').header('vary', 'authorization, x-api-key');
      const data = wanted.flatMap(({ may, shown }) => (may ? retrieved(shown) : []));
      return {
        data,
        ...onePage(data),
        excluded: wanted.flatMap(({ may, model: { id, canonical_slug, name }, reasons }) =>
          may ? [] : { id, canonical_slug, name, reasons },
        ),
      };
    },
  });
}
