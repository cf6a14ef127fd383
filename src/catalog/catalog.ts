import { dialectOf, dialects } from '../providers/dialects.ts';
import type { Provider } from '../providers/provider.ts';
import type { Quirks } from '../providers/quirks.ts';
import { type ProviderRow, providerRow } from '../providers/table.ts';
import { type EndpointParameter, samplingParameters } from '../schemas/endpoint.ts';
import type { Wire } from '../schemas/inner.ts';
import type { Category } from '../schemas/model.ts';
import type { Prices } from '../schemas/prices.ts';
import type { Ability, BundledCatalog, BundledEndpoint, BundledModel } from './bundled.ts';
import { categoriesOf } from './categories.ts';
import { isDistillable } from './distillable.ts';
import { expiresAt } from './expiry.ts';
import type { DatedPrices, Endpoint, Model } from './model.ts';
import { nativeParameters } from './native-tools.ts';
import { declaredPrices, pricesAt } from './price-list.ts';
import { endpointOfTranscripts, transcribes } from './transcripts.ts';
import { endpointOfVectors, makesVectors } from './vectors.ts';

/** An endpoint as declared by an operator. */
export interface DeclaredEndpoint extends Partial<DatedPrices> {
  provider: string;
  /** The part of the tag after the slash, which distinguishes endpoints of one provider. */
  variant?: string;
  upstream_model: string;
  /** Default: the provider's. */
  dialect?: Wire;
  context_length?: number;
  max_completion_tokens?: number;
  max_prompt_tokens?: number;
  /** Default: all. */
  supported_parameters?: readonly string[];
  quantization?: string;
  supports_implicit_caching?: boolean;
  quirks?: Quirks;
}

/** A model as declared by an operator: new, or merged over the bundled one with the same id. */
export interface DeclaredModel {
  id: string;
  canonical_slug?: string;
  name?: string;
  description?: string;
  /** Unix seconds. */
  created?: number;
  context_length?: number;
  input_modalities?: readonly string[];
  output_modalities?: readonly string[];
  tokenizer?: string;
  knowledge_cutoff?: string;
  expiration_date?: string;
  model_hub_id?: string;
  /** Whether others may train on its output. Default: as far as its licence is known. */
  distillable?: boolean;
  /** Default: derived from its name. */
  categories?: readonly Category[];
  endpoints?: readonly DeclaredEndpoint[];
}

export interface CatalogSources {
  bundled: BundledCatalog;
  config: { bundled_catalog: boolean; models: readonly DeclaredModel[] };
  /** The enabled providers. Endpoints of others are left out. */
  providers: readonly Provider[];
  /** Unix seconds: the creation date of declared models without one. */
  created_default: number;
  /** Quirks that a model's name implies; they override the provider's quirks. */
  modelQuirks?: (dialect: Wire, upstreamModel: string) => Quirks;
  /** Ids of models that local servers list. Default: none. */
  discovered?: readonly string[];
  /** See `Catalog.unserved`. Not set if unknown. */
  unserved?: (id: string) => string | undefined;
}

/** Models and their endpoints at the enabled providers. Immutable. */
export interface Catalog {
  /** By id or canonical slug, case-sensitive, in one look-up. */
  find(id: string): Model | undefined;
  /** All models with at least one endpoint, newest first. */
  models(): readonly Model[];
  endpoints(): readonly Endpoint[];
  /** By slug or display name, ignoring case. */
  provider(slugOrName: string): Provider | undefined;
  providers(): readonly Provider[];
  /** How to enable a known model that no enabled provider serves; undefined for any other name. */
  unserved(id: string): string | undefined;
  /** The catalog at this time: prices in force, and expired models. Returns the same object as long as nothing of that changes. */
  at(nowMs: number): Catalog;
}

