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

/** An endpoint as an operator declares it. */
export interface DeclaredEndpoint extends Partial<DatedPrices> {
  provider: string;
  /** What stands after the slash of the tag; tells two endpoints of one provider apart. */
  variant?: string;
  upstream_model: string;
  /** Absent: the provider's. */
  dialect?: Wire;
  context_length?: number;
  max_completion_tokens?: number;
  max_prompt_tokens?: number;
  /** Absent: all. */
  supported_parameters?: readonly string[];
  quantization?: string;
  supports_implicit_caching?: boolean;
  quirks?: Quirks;
}

/** A model as an operator declares it: new, or over the bundled one of the same id. */
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
  /** Whether others may train on its output. Absent: as far as its licence is known. */
  distillable?: boolean;
  /** Absent: what its name tells. */
  categories?: readonly Category[];
  endpoints?: readonly DeclaredEndpoint[];
}

export interface CatalogSources {
  bundled: BundledCatalog;
  config: { bundled_catalog: boolean; models: readonly DeclaredModel[] };
  /** The providers that are on. Endpoints of others are left out. */
  providers: readonly Provider[];
  /** Unix seconds: when a declared model without a date counts as made. */
  created_default: number;
  /** Facts about a model that its name tells a dialect; they stand over the provider's quirks. */
  modelQuirks?: (dialect: Wire, upstreamModel: string) => Quirks;
  /** Ids of models that local servers say they have. Absent: none. */
  discovered?: readonly string[];
  /** See `Catalog.unserved`. Absent: nothing is known of such. */
  unserved?: (id: string) => string | undefined;
}

/** What can be called: models and their endpoints at the providers that are on. Never changes once built. */
export interface Catalog {
  /** By id or canonical slug, case-sensitive; one look-up. */
  find(id: string): Model | undefined;
  /** All models with at least one endpoint, newest first. */
  models(): readonly Model[];
  endpoints(): readonly Endpoint[];
  /** By slug or display name, in any case. */
  provider(slugOrName: string): Provider | undefined;
  providers(): readonly Provider[];
  /** How a model is turned on that is known, and that no provider which is on serves; undefined for any other name. */
  unserved(id: string): string | undefined;
  /** The same at the prices that are in force then, with who has expired; the same object as long as none of that changes. */
  at(nowMs: number): Catalog;
}

/** Merges what operators declare over what is bundled, and keeps what a provider that is on can serve. Pure. */
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

  const among = (models: readonly Model[]): Omit<Catalog, 'at'> => {
    const byId = new Map<string, Model>();
    for (const model of models) if (!byId.has(model.canonical_slug)) byId.set(model.canonical_slug, model);
    for (const model of models) byId.set(model.id, model);
    const endpoints = models.flatMap((model) => model.endpoints);
    return {
      find: (id) => byId.get(id) ?? anyModel(id, providers, sources.created_default),
      models: () => models,
      endpoints: () => endpoints,
      // Endpoints name their provider as it is known; clients do in letters of any case.
      provider: (slugOrName) => byName.get(slugOrName) ?? byName.get(slugOrName.toLowerCase()),
      providers: () => sources.providers,
      unserved: (id) => sources.unserved?.(id),
    };
  };
  return dated(models, among);
}

/** A catalog for each stretch of time between two changes of price or ends of models. Only the last one asked for is kept. */
function dated(models: readonly Model[], among: (models: readonly Model[]) => Omit<Catalog, 'at'>): Catalog {
  const changes = models.flatMap(({ endpoints }) =>
    endpoints.flatMap(({ price_changes: priceChanges = [] }) => priceChanges),
  );
  const ends = models.flatMap(({ expiration_date: expirationDate }) =>
    expirationDate === null ? [] : [expiresAt(expirationDate)],
  );
  const moments = [...new Set([...changes.map(({ from_ms: fromMs }) => fromMs), ...ends])].sort((a, b) => a - b);
  const at = (nowMs: number): Catalog => {
    if (kept.from_ms <= nowMs && nowMs < kept.until_ms) return kept.catalog;
    const passed = moments.findLastIndex((moment) => moment <= nowMs);
    let catalog = first;
    if (passed !== -1) {
      const repriced = models.map((model) => ({
        ...model,
        ...(model.expiration_date !== null && expiresAt(model.expiration_date) <= nowMs
          ? { is_expired: true as const }
          : {}),
        endpoints: model.endpoints.map((endpoint) => pricesAt(endpoint, nowMs)),
      }));
      catalog = { ...among(repriced), at };
    }
    kept = { ...stretch(passed), catalog };
    return catalog;
  };
  const first: Catalog = { ...among(models), at };
  let kept = { ...stretch(-1), catalog: first };
  return first;

  /** From the last moment that has passed until the next. */
  function stretch(passed: number): { from_ms: number; until_ms: number } {
    return {
      from_ms: moments[passed] ?? Number.NEGATIVE_INFINITY,
      until_ms: moments[passed + 1] ?? Number.POSITIVE_INFINITY,
    };
  }
}

