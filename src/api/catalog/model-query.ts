import Type, { type Static } from 'typebox';
import type { Model } from '../../catalog/model.ts';
import { GatewayError } from '../../errors.ts';
import { type Parameter, parameters } from '../../schemas/endpoint.ts';
import { type Category, categories, type OutputModality, outputModalities } from '../../schemas/model.ts';

/** The filters that lists of models share (specification, GET /models). */
export const modelFilters = {
  category: Type.Optional(Type.Enum(categories, { description: 'What the model is good for.' })),
  supported_parameters: Type.Optional(
    Type.String({
      maxLength: 1_000,
      description: `Comma-separated; models that support all of them: ${parameters.join(', ')}.`,
    }),
  ),
  output_modalities: Type.Optional(
    Type.String({
      maxLength: 200,
      description: `Comma-separated; models with one of these: ${outputModalities.join(', ')}, or all. Default: text.`,
    }),
  ),
};
const ModelFilters = Type.Object(modelFilters);

/** Which models are wanted. */
export interface ModelQuery {
  modalities: readonly OutputModality[];
  parameters: readonly Parameter[];
  category: Category | undefined;
}

/** Reads the filters of a request; each list has its names once and in a fixed order, so that there are few different queries. Throws a 400. */
export function modelQuery(query: Static<typeof ModelFilters>): ModelQuery {
  const { category, supported_parameters, output_modalities = 'text' } = query;
  return {
    category,
    parameters:
      supported_parameters === undefined ? [] : namesOf('supported_parameters', supported_parameters, parameters),
    modalities:
      output_modalities.trim() === 'all'
        ? outputModalities
        : namesOf('output_modalities', output_modalities, outputModalities, 'all, or '),
  };
}

/** One text for each query that asks for the same. */
export function queryKey({ modalities, parameters, category }: ModelQuery): string {
  return `${modalities.join(',')};${parameters.join(',')};${category ?? ''}`;
}

/** Whether a model is wanted, which supports `supported` at one endpoint or another. */
export function isWanted(model: Model, supported: readonly string[], query: ModelQuery): boolean {
  return (
    query.modalities.some((modality) => model.output_modalities.includes(modality)) &&
    query.parameters.every((name) => supported.includes(name)) &&
    (query.category === undefined || (model.categories ?? []).includes(query.category))
  );
}

function namesOf<const T extends string>(field: string, text: string, known: readonly T[], or = ''): readonly T[] {
  const names = new Set(text.split(',').map((name) => name.trim()));
  const found = known.filter((name) => names.delete(name));
  const [unknown] = names;
  if (unknown === undefined) return found;
  throw new GatewayError(400, `${field} must be ${or}a list of ${known.join(', ')}`, { metadata: { field } });
}
