import type { Prices } from '../schemas/prices.ts';
import type { DatedPrices, Endpoint, EndpointPrices, PriceList, PriceTier } from './model.ts';

/** What decides which of an endpoint's price lists applies. */
export interface PricedCall {
  /** All that went in, whatever its class: cached tokens count, and so do those written to the cache. */
  prompt_tokens: number;
  /** The tier that served, else the one that was asked for. */
  service_tier: string | null | undefined;
}

/**
 * The list for a prompt of this length. Prices rise for prompts above a length, not at it, and then for the whole
 * request (https://ai.google.dev/gemini-api/docs/pricing: "prompts > 200k";
 * https://platform.openai.com/docs/pricing: "prompts with >272K input tokens"; https://docs.claude.com/en/docs/about-claude/pricing:
 * "over 200K", cache reads and writes included).
 */
function forLength({ pricing, price_tiers }: PriceList, prompt_tokens: number): Prices {
  return price_tiers?.findLast(({ prompt_tokens_over }) => prompt_tokens > prompt_tokens_over)?.price ?? pricing;
}

function ofTier({ service_tiers }: EndpointPrices, tier: string | null | undefined): PriceList | undefined {
  if (service_tiers === undefined || tier === null || tier === undefined) return undefined;
  return Object.hasOwn(service_tiers, tier) ? service_tiers[tier] : undefined;
}

/** The prices of a finished call: those of the tier that served it where it has its own, else the plain ones. */
export function pricesFor(endpoint: EndpointPrices, { prompt_tokens, service_tier }: PricedCall): Prices {
  return forLength(ofTier(endpoint, service_tier) ?? endpoint, prompt_tokens);
}

/**
 * Every price list that may come to apply to a request: its prompt counts at most so many tokens, and whoever asks for a
 * tier may be served in the plain one; who asks for `auto` leaves the tier to the provider. What a budget holds must
 * pay for each of them.
 */
export function pricesInReach(endpoint: EndpointPrices, { prompt_tokens, service_tier }: PricedCall): Prices[] {
  const found: Prices[] = [];
  const add = ({ pricing, price_tiers }: PriceList) => {
    found.push(pricing);
    for (const tier of price_tiers ?? NO_TIERS) if (prompt_tokens > tier.prompt_tokens_over) found.push(tier.price);
  };
  add(endpoint);
  if (service_tier === 'auto') for (const list of Object.values(endpoint.service_tiers ?? {})) add(list);
  const asked = ofTier(endpoint, service_tier);
  if (asked !== undefined) add(asked);
  return found;
}

const NO_TIERS: readonly PriceTier[] = [];

/** Tiers that never cost more than the plain prices. */
const harmlessTiers: ReadonlySet<string> = new Set([
  'auto',
  'default',
  'standard',
  'standard_only',
  'on_demand',
  'flex',
  'batch',
]);

/** Whether a client may ask this endpoint for a tier: one that is dearer, at a price that nobody told, would be charged too little. */
export function offersTier(endpoint: EndpointPrices, tier: unknown): boolean {
  if (typeof tier !== 'string') return false;
  return harmlessTiers.has(tier) || ofTier(endpoint, tier) !== undefined;
}

/** An endpoint at the prices that are in force then: a change is the whole price, and holds until the next. */
export function pricesAt(endpoint: Endpoint, now_ms: number): Endpoint {
  const change = endpoint.price_changes?.findLast(({ from_ms }) => from_ms <= now_ms);
  if (change === undefined) return endpoint;
  const { price_tiers: _tiers, service_tiers: _services, ...rest } = endpoint;
  const { from_ms: _from, ...prices } = change;
  return { ...rest, ...prices };
}

/**
 * What an operator says of prices over what is known: a price that is said is the whole price. Service tiers and later
 * prices may be said alone, beside the known one.
 */
export function declaredPrices(declared: Partial<DatedPrices>, known: DatedPrices | undefined): DatedPrices {
  const is_whole = declared.pricing !== undefined;
  const price_tiers = is_whole ? declared.price_tiers : known?.price_tiers;
  const service_tiers = is_whole ? declared.service_tiers : { ...known?.service_tiers, ...declared.service_tiers };
  const price_changes = declared.price_changes ?? (is_whole ? undefined : known?.price_changes);
  return {
    pricing: declared.pricing ?? known?.pricing ?? {},
    ...(price_tiers === undefined ? {} : { price_tiers }),
    ...(service_tiers === undefined || Object.keys(service_tiers).length === 0 ? {} : { service_tiers }),
    ...(price_changes === undefined ? {} : { price_changes }),
  };
}