interface MergeContext extends Pick<CatalogSources, 'created_default' | 'modelQuirks'> {
  providers: ReadonlyMap<string, Provider>;
  /** What is bundled, by provider and upstream model. */
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
    const like =
      context.byUpstream.get(`${endpoint.provider} ${endpoint.upstream_model}`) ??
      bundled?.endpoints.find((fact) => fact.provider === endpoint.provider && fact.variant === endpoint.variant);
    const known = like && overrule(bundledEndpoint(facts, like, provider, context), declared);
    return [declaredEndpoint(facts, endpoint, provider, context, known)];
  });
  // What an operator declares for a provider stands in place of everything bundled for it.
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

/** What a model that is not of chat leaves of its endpoints. */
function narrowed(facts: { output_modalities: readonly string[] }): (endpoint: Endpoint) => Endpoint {
  if (makesVectors(facts)) return endpointOfVectors;
  return transcribes(facts) ? endpointOfTranscripts : (endpoint) => endpoint;
}

/**
 * Whether a bundled endpoint that speaks another wire than its provider's row is there: its wire must be one that this
 * version speaks, and an operator who gave the provider another wire has said what its address speaks.
 */
function isReached({ dialect }: BundledEndpoint, provider: Provider): boolean {
  if (dialect === undefined || dialect === provider.dialect) return true;
  return dialects.has(dialect) && provider.dialect === providerRow.get(provider.slug)?.dialect;
}

/** Whether the provider has the endpoint's variant where the operator is: Bedrock's inference profiles belong to regions. */
function isVariantOf({ variant }: BundledEndpoint, { variants }: Provider): boolean {
  return variant === undefined || variants === undefined || variants.includes(variant);
}

/** What an operator says of the model holds for all its endpoints, whatever the bundle says of them. */
function overrule(bundled: Endpoint, declared: DeclaredModel | undefined): Endpoint {
  return {
    ...bundled,
    context_length: declared?.context_length ?? bundled.context_length,
    input_modalities: declared?.input_modalities ?? bundled.input_modalities,
  };
}

type ModelFacts = Omit<Model, 'description' | 'endpoints'>;

/** One sentence of facts, where nobody wrote a better one. */
function describe(facts: ModelFacts): string {
  const context = facts.context_length === undefined ? '' : ` within ${facts.context_length} tokens of context`;
  return `${facts.name} takes ${facts.input_modalities.join(', ')} and gives ${facts.output_modalities.join(', ')}${context}.`;
}

/** `known` is what the bundle says of the same thing: it holds where the operator says nothing. */
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
      ...(tellsNoEffort(provider, wire, bundled) ? { reasoning_field: 'none' as const } : {}),
      // A model that does not think has nothing to turn off.
      ...(provider.quirks.thinking_or_forced_tool && !bundled.can.includes('reasoning')
        ? { thinking_or_forced_tool: false }
        : {}),
      ...bundled.quirks,
      ...modelQuirks,
    },
  };
}

/** A price for cache reads shows that there is a cache; on some wires a request must ask for it. */
function cachesUnasked(wire: Wire, pricing: Prices): boolean {
  return pricing.input_cache_read !== undefined && dialectOf(wire).facts.cachesUnasked;
}

/** What a model refuses although its provider takes it from others. */
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

/** Whether the model thinks without levels, which the usual field would be refused for. */
function tellsNoEffort(provider: Provider, wire: Wire, { can }: BundledEndpoint): boolean {
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
  // https://platform.openai.com/docs/guides/latest-model: since GPT-5. Claude takes it as its effort.
  if (!/^gpt-5/.test(model) && !hasEffort) lacking.add('verbosity');
  return row.parameters.filter((name) => !lacking.has(name));
}

/** Names of models that make vectors: nothing but its name is known of a local server's model. */
const EMBEDS = /embed|\b(?:bge|e5|gte|minilm)\b/i;

/** A model of a local server that serves whatever it has: `<provider slug>/<upstream model>`, at no price. */
function anyModel(id: string, providers: ReadonlyMap<string, Provider>, created: number): Model | undefined {
  const slash = id.indexOf('/');
  const provider = slash === -1 ? undefined : providers.get(id.slice(0, slash));
  const row = provider && providerRow.get(provider.slug);
  const upstreamModel = id.slice(slash + 1);
  if (!provider || !row?.any_model || upstreamModel === '') return undefined;
  const isOfVectors = EMBEDS.test(upstreamModel);
  const inputModalities = isOfVectors ? ['text'] : ['text', 'image'];
  return {
    id,
    canonical_slug: id,
    name: upstreamModel,
    description: `${upstreamModel} on ${provider.name}.`,
    created,
    context_length: undefined,
    input_modalities: inputModalities,
    output_modalities: [isOfVectors ? 'embeddings' : 'text'],
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
        supported_parameters: isOfVectors ? [] : nativeParameters(provider.quirks, row.parameters),
        quantization: 'unknown',
        supports_implicit_caching: false,
        input_modalities: inputModalities,
        quirks: { ...dialectOf(provider.dialect).facts.defaultQuirks(id), ...provider.quirks },
      },
    ],
  };
}
