import type { Catalog } from '../../catalog/catalog.ts';
import type { StatisticsOf } from '../../catalog/describe.ts';
import type { Endpoint, Model } from '../../catalog/model.ts';
import { invalidField } from '../../errors.ts';
import { dataPolicyOf } from '../../providers/provider.ts';
import { healthId } from '../../routing/candidate.ts';
import type { PublicModel } from '../../schemas/model.ts';
import type { ModelPage, ModelQuery, ModelSort, Range } from './model-query.ts';

/** The facts about a model that queries filter by. */
export interface ModelFacts {
  supported_parameters: readonly string[];
  /** USD per million tokens; undefined if unknown or not fixed. */
  prompt_usd: number | undefined;
  completion_usd: number | undefined;
}

/** The facts in a record, whose prices are per token as text. A negative price is not fixed. */
export function factsOf({ supported_parameters, pricing }: PublicModel): ModelFacts {
  const perMillion = (text: string) => (text.startsWith('-') ? undefined : Math.round(Number(text) * 1e12) / 1e6);
  return {
    supported_parameters,
    prompt_usd: perMillion(pricing.prompt),
    completion_usd: perMillion(pricing.completion),
  };
}

const isWithin = (value: number | undefined, { min, max }: Range) =>
  (min === undefined && max === undefined) ||
  (value !== undefined && (min === undefined || value >= min) && (max === undefined || value <= max));

/** Whether a model matches a query. An unknown fact does not match. */
export function matchesQuery(
  model: Model,
  { supported_parameters, prompt_usd, completion_usd }: ModelFacts,
  query: ModelQuery,
  catalog: Pick<Catalog, 'provider'>,
): boolean {
  const text = query.words.length === 0 ? '' : `${model.id} ${model.canonical_slug} ${model.name}`.toLowerCase();
  return (
    query.modalities.some((modality) => model.output_modalities.includes(modality)) &&
    query.parameters.every((name) => supported_parameters.includes(name)) &&
    (query.category === undefined || (model.categories ?? []).includes(query.category)) &&
    query.inputs.every((modality) => model.input_modalities.includes(modality)) &&
    query.words.every((word) => text.includes(word)) &&
    (query.context_min === undefined || (model.context_length ?? 0) >= query.context_min) &&
    isWithin(prompt_usd, query.prompt_usd) &&
    isWithin(completion_usd, query.completion_usd) &&
    (query.families.length === 0 || isOfFamily(model.tokenizer.toLowerCase(), query.families)) &&
    (query.authors.length === 0 || query.authors.includes(authorOf(model))) &&
    (query.is_distillable === undefined || (model.is_distillable === true) === query.is_distillable) &&
    isWithin(model.created, query.created) &&
    (query.providers.length === 0 || model.endpoints.some((endpoint) => isNamed(endpoint, query.providers, catalog))) &&
    (!query.zdr || model.endpoints.some((endpoint) => keepsNothing(model, endpoint, catalog)))
  );
}

const isOfFamily = (tokenizer: string, families: readonly string[]) =>
  families.includes(tokenizer) || families.includes(tokenizer.replace(/\d$/, ''));

const authorOf = ({ id }: Model) => id.slice(0, id.indexOf('/')).replace(/^~/, '').toLowerCase();

function isNamed({ provider }: Endpoint, names: readonly string[], catalog: Pick<Catalog, 'provider'>): boolean {
  return (
    names.includes(provider.toLowerCase()) || names.includes(catalog.provider(provider)?.name.toLowerCase() ?? provider)
  );
}

function keepsNothing(model: Model, endpoint: Endpoint, catalog: Pick<Catalog, 'provider'>): boolean {
  const provider = catalog.provider(endpoint.provider);
  return provider !== undefined && dataPolicyOf(provider, model, endpoint).retention_days === 0;
}

/** A listed model with the facts that it is sorted by. */
interface Listed {
  model: Model;
  facts: ModelFacts;
}

/** Whether an order depends on performance, which changes every minute. */
export function isByPerformance(sort: ModelSort): boolean {
  return sort === 'throughput-high-to-low' || sort === 'latency-low-to-high';
}

/** The list in the requested order: ascending by the figure of the sort; models without the figure are last, in their former order. */
export function sorted<T extends Listed>(
  listed: readonly T[],
  sort: ModelSort,
  statistics: StatisticsOf,
): readonly T[] {
  if (sort === 'newest') return listed;
  const figures = listed.map((model) => ({ model, figure: figureOf(model, sort, statistics) }));
  return figures.sort((a, b) => compare(a.figure, b.figure)).map(({ model }) => model);
}

function compare(a: number | undefined, b: number | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  return a - b;
}

function figureOf({ model, facts }: Listed, sort: ModelSort, statistics: StatisticsOf): number | undefined {
  const { prompt_usd, completion_usd } = facts;
  const price = prompt_usd === undefined || completion_usd === undefined ? undefined : prompt_usd + completion_usd;
  switch (sort) {
    case 'newest':
      return -model.created;
    case 'pricing-low-to-high':
      return price;
    case 'pricing-high-to-low':
      return price === undefined ? undefined : -price;
    case 'context-high-to-low':
      return model.context_length === undefined ? undefined : -model.context_length;
    case 'latency-low-to-high':
      return least(model, (id) => statistics(id).latency_last_30m?.p50);
    case 'throughput-high-to-low':
      return least(model, (id) => {
        const median = statistics(id).throughput_last_30m?.p50;
        return median === undefined ? undefined : -median;
      });
  }
}

/** The least of a figure that a model's endpoints have. */
function least({ endpoints }: Model, of: (healthId: string) => number | undefined): number | undefined {
  const known = endpoints.flatMap((endpoint) => of(healthId({ endpoint })) ?? []);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** A page of a list of models, and its position. */
export interface PagedModels<T> {
  models: readonly T[];
  total_count: number;
  /** Offset of the next page; undefined if there is none. */
  next_offset: number | undefined;
  /** Whether there are more in the direction of reading. */
  has_more: boolean;
}

/** The requested page. Throws a 400 if it names a model that is not in the list. */
export function paged<T>(listed: readonly T[], page: ModelPage, idOf: (one: T) => string): PagedModels<T> {
  const { offset, limit = listed.length, after_id, before_id } = page;
  const placeOf = (field: string, id: string) => {
    const place = listed.findIndex((one) => idOf(one) === id);
    if (place === -1) throw invalidField(field, 'must be the id of a model of this list');
    return place;
  };
  const end = before_id === undefined ? listed.length : placeOf('before_id', before_id);
  const start =
    after_id !== undefined
      ? placeOf('after_id', after_id) + 1
      : before_id !== undefined
        ? Math.max(0, end - limit)
        : offset;
  const models = listed.slice(start, Math.min(end, start + limit));
  const next = start + models.length;
  const isLast = models.length === 0 || next >= listed.length;
  const hasMore = before_id === undefined ? !isLast : start > 0;
  return { models, total_count: listed.length, next_offset: isLast ? undefined : next, has_more: hasMore };
}
