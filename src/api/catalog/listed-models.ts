import type { Catalog } from '../../catalog/catalog.ts';
import { describeModel } from '../../catalog/describe.ts';
import type { Model } from '../../catalog/model.ts';
import { familyOf, latestModels } from '../../routing/families.ts';
import { AUTO, FREE, freeModels, type RouterRules } from '../../routing/router-models.ts';
import type { PublicModel } from '../../schemas/model.ts';

/** A model name that requests can use, with its public record. */
export interface ListedModel {
  model: Model;
  shown: PublicModel;
}

/** All names that requests can use: models, aliases of families, router models. Newest first. */
export function listedModels(catalog: Catalog, routers: RouterRules): ListedModel[] {
  const models = [...catalog.models(), ...aliases(catalog)].map((model) => ({ model, shown: describeModel(model) }));
  return [...models, ...listedRouters(catalog, routers)].sort(
    ({ model: a }, { model: b }) => b.created - a.created || (a.id < b.id ? -1 : 1),
  );
}

/**
 * `~author/family-latest`, for families with several models. A model to which the operator gave this name has priority.
 */
function aliases(catalog: Catalog): Model[] {
  const sizes = Map.groupBy(catalog.models(), ({ id }) => `~${familyOf(id)}-latest`);
  return [...latestModels(catalog.models())].flatMap(([id, model]) =>
    (sizes.get(id)?.length ?? 0) < 2 || catalog.find(id) !== undefined
      ? []
      : {
          ...model,
          id,
          canonical_slug: id,
          name: `${model.name} (latest)`,
          description: `The newest model of its family, at present ${model.id}. ${model.description}`,
          // The alias outlives the model.
          expiration_date: null,
        },
  );
}

/** The configured router models, with the combined capabilities of the models that they choose among. */
export function listedRouters(catalog: Catalog, { auto_models, free_models }: RouterRules): ListedModel[] {
  const known = (ids: readonly string[]) => ids.flatMap((id) => catalog.find(id) ?? []);
  const free = free_models === 'all' ? freeModels(catalog.models()) : known(free_models ?? []);
  const routers = [
    ...listedRouter(
      AUTO,
      'Auto Router',
      'Chooses the first of a list of models that suits a request',
      '-1',
      known(auto_models ?? []),
    ),
    ...listedRouter(FREE, 'Free Router', 'Chooses a model that costs nothing and suits a request', '0', free),
  ];
  return routers.filter(({ model }) => catalog.find(model.id) === undefined);
}

/** Makes the record of a router model. A price of "-1" means that it is not fixed. */
function listedRouter(id: string, name: string, does: string, price: string, among: readonly Model[]): ListedModel[] {
  if (among.length === 0) return [];
  const together = (of: (model: Model) => readonly string[]) => [...new Set(among.flatMap(of))];
  const contexts = among.flatMap(({ context_length }) => context_length ?? []);
  const model: Model = {
    id,
    canonical_slug: id,
    name,
    description: `${does}, of ${among.length}.`,
    created: Math.max(...among.map(({ created }) => created)),
    context_length: contexts.length === 0 ? undefined : Math.max(...contexts),
    input_modalities: together(({ input_modalities }) => input_modalities),
    output_modalities: together(({ output_modalities }) => output_modalities),
    tokenizer: 'Router',
    instruct_type: null,
    knowledge_cutoff: null,
    expiration_date: null,
    model_hub_id: null,
    endpoints: among.flatMap(({ endpoints }) => endpoints),
  };
  const shown: PublicModel = {
    ...describeModel(model),
    pricing: { prompt: price, completion: price },
    top_provider: { is_moderated: false, context_length: null, max_completion_tokens: null },
    per_request_limits: null,
  };
  // A router model has no endpoints of its own.
  return [{ model: { ...model, endpoints: [] }, shown }];
}
