import Type, { type Static } from 'typebox';
import { GatewayError, invalidField } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { type Parameter, parameters } from '../../schemas/endpoint.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import {
  type Category,
  categories,
  type InputModality,
  inputModalities,
  type OutputModality,
  outputModalities,
  tokenizers,
} from '../../schemas/model.ts';

/** A list of names in a query of models. */
const MODEL_FILTER_CHARS_MAX = 1_000;
const MODEL_AGE_DAYS_MAX = 36_500;
/** Models of one page. */
const MODELS_PAGE_MAX = 1_000;

const list = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: MODEL_FILTER_CHARS_MAX, description }));
const usd = (description: string) =>
  Type.Optional(Type.Number({ minimum: 0, maximum: limits.usd_max, description: `${description}, USD per million.` }));
const days = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: MODEL_AGE_DAYS_MAX, description }));

/** The filters of lists of models (specification, GET /models; public service's API for further ones). */
export const modelFilters = {
  category: Type.Optional(Type.Enum(categories, { description: 'The purpose of the model.' })),
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
  input_modalities: Type.Optional(
    Type.String({
      maxLength: 200,
      description: `Comma-separated; models that accept all of these: ${inputModalities.join(', ')}.`,
    }),
  ),
  q: list('Words that must all be in the id or the name of the model.'),
  context: Type.Optional(
    Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Smallest context length, in tokens.' }),
  ),
  min_price: usd('Lowest price of prompt tokens'),
  max_price: usd('Highest price of prompt tokens'),
  min_output_price: usd('Lowest price of completion tokens'),
  max_output_price: usd('Highest price of completion tokens'),
  arch: list(`Comma-separated families by their tokenizer, such as Claude, Llama or Llama3: ${tokenizers.join(', ')}.`),
  model_authors: list('Comma-separated; the part of the id before the slash.'),
  providers: list('Comma-separated slugs or names of providers; models that one of them serves.'),
  distillable: Type.Optional(
    Type.Enum(['true', 'false'], { description: 'Whether the author is known to allow training on the output.' }),
  ),
  zdr: Type.Optional(
    Type.Literal('true', { description: 'Models with an endpoint whose provider is known to keep no data.' }),
  ),
  min_age_days: days('Smallest age of the model.'),
  max_age_days: days('Largest age of the model.'),
};

export const modelSorts = [
  'newest',
  'pricing-low-to-high',
  'pricing-high-to-low',
  'context-high-to-low',
  'throughput-high-to-low',
  'latency-low-to-high',
] as const;
export type ModelSort = (typeof modelSorts)[number];

/** The order of a list of models, and the page of it. */
export const modelPage = {
  sort: Type.Optional(
    Type.Enum(modelSorts, {
      description:
        'Default: newest. Price: of a prompt and a completion token together. Throughput and latency: medians of the last 30 minutes at this gateway, for callers with an API key. Models without the figure come last.',
    }),
  ),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Models to skip.' })),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MODELS_PAGE_MAX, description: 'Models to return; default: all.' }),
  ),
  after_id: list("Only the models after this one (pages of Anthropic's SDK)."),
  before_id: list('Only the models directly before this one.'),
};
const ModelFilters = Type.Object({ ...modelFilters, ...modelPage });
export type ModelQueryString = Static<typeof ModelFilters>;

/** Filters of the public service that this gateway cannot evaluate. They are refused, since ignoring them would change the answer. */
const unanswerable: Readonly<Record<string, string>> = lookupTable({
  region: 'this gateway does not know in which region an endpoint runs',
  min_tool_success_rate: 'what this gateway measures of tool calls serves routing alone (:exacto)',
  max_tool_success_rate: 'what this gateway measures of tool calls serves routing alone (:exacto)',
  ...Object.fromEntries(
    ['intelligence', 'coding', 'agentic'].flatMap((name) =>
      ['min', 'max'].map((bound) => [`${bound}_${name}_index`, 'this gateway has no benchmark results of models']),
    ),
  ),
});

/** A parsed query for models. */
export interface ModelQuery {
  modalities: readonly OutputModality[];
  parameters: readonly Parameter[];
  category: Category | undefined;
  inputs: readonly InputModality[];
  /** In lower case. */
  words: readonly string[];
  context_min: number | undefined;
  /** USD per million tokens. */
  prompt_usd: Range;
  completion_usd: Range;
  /** In lower case: tokenizers, with or without their number. */
  families: readonly string[];
  authors: readonly string[];
  /** In lower case: slugs or names. */
  providers: readonly string[];
  is_distillable: boolean | undefined;
  zdr: boolean;
  /** Unix seconds. */
  created: Range;
  sort: ModelSort;
  page: ModelPage;
  /** Canonical query strings: `filters` without order and page, `whole` with both. */
  filters: string;
  whole: string;
}