/** Merges declared over bundled models, and keeps those that an enabled provider can serve. Pure. */
export function buildCatalog(sources: CatalogSources): Catalog {
  const providers = new Map(sources.providers.map((provider) => [provider.slug, provider]));
  const bundledModels = sources.config.bundled_catalog ? sources.bundled.models : [];
  const bundled = new Map(bundledModels.map((model) => [model.id, model]));
  const byUpstream = new Map(
    bundledModels.flatMap(({ endpoints }) => endpoints.map((fact) => [`${fact.provider} ${fact.model}`, fact])),
  );
  const declared = new Map(sources.config.models.map((model) => [model.id, model]));

  const models: Model[] = [];
  for (const id of new Set([...bundled.keys(), ...declared.keys()])) {
    const model = mergeModel(id, bundled.get(id), declared.get(id), { ...sources, providers, byUpstream });
    if (model.endpoints.length > 0) models.push(model);
  }
  for (const id of sources.discovered ?? []) {
    const model = models.some((one) => one.id === id) ? undefined : anyModel(id, providers, sources.created_default);
    if (model !== undefined) models.push({ ...model, is_discovered: true });
  }
  models.sort((a, b) => b.created - a.created || (a.id < b.id ? -1 : 1));

  const byName = new Map<string, Provider>();
  for (const provider of sources.providers) byName.set(provider.name.toLowerCase(), provider);
  for (const provider of sources.providers) byName.set(provider.slug.toLowerCase(), provider);

  const createView = (models: readonly Model[]): Omit<Catalog, 'at'> => {
    const byId = new Map<string, Model>();
    for (const model of models) if (!byId.has(model.canonical_slug)) byId.set(model.canonical_slug, model);
    for (const model of models) byId.set(model.id, model);
    const endpoints = models.flatMap((model) => model.endpoints);
    return {
      find: (id) => byId.get(id) ?? anyModel(id, providers, sources.created_default),
      models: () => models,
      endpoints: () => endpoints,
      // Endpoints have the provider's slug as configured; clients may use any case.
      provider: (slugOrName) => byName.get(slugOrName) ?? byName.get(slugOrName.toLowerCase()),
      providers: () => sources.providers,
      unserved: (id) => sources.unserved?.(id),
    };
  };
  return dated(models, createView);
}

/** A catalog for each period between price changes and expirations. Only the last requested one is cached. */
function dated(models: readonly Model[], createView: (models: readonly Model[]) => Omit<Catalog, 'at'>): Catalog {
  const changes = models.flatMap(({ endpoints }) =>
    endpoints.flatMap(({ price_changes: priceChanges = [] }) => priceChanges),
  );
  const ends = models.flatMap(({ expiration_date: expirationDate }) =>
    expirationDate === null ? [] : [expiresAt(expirationDate)],
  );
  const moments = [...new Set([...changes.map(({ from_ms: fromMs }) => fromMs), ...ends])].sort((a, b) => a - b);
  const at = (nowMs: number): Catalog => {
    if (cached.from_ms <= nowMs && nowMs < cached.until_ms) return cached.catalog;
    const lastPassed = moments.findLastIndex((moment) => moment <= nowMs);
    let catalog = first;
    if (lastPassed !== -1) {
      const repriced = models.map((model) => ({
        ...model,
        ...(model.expiration_date !== null && expiresAt(model.expiration_date) <= nowMs
          ? { is_expired: true as const }
          : {}),
        endpoints: model.endpoints.map((endpoint) => pricesAt(endpoint, nowMs)),
      }));
      catalog = { ...createView(repriced), at };
    }
    cached = { ...period(lastPassed), catalog };
    return catalog;
  };
  const first: Catalog = { ...createView(models), at };
  let cached = { ...period(-1), catalog: first };
  return first;

  /** The period from one moment until the next. */
  function period(passed: number): { from_ms: number; until_ms: number } {
    return {
      from_ms: moments[passed] ?? Number.NEGATIVE_INFINITY,
      until_ms: moments[passed + 1] ?? Number.POSITIVE_INFINITY,
    };
  }
}

interface MergeContext extends Pick<CatalogSources, 'created_default' | 'modelQuirks'> {
  providers: ReadonlyMap<string, Provider>;
  /** The bundled endpoints, by provider and upstream model. */
  byUpstream: ReadonlyMap<string, BundledEndpoint>;
}

