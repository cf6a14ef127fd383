import { dialectOf } from '../providers/dialects.ts';
import type { Quirks } from '../providers/quirks.ts';
import { listedWire, searchFee } from '../providers/shared/listing-facts.ts';
import type { ProviderRow } from '../providers/table.ts';
import { lookupTable } from '../schemas/lookup-table.ts';
import { type Prices, tokenPrices } from '../schemas/prices.ts';
import type { Ability, BundledEndpoint } from './bundled.ts';
import type { PriceList, PriceTier } from './model.ts';
import { nearestPicoUsd } from './price.ts';

type Cost = Record<string, unknown> & { tiers?: ({ tier?: { size?: number } } & Record<string, unknown>)[] };

/** One model of one provider in the shape of https://models.dev/api.json, with the fields that are read here. */
export interface Listing {
  id: string;
  name: string;
  release_date?: string;
  knowledge?: string;
  base_model?: string;
  family?: string;
  status?: string;
  reasoning?: boolean;
  reasoning_options?: { type?: string; values?: (string | null)[] }[];
  temperature?: boolean;
  tool_call?: boolean;
  structured_output?: boolean;
  interleaved?: true | { field?: string };
  weights?: { label?: string; url?: string }[];
  modalities?: { input?: string[]; output?: string[] };
  limit?: { context?: number; input?: number; output?: number };
  cost?: Cost;
  /** Other service modes, with the request fields that select them. */
  experimental?: { modes?: Record<string, { cost?: Cost; provider?: { body?: Record<string, unknown> } }> };
  provider?: { npm?: string; shape?: string };
}
/** The whole file: providers by id, models by id. */
export type ModelsDev = Record<string, { models: Record<string, Listing> }>;

/** Public `author/slug` ids with their facts; `base_model` is the provider-independent name. */
export type PublicSlugs = Record<string, Omit<Listing, 'id'>>;

/** Unix seconds of `2025-07-25` or `2025-07`. */
export function unixDay(text: string | undefined): number | undefined {
  const match = /^(\d{4})-(\d\d)(?:-(\d\d))?$/.exec(text ?? '');
  return match ? Date.UTC(Number(match[1]), Number(match[2]) - 1, Number(match[3] ?? 1)) / 1000 : undefined;
}

/** The last day that `2024-09-30`, `2024-09` or `2024` may mean. */
export function lastDay(text: string | undefined): string | undefined {
  const match = /^(\d{4})(?:-(\d\d))?(?:-(\d\d))?$/.exec(text ?? '');
  if (!match) return undefined;
  const [, year, month = '12', day] = match;
  return `${year}-${month}-${day ?? String(new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()).padStart(2, '0')}`;
}

function pricesOf(cost: Cost, row: ProviderRow, isClaude: boolean): Prices | undefined {
  const perMillion = (...names: string[]): number | undefined => {
    const value = names.map((name) => cost[name]).find((candidate) => candidate !== undefined);
    return typeof value === 'number' || typeof value === 'string' ? nearestPicoUsd(value, 'million') : undefined;
  };
  const prompt = perMillion('input');
  const completion = perMillion('output');
  if (prompt === undefined || completion === undefined) return undefined;
  const prices: Prices = { prompt, completion };
  const set = (name: Exclude<keyof Prices, 'discount'>, value: number | undefined) => {
    // A zero beside a real prompt price means "none" in these facts; a missing price means the prompt's price.
    if (value !== undefined && (value > 0 || prompt === 0)) prices[name] = value;
  };
  set('input_cache_read', perMillion('cache_read', 'cached_input', 'cache_input'));
  set('input_cache_write', perMillion('cache_write', 'cached_write'));
  // Twice the input price (https://docs.claude.com/en/docs/build-with-claude/prompt-caching).
  if (isClaude && prices.input_cache_write !== undefined) prices.input_cache_write_1h = prompt * 2;
  set('audio', perMillion('input_audio'));
  set('audio_output', perMillion('output_audio'));
  set('internal_reasoning', perMillion('reasoning'));
  // 10 USD for a thousand searches (https://platform.claude.com/docs/en/about-claude/pricing, "Web search tool"), which the facts lack.
  if (isClaude && row.slug === 'anthropic') prices.web_search = 10_000_000_000;
  // Stated per thousand searches (https://docs.perplexity.ai/getting-started/pricing).
  if (row.slug === 'perplexity' && typeof cost['request'] === 'number') {
    const thousand = nearestPicoUsd(cost['request'], 'unit');
    if (thousand !== undefined) prices.web_search = Math.round(thousand / 1000);
  }
  return prices;
}

