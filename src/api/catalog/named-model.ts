import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import { describeModel } from '../../catalog/describe.ts';
import type { Endpoint, Model } from '../../catalog/model.ts';
import { GatewayError } from '../../errors.ts';
import { latestModels } from '../../routing/families.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import { isFree } from '../../routing/rules.ts';
import { resolveVariant, variantOf } from '../../routing/variants.ts';
import type { PublicModel } from '../../schemas/model.ts';
import { listedRouters } from './listed-models.ts';

/** The path of one model. */
export const ModelParams = Type.Object({
  author: Type.String({ description: 'Organization of the model.' }),
  slug: Type.String({ description: 'Slug of the model, plain or dated, with suffixes such as `:free`.' }),
});

/** The same path with the slash of the id escaped as `%2F`. */
export const EscapedModelParams = Type.Object({
  model: Type.String({ description: 'Id of the model, plain or dated, with suffixes such as `:free`.' }),
});

/** A model by a name, with the endpoints that the name allows, and its record. */
export interface NamedModel {
  model: Model;
  endpoints: readonly Endpoint[];
  shown: PublicModel;
}

/**
 * The model that a path names, by any name that requests can use: id, dated slug or `~author/family-latest`, with suffixes, or a router
 * model. Throws a 404 if there is none, or a suffix excludes all its endpoints.
 */
export function namedModel(name: string, { catalog, routers }: { catalog: Catalog; routers: RouterRules }): NamedModel {
  const router = listedRouters(catalog, routers).find(({ model }) => model.id === name);
  if (router !== undefined) return { ...router, endpoints: [] };
  const latest = latestModels(catalog.models());
  const variant = resolveVariant(name, (id) => catalog.find(id) ?? latest.get(id));
  if (variant === undefined) throw new GatewayError(404, `Model ${name} does not exist`);
  const { model, suffixes } = variant;
  const rules = variantOf(suffixes);
  const longest = Math.max(...model.endpoints.map(({ context_length }) => context_length ?? 0));
  const endpoints = model.endpoints.filter(
    ({ pricing, context_length }) =>
      (rules?.free !== true || isFree(pricing)) && (rules?.extended !== true || (context_length ?? 0) === longest),
  );
  const isRetired = suffixes.includes('batch') || (endpoints.length === 0 && model.endpoints.length > 0);
  if (isRetired) throw new GatewayError(404, `Model ${model.id} has no endpoint for ${name}`);
  return { model, endpoints, shown: describeModel({ ...model, endpoints }) };
}