function mergeModel(
  id: string,
  bundled: BundledModel | undefined,
  declared: DeclaredModel | undefined,
  context: MergeContext,
): Model {
  const name = declared?.name ?? bundled?.name ?? id;
  const facts = {
    id,
    canonical_slug: declared?.canonical_slug ?? bundled?.canonical_slug ?? id,
    name,
    created: declared?.created ?? bundled?.created ?? context.created_default,
    context_length: declared?.context_length ?? bundled?.context,
    input_modalities: declared?.input_modalities ?? bundled?.input ?? ['text'],
    output_modalities: declared?.output_modalities ?? bundled?.output ?? ['text'],
    tokenizer: declared?.tokenizer ?? bundled?.tokenizer ?? 'Other',
    instruct_type: null,
    knowledge_cutoff: declared?.knowledge_cutoff ?? bundled?.knowledge_cutoff ?? null,
    expiration_date: declared?.expiration_date ?? null,
    model_hub_id: declared?.model_hub_id ?? bundled?.hub ?? null,
    categories: declared?.categories ?? categoriesOf(id),
    is_distillable: declared?.distillable ?? isDistillable(id),
  };
  const own = (declared?.endpoints ?? []).flatMap((endpoint) => {
    const provider = context.providers.get(endpoint.provider);
    if (!provider) return [];
    const similar =
      context.byUpstream.get(`${endpoint.provider} ${endpoint.upstream_model}`) ??
      bundled?.endpoints.find((fact) => fact.provider === endpoint.provider && fact.variant === endpoint.variant);
    const known = similar && overrule(bundledEndpoint(facts, similar, provider, context), declared);
    return [declaredEndpoint(facts, endpoint, provider, context, known)];
  });
  // Declared endpoints replace all bundled ones of the same provider.
  const replaced = new Set(declared?.endpoints?.map(({ provider }) => provider));
  const rest = (bundled?.endpoints ?? []).flatMap((endpoint) => {
    const provider = context.providers.get(endpoint.provider);
    if (!provider || replaced.has(endpoint.provider)) return [];
    if (!isReached(endpoint, provider) || !isVariantOf(endpoint, provider)) return [];
    return [overrule(bundledEndpoint(facts, endpoint, provider, context), declared)];
  });
  const endpoints = [...own, ...rest].map((endpoint) => {
    const supportedParameters = nativeParameters(endpoint.quirks, endpoint.supported_parameters);
    return { ...endpoint, supported_parameters: supportedParameters };
  });
  const description = declared?.description ?? describe(facts);
  return { ...facts, description, endpoints: endpoints.map(narrowed(facts)) };
}

/** The function that reduces the endpoints of models of other operations than chat. */
function narrowed(facts: { output_modalities: readonly string[] }): (endpoint: Endpoint) => Endpoint {
  if (makesVectors(facts)) return endpointOfVectors;
  return transcribes(facts) ? endpointOfTranscripts : (endpoint) => endpoint;
}

/**
 * Whether a bundled endpoint with its own wire can be used: this version must implement the wire, and the operator must not have
 * changed the provider's wire, since its address then speaks another one.
 */
function isReached({ dialect }: BundledEndpoint, provider: Provider): boolean {
  if (dialect === undefined || dialect === provider.dialect) return true;
  return dialects.has(dialect) && provider.dialect === providerRow.get(provider.slug)?.dialect;
}

/** Whether the provider serves the endpoint's variant for this operator: Bedrock's inference profiles belong to regions. */
function isVariantOf({ variant }: BundledEndpoint, { variants }: Provider): boolean {
  return variant === undefined || variants === undefined || variants.includes(variant);
}

/** The endpoint with the operator's facts about the model, which override the bundled ones. */
function overrule(bundled: Endpoint, declared: DeclaredModel | undefined): Endpoint {
  return {
    ...bundled,
    context_length: declared?.context_length ?? bundled.context_length,
    input_modalities: declared?.input_modalities ?? bundled.input_modalities,
  };
}

type ModelFacts = Omit<Model, 'description' | 'endpoints'>;

/** A generated description, for models without one. */
function describe(facts: ModelFacts): string {
  const context = facts.context_length === undefined ? '' : ` within ${facts.context_length} tokens of context`;
  return `${facts.name} takes ${facts.input_modalities.join(', ')} and gives ${facts.output_modalities.join(', ')}${context}.`;
}