/**
 * The fee of each request to Sonar in addition to its tokens, in pico-USD, which the facts lack: that of the smallest search context,
 * the default (https://docs.perplexity.ai/guides/pricing).
 */
const sonarFees: Readonly<Record<string, number>> = lookupTable({
  sonar: 5_000_000_000,
  'sonar-pro': 6_000_000_000,
  'sonar-reasoning-pro': 6_000_000_000,
});

function tiersOf(cost: Cost, row: ProviderRow, isClaude: boolean): PriceTier[] | undefined {
  const tiers = (cost.tiers ?? []).flatMap(({ tier, ...rest }) => {
    const price = pricesOf(rest, row, isClaude);
    return price && tier?.size ? [{ prompt_tokens_over: tier.size, price }] : [];
  });
  return tiers.length === 0 ? undefined : tiers;
}

/** Adds the search fee to every price list of an endpoint. */
function addSearches(fee: number, lists: readonly (PriceList | undefined)[]): void {
  for (const list of lists) {
    if (list === undefined) continue;
    list.pricing.web_search = fee;
    for (const tier of list.price_tiers ?? []) tier.price.web_search = fee;
  }
}

/** Token prices halved; fees unchanged. */
function halved(prices: Prices): Prices {
  const half = { ...prices };
  for (const name of tokenPrices) {
    const price = half[name];
    if (price !== undefined) half[name] = Math.ceil(price / 2);
  }
  return half;
}

/**
 * The flex tier of OpenAI's models costs half, like batches (https://developers.openai.com/api/docs/guides/flex-processing,
 * https://learn.microsoft.com/azure/foundry/openai/how-to/flex-processing); models without the tier refuse requests for it.
 */
function flexOf(row: ProviderRow, author: string, price: Prices, tiers: PriceTier[] = []): Record<string, PriceList> {
  if (author !== 'openai' || (row.slug !== 'openai' && row.slug !== 'azure')) return {};
  const priceTiers = tiers.map((tier) => ({ ...tier, price: halved(tier.price) }));
  return { flex: { pricing: halved(price), ...(priceTiers.length === 0 ? {} : { price_tiers: priceTiers }) } };
}

/** The service tiers of a listing with a price; modes that are not selected by `service_tier` are ignored. */
function serviceTiersOf({ experimental }: Listing, row: ProviderRow, isClaude: boolean): Record<string, PriceList> {
  const tiers = Object.values(experimental?.modes ?? {}).flatMap(({ cost, provider }): [string, PriceList][] => {
    const name = provider?.body?.['service_tier'];
    const pricing = cost && pricesOf(cost, row, isClaude);
    if (typeof name !== 'string' || pricing === undefined) return [];
    const priceTiers = cost && tiersOf(cost, row, isClaude);
    return [[name, { pricing, ...(priceTiers === undefined ? {} : { price_tiers: priceTiers }) }]];
  });
  return Object.fromEntries(tiers);
}

