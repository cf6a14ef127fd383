import { limits } from '../limits.ts';
import { type Pricing, type PublicEndpoint, parameters, type Quantization } from '../schemas/endpoint.ts';
import type { InputModality, ModelEndpoints, OutputModality, PublicModel, tokenizers } from '../schemas/model.ts';
import { type Prices, tokenPrices, unitPrices } from '../schemas/prices.ts';
import type { Endpoint, Model } from './model.ts';
import { usdText } from './price.ts';

/** The public record of a model: `GET /models`. */
export function describeModel(model: Model): PublicModel {
  const top = cheapest(model.endpoints);
  const contextLength = model.context_length ?? null;
  const completion = most(model.endpoints.map(({ max_completion_tokens: maxCompletionTokens }) => maxCompletionTokens));
  const prompt = most(model.endpoints.map((endpoint) => endpoint.max_prompt_tokens ?? endpoint.context_length));
  return {
    id: model.id,
    canonical_slug: model.canonical_slug,
    name: model.name,
    description: model.description,
    created: model.created,
    context_length: contextLength,
    expiration_date: model.expiration_date,
    knowledge_cutoff: model.knowledge_cutoff,
    model_hub_id: model.model_hub_id,
    architecture: architecture(model),
    pricing: pricingText(top?.pricing ?? {}),
    top_provider: {
      is_moderated: false,
      context_length: top?.context_length ?? contextLength,
      max_completion_tokens: top?.max_completion_tokens ?? null,
    },
    per_request_limits:
      prompt === undefined || completion === undefined
        ? null
        : { prompt_tokens: prompt, completion_tokens: completion },
    supported_parameters: parameters.filter((name) =>
      model.endpoints.some(
        ({ supported_parameters: supportedParameters }) => supportedParameters?.includes(name) ?? true,
      ),
    ),
    default_parameters: {
      temperature: null,
      top_p: null,
      top_k: null,
      frequency_penalty: null,
      presence_penalty: null,
      repetition_penalty: null,
    },
    supported_voices: null,
    links: { details: detailsPath(model) },
  };
}

/** The path that lists a model's endpoints. */
export function detailsPath({ canonical_slug: canonicalSlug }: Pick<Model, 'canonical_slug'>): string {
  return `/api/v1/models/${pathOf(canonicalSlug)}/endpoints`;
}

/** An id as two path segments: author and slug, whose own slashes are escaped. */
function pathOf(id: string): string {
  const slash = id.indexOf('/');
  return `${encodeURIComponent(id.slice(0, slash))}/${encodeURIComponent(id.slice(slash + 1)).replaceAll('%3A', ':')}`;
}

/** The public record of a model with its described endpoints: `GET /models/{author}/{slug}/endpoints`. */
export function describeModelEndpoints(model: Model, endpoints: PublicEndpoint[]): ModelEndpoints {
  return {
    id: model.id,
    name: model.name,
    created: model.created,
    description: model.description,
    architecture: architecture(model),
    endpoints,
  };
}

/** The public statistics of an endpoint. */
export type ShownStatistics = Required<
  Pick<
    PublicEndpoint,
    | 'status'
    | 'latency_last_30m'
    | 'throughput_last_30m'
    | 'samples_last_30m'
    | 'uptime_last_5m'
    | 'uptime_last_30m'
    | 'uptime_last_1d'
  >
>;

/** The statistics of an endpoint at the gateway's own account, by its `healthId`. */
export type StatisticsOf = (healthId: string) => ShownStatistics;

/** The public record of an endpoint, or of one of its service tiers, which has its own prices. */
export function describeEndpoint(
  model: Model,
  endpoint: Endpoint,
  {
    provider_name: providerName,
    tier,
    statistics,
  }: { provider_name: string; tier?: string; statistics: ShownStatistics },
): PublicEndpoint {
  const choosesTools = endpoint.supported_parameters?.includes('tool_choice') ?? true;
  const { native_search: search } = endpoint.quirks;
  const { pricing } = (tier === undefined ? undefined : endpoint.service_tiers?.[tier]) ?? endpoint;
  return {
    name: `${providerName} | ${model.id}`,
    model_id: model.canonical_slug,
    model_name: model.name,
    context_length: endpoint.context_length ?? model.context_length ?? limits.context_tokens_assumed,
    pricing: pricingText(pricing),
    provider_name: providerName,
    tag: tier === undefined ? endpoint.tag : `${endpoint.tag}/${tier}`,
    quantization: endpoint.quantization as Quantization,
    max_completion_tokens: endpoint.max_completion_tokens ?? null,
    max_prompt_tokens: endpoint.max_prompt_tokens ?? null,
    supported_parameters: parameters.filter((name) => endpoint.supported_parameters?.includes(name) ?? true),
    supports_implicit_caching: endpoint.supports_implicit_caching,
    supports_tool_choice: { auto: choosesTools, none: choosesTools, required: choosesTools, function: choosesTools },
    native_tools: search === undefined ? {} : { 'openrouter:web_search': { type: search } },
    service_tier: tier ?? null,
    supports_diarization: false,
    supports_voice_cloning: false,
    ...statistics,
  };
}

function architecture(model: Model): PublicModel['architecture'] {
  return {
    input_modalities: [...model.input_modalities] as InputModality[],
    output_modalities: [...model.output_modalities] as OutputModality[],
    modality: `${model.input_modalities.join('+')}->${model.output_modalities.join('+')}`,
    instruct_type: model.instruct_type,
    tokenizer: model.tokenizer as (typeof tokenizers)[number],
  };
}

/** Prices as text for clients. "-1" is the public service's value for a price that is not fixed. */
export function pricingText(prices: Prices): Pricing {
  const text: Pricing = {
    prompt: prices.prompt === undefined ? '-1' : usdText(prices.prompt),
    completion: prices.completion === undefined ? '-1' : usdText(prices.completion),
  };
  for (const name of [...tokenPrices, ...unitPrices]) {
    const price = prices[name];
    if (price !== undefined) text[name] = usdText(price);
  }
  if (prices.discount !== undefined) text.discount = prices.discount;
  return text;
}

/** The endpoint of a model's own figures: the lowest known price of a prompt and a completion token. */
function cheapest(endpoints: readonly Endpoint[]): Endpoint | undefined {
  const price = ({ pricing: { prompt, completion } }: Endpoint) =>
    prompt === undefined || completion === undefined ? Number.POSITIVE_INFINITY : prompt + completion;
  return endpoints.reduce<Endpoint | undefined>(
    (best, endpoint) => (best === undefined || price(endpoint) < price(best) ? endpoint : best),
    undefined,
  );
}

function most(values: (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