/** The endpoint as declared. `known` is the bundled endpoint, used for facts that the operator does not declare. */
function declaredEndpoint(
  facts: ModelFacts,
  declared: DeclaredEndpoint,
  provider: Provider,
  context: MergeContext,
  known: Endpoint | undefined,
): Endpoint {
  const tag = declared.variant === undefined ? provider.slug : `${provider.slug}/${declared.variant}`;
  const prices = declaredPrices(declared, known);
  const dialect = declared.dialect ?? known?.dialect;
  const wire = dialect ?? provider.dialect;
  return {
    id: `${tag}|${facts.id}`,
    model: facts.id,
    provider: provider.slug,
    tag,
    upstream_model: declared.upstream_model,
    ...(wire === provider.dialect ? {} : { dialect: wire }),
    context_length: declared.context_length ?? known?.context_length ?? facts.context_length,
    max_completion_tokens: declared.max_completion_tokens ?? known?.max_completion_tokens,
    max_prompt_tokens: declared.max_prompt_tokens ?? known?.max_prompt_tokens,
    ...prices,
    supported_parameters: declared.supported_parameters ?? known?.supported_parameters,
    quantization: declared.quantization ?? known?.quantization ?? 'unknown',
    supports_implicit_caching: declared.supports_implicit_caching ?? cachesUnasked(wire, prices.pricing),
    input_modalities: known?.input_modalities ?? facts.input_modalities,
    quirks: {
      ...(known?.quirks ?? { ...dialectOf(wire).facts.defaultQuirks(facts.id), ...provider.quirks }),
      ...context.modelQuirks?.(wire, declared.upstream_model),
      ...declared.quirks,
    },
  };
}

function bundledEndpoint(
  facts: ModelFacts,
  bundled: BundledEndpoint,
  provider: Provider,
  context: MergeContext,
): Endpoint {
  const tag = bundled.variant === undefined ? provider.slug : `${provider.slug}/${bundled.variant}`;
  const pricing = bundled.price ?? {};
  const wire = bundled.dialect ?? provider.dialect;
  const refused = refusedParameters(provider, wire, bundled);
  const modelQuirks = context.modelQuirks?.(wire, bundled.model);
  return {
    id: `${tag}|${facts.id}`,
    model: facts.id,
    provider: provider.slug,
    tag,
    upstream_model: bundled.model,
    ...(wire === provider.dialect ? {} : { dialect: wire }),
    context_length: bundled.context ?? facts.context_length,
    max_completion_tokens: bundled.completion_max,
    max_prompt_tokens: bundled.prompt_max,
    pricing,
    ...(bundled.tiers === undefined ? {} : { price_tiers: bundled.tiers }),
    ...(bundled.service_tiers === undefined ? {} : { service_tiers: bundled.service_tiers }),
    ...(bundled.price_changes === undefined ? {} : { price_changes: bundled.price_changes }),
    supported_parameters: supportedParameters(
      providerRow.get(provider.slug),
      wire,
      bundled,
      refused,
      modelQuirks?.effort_max !== undefined,
    ),
    quantization: bundled.quantization ?? 'unknown',
    supports_implicit_caching: cachesUnasked(wire, pricing),
    input_modalities: bundled.input ?? facts.input_modalities,
    quirks: {
      ...dialectOf(wire).facts.defaultQuirks(facts.id),
      ...provider.quirks,
      ...(refused.length === 0
        ? {}
        : { refused_parameters: [...new Set([...(provider.quirks.refused_parameters ?? []), ...refused])] }),
      ...(lacksEffort(provider, wire, bundled) ? { reasoning_field: 'none' as const } : {}),
      // A model without reasoning has no reasoning to turn off.
      ...(provider.quirks.thinking_or_forced_tool && !bundled.can.includes('reasoning')
        ? { thinking_or_forced_tool: false }
        : {}),
      ...bundled.quirks,
      ...modelQuirks,
    },
  };
}

/** Whether prompts are cached without a hint: there is a price for cache reads, and the wire needs no request for it. */
function cachesUnasked(wire: Wire, pricing: Prices): boolean {
  return pricing.input_cache_read !== undefined && dialectOf(wire).facts.cachesUnasked;
}