const knownEfforts = new Set(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

/** The effort levels that a model accepts; undefined if they are not stated or not standard. */
function effortsOf(listing: Listing): string[] | undefined {
  const values = listing.reasoning_options?.find(({ type }) => type === 'effort')?.values ?? [];
  const efforts = values.filter((value) => value !== null && knownEfforts.has(value)) as string[];
  return efforts.length === values.length && efforts.some((effort) => effort !== 'none') ? efforts : undefined;
}

function abilities(row: ProviderRow, listing: Listing): Ability[] {
  const can: Ability[] = [];
  if (listing.tool_call) can.push('tools');
  if (listing.structured_output !== false) can.push('structured');
  if (listing.temperature !== false) can.push('sampling');
  if (listing.reasoning) {
    can.push('reasoning');
    const options = listing.reasoning_options;
    const hasEffort =
      options && (effortsOf(listing) !== undefined || options.some(({ type }) => type === 'budget_tokens'));
    // xAI's models without levels refuse the parameter (https://docs.x.ai/docs/guides/reasoning).
    if (hasEffort ?? row.slug !== 'xai') can.push('effort');
  }
  return can;
}

/** The model's output modalities, in public names; undefined for models of operations that the gateway does not have. */
export function outputOf(listing: Listing): string[] | undefined {
  const output = listing.modalities?.output ?? ['text'];
  const name = `${listing.family ?? ''} ${listing.id}`.toLowerCase();
  // Speech recognition is sold by the minute; these facts have only token prices.
  if (/rerank|realtime|livetranslate|prompt-guard|ocr|gpt-image|turbo-instruct|whisper|-asr|transcribe/.test(name)) {
    return undefined;
  }
  if (/embed|bge-/.test(name)) return ['embeddings'];
  if (!output.includes('text')) return undefined;
  return ['text', 'image', 'audio'].filter((modality) => output.includes(modality));
}

/** The model's input modalities, in public names. */
export function inputOf(listing: Listing): string[] {
  const input = (listing.modalities?.input ?? ['text']).map((modality) => (modality === 'pdf' ? 'file' : modality));
  const known = ['text', 'image', 'file', 'audio', 'video'].filter((modality) => input.includes(modality));
  return known.length === 0 ? ['text'] : known;
}

/** A positive integer limit; undefined otherwise, since zero means "not stated" in these facts. */
export const positive = (value: number | undefined) =>
  value !== undefined && Number.isSafeInteger(value) && value > 0 ? value : undefined;

/** The model of a listing, and the differences of its endpoint from the model's plain one. */
export interface Identity {
  id: string;
  variant: string | undefined;
  quantization: string | undefined;
}

/** The endpoint of a listing; undefined if the provider's address does not serve it. */
export function endpointOf(row: ProviderRow, listing: Listing, identity: Identity): BundledEndpoint | undefined {
  const dialect = listedWire(row, listing);
  if (dialect === null) return undefined;
  const isClaude = identity.id.startsWith('anthropic/');
  const price = listing.cost === undefined ? undefined : pricesOf(listing.cost, row, isClaude);
  const tiers = listing.cost === undefined ? undefined : tiersOf(listing.cost, row, isClaude);
  const fee = row.slug === 'perplexity' && Object.hasOwn(sonarFees, listing.id) ? sonarFees[listing.id] : undefined;
  if (price !== undefined && fee !== undefined) price.request = fee;
  const [author = ''] = identity.id.split('/');
  const flex = price === undefined || outputOf(listing)?.[0] !== 'text' ? {} : flexOf(row, author, price, tiers);
  const serviceTiers = { ...flex, ...serviceTiersOf(listing, row, isClaude) };
  const searchFeePico = searchFee(row, listing.id, dialect);
  if (price !== undefined && searchFeePico !== undefined) {
    const own = { pricing: price, ...(tiers === undefined ? {} : { price_tiers: tiers }) };
    addSearches(searchFeePico, [own, ...Object.values(serviceTiers)]);
  }
  const field = typeof listing.interleaved === 'object' ? listing.interleaved.field : undefined;
  const { variesReasoningFields } = dialectOf(row.dialect).facts;
  const replays = variesReasoningFields && (field === 'reasoning_content' || field === 'reasoning_details');
  const efforts = effortsOf(listing);
  const quirks: Quirks = {
    ...(replays ? { replay_reasoning: field } : {}),
    ...(variesReasoningFields && efforts !== undefined ? { reasoning_efforts: efforts } : {}),
    // https://console.groq.com/docs/reasoning: GPT-OSS refuses the field.
    ...(row.slug === 'groq' && /qwen/.test(listing.id) ? { extra_body: { reasoning_format: 'parsed' } } : {}),
    // Azure passes other vendors' models to their own servers; Mistral's refuses the newer name with a 422
    // (https://github.com/pydantic/pydantic-ai/issues/6593).
    ...(row.slug === 'azure' && !identity.id.startsWith('openai/')
      ? { system_role: 'system', output_bound_field: 'max_tokens' }
      : {}),
  };
  const { variant, quantization } = identity;
  const context = positive(listing.limit?.context);
  const promptMax = positive(listing.limit?.input);
  const completionMax = positive(listing.limit?.output);
  return {
    provider: row.slug,
    ...(variant === undefined ? {} : { variant }),
    model: listing.id,
    ...(dialect === undefined ? {} : { dialect }),
    ...(context === undefined ? {} : { context }),
    ...(promptMax === undefined ? {} : { prompt_max: promptMax }),
    ...(completionMax === undefined ? {} : { completion_max: completionMax }),
    can: abilities(row, listing),
    ...(quantization === undefined ? {} : { quantization }),
    ...(price === undefined ? {} : { price }),
    ...(tiers === undefined ? {} : { tiers }),
    ...(Object.keys(serviceTiers).length === 0 ? {} : { service_tiers: serviceTiers }),
    ...(Object.keys(quirks).length === 0 ? {} : { quirks }),
  };
}