/** The page of a list. */
export interface ModelPage {
  offset: number;
  limit: number | undefined;
  after_id: string | undefined;
  before_id: string | undefined;
}

/** A range with inclusive bounds; undefined: unbounded. */
export interface Range {
  min: number | undefined;
  max: number | undefined;
}

const DAY_S = 86_400;

/** Parses the query of a request. Lists are sorted and without duplicates, so that there are few different queries. Throws a 400. */
export function modelQuery(query: ModelQueryString, nowMs = 0): ModelQuery {
  for (const [field, why] of Object.entries(unanswerable)) {
    if (Object.hasOwn(query, field)) throw invalidField(field, `cannot be used as a filter: ${why}; leave it out`);
  }
  const { category, supported_parameters, output_modalities = 'text', input_modalities, sort = 'newest' } = query;
  const { offset = 0, limit, after_id, before_id } = query;
  if ([after_id, before_id, offset || undefined].filter((value) => value !== undefined).length > 1) {
    throw invalidField('offset', 'cannot be combined with after_id or before_id, nor these with each other: send one');
  }
  // In whole UTC days, so that requests of one day share an answer.
  const today = Math.floor(nowMs / 1000 / DAY_S) * DAY_S;
  const daysAgo = (age: number | undefined, more: number) =>
    age === undefined ? undefined : today + more - age * DAY_S;
  const wanted = {
    modalities:
      output_modalities.trim() === 'all'
        ? outputModalities
        : namesOf('output_modalities', output_modalities, outputModalities, 'all, or '),
    parameters:
      supported_parameters === undefined ? [] : namesOf('supported_parameters', supported_parameters, parameters),
    category,
    inputs: input_modalities === undefined ? [] : namesOf('input_modalities', input_modalities, inputModalities),
    words: [...new Set((query.q ?? '').toLowerCase().split(/\s+/).filter(Boolean))],
    context_min: query.context,
    prompt_usd: { min: query.min_price, max: query.max_price },
    completion_usd: { min: query.min_output_price, max: query.max_output_price },
    families: entriesOf(query.arch),
    authors: entriesOf(query.model_authors),
    providers: entriesOf(query.providers),
    is_distillable: query.distillable === undefined ? undefined : query.distillable === 'true',
    zdr: query.zdr === 'true',
    created: { min: daysAgo(query.max_age_days, 0), max: daysAgo(query.min_age_days, DAY_S - 1) },
  };
  const page = { offset, limit, after_id, before_id };
  const filters = textOf({
    output_modalities: wanted.modalities,
    supported_parameters: wanted.parameters,
    category,
    input_modalities: wanted.inputs,
    q: wanted.words.join(' '),
    context: query.context,
    min_price: query.min_price,
    max_price: query.max_price,
    min_output_price: query.min_output_price,
    max_output_price: query.max_output_price,
    arch: wanted.families,
    model_authors: wanted.authors,
    providers: wanted.providers,
    distillable: query.distillable,
    zdr: query.zdr,
    min_age_days: query.min_age_days,
    max_age_days: query.max_age_days,
  });
  const rest = textOf({
    ...(sort === 'newest' ? {} : { sort }),
    offset: offset || undefined,
    limit,
    after_id,
    before_id,
  });
  return { ...wanted, sort, page, filters, whole: rest === '' ? filters : `${filters}&${rest}` };
}

/** The cache key of answers to this query. It includes the day if the age of models matters. */
export function queryKey({ whole, created }: ModelQuery): string {
  return `${whole};${created.min ?? ''};${created.max ?? ''}`;
}

function textOf(fields: Readonly<Record<string, readonly string[] | string | number | undefined>>): string {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    const written = Array.isArray(value) ? value.join(',') : value;
    if (written !== undefined && written !== '') text.set(name, String(written));
  }
  return text.toString();
}

function entriesOf(text = ''): string[] {
  const entries = text.split(',').map((entry) => entry.trim().toLowerCase());
  return [...new Set(entries.filter((entry) => entry !== ''))].sort();
}

function namesOf<const T extends string>(field: string, text: string, known: readonly T[], or = ''): readonly T[] {
  const names = new Set(text.split(',').map((name) => name.trim()));
  const matches = known.filter((name) => names.delete(name));
  const [unknown] = names;
  if (unknown === undefined) return matches;
  throw new GatewayError(400, `${field} must be ${or}a list of ${known.join(', ')}`, { metadata: { field } });
}