/** Parameters that a model refuses although its provider accepts them for others. */
function refusedParameters(
  provider: Provider,
  wire: Wire,
  { can, model }: BundledEndpoint,
): readonly EndpointParameter[] {
  if (!dialectOf(wire).facts.refusesUnsupported) return [];
  if (providerRow.get(provider.slug)?.fixed_sampling?.test(model)) return samplingParameters;
  if (can.includes('sampling')) return [];
  if (!can.includes('reasoning') || (provider.slug !== 'openai' && provider.slug !== 'azure'))
    return samplingParameters;
  // OpenAI's reasoning models also refuse stop and prediction (https://platform.openai.com/docs/api-reference/chat/create),
  // those before GPT-5 parallel_tool_calls as well (https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning).
  return [
    ...samplingParameters,
    'stop',
    'prediction',
    ...(/^o\d/.test(model) ? (['parallel_tool_calls'] as const) : []),
  ];
}

/** Whether the model thinks without levels, so that it refuses `reasoning_effort`. */
function lacksEffort(provider: Provider, wire: Wire, { can }: BundledEndpoint): boolean {
  const field = provider.quirks.reasoning_field ?? 'reasoning_effort';
  return dialectOf(wire).facts.refusesUnsupported && field === 'reasoning_effort' && !can.includes('effort');
}

const needs: [Ability, readonly EndpointParameter[]][] = [
  ['tools', ['tools', 'tool_choice', 'parallel_tool_calls']],
  ['structured', ['structured_outputs']],
  ['reasoning', ['reasoning', 'include_reasoning', 'reasoning_effort']],
  ['effort', ['reasoning_effort']],
  ['sampling', samplingParameters],
];

function supportedParameters(
  row: ProviderRow | undefined,
  wire: Wire,
  { can, model }: BundledEndpoint,
  refused: readonly EndpointParameter[],
  hasEffort: boolean,
): readonly EndpointParameter[] | undefined {
  if (row === undefined) return undefined;
  const lacking = new Set<EndpointParameter>(refused);
  for (const [ability, names] of needs) if (!can.includes(ability)) for (const name of names) lacking.add(name);
  const { lackingParameters } = dialectOf(wire).facts;
  for (const name of lackingParameters({ upstream_model: model, quirks: row.quirks })) lacking.add(name);
  // https://platform.openai.com/docs/guides/latest-model: since GPT-5. Claude maps it to its effort.
  if (!/^gpt-5/.test(model) && !hasEffort) lacking.add('verbosity');
  return row.parameters.filter((name) => !lacking.has(name));
}

/** Names of embedding models: the name is all that is known of a local server's model. */
const EMBEDS = /embed|\b(?:bge|e5|gte|minilm)\b/i;

/** A model of a local server that serves any name: `<provider slug>/<upstream model>`, free of charge. */
function anyModel(id: string, providers: ReadonlyMap<string, Provider>, created: number): Model | undefined {
  const slash = id.indexOf('/');
  const provider = slash === -1 ? undefined : providers.get(id.slice(0, slash));
  const row = provider && providerRow.get(provider.slug);
  const upstreamModel = id.slice(slash + 1);
  if (!provider || !row?.any_model || upstreamModel === '') return undefined;
  const isEmbedding = EMBEDS.test(upstreamModel);
  const inputModalities = isEmbedding ? ['text'] : ['text', 'image'];
  return {
    id,
    canonical_slug: id,
    name: upstreamModel,
    description: `${upstreamModel} on ${provider.name}.`,
    created,
    context_length: undefined,
    input_modalities: inputModalities,
    output_modalities: [isEmbedding ? 'embeddings' : 'text'],
    tokenizer: 'Other',
    instruct_type: null,
    knowledge_cutoff: null,
    expiration_date: null,
    model_hub_id: null,
    endpoints: [
      {
        id: `${provider.slug}|${id}`,
        model: id,
        provider: provider.slug,
        tag: provider.slug,
        upstream_model: upstreamModel,
        context_length: undefined,
        max_completion_tokens: undefined,
        max_prompt_tokens: undefined,
        pricing: { prompt: 0, completion: 0 },
        supported_parameters: isEmbedding ? [] : nativeParameters(provider.quirks, row.parameters),
        quantization: 'unknown',
        supports_implicit_caching: false,
        input_modalities: inputModalities,
        quirks: { ...dialectOf(provider.dialect).facts.defaultQuirks(id), ...provider.quirks },
      },
    ],
  };
}
