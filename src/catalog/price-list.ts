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
function forLength({ pricing, price_tiers: priceTiers }: PriceList, promptTokens: number): Prices {
  return (
    priceTiers?.findLast(({ prompt_tokens_over: promptTokensOver }) => promptTokens > promptTokensOver)?.price ??
    pricing
  );
}

function ofTier(
  { service_tiers: serviceTiers }: EndpointPrices,
  tier: string | null | undefined,
): PriceList | undefined {
  if (serviceTiers === undefined || tier === null || tier === undefined) return undefined;
  return Object.hasOwn(serviceTiers, tier) ? serviceTiers[tier] : undefined;
}

/** The prices of a finished call: those of the tier that served it where it has its own, else the plain ones. */
export function pricesFor(
  endpoint: EndpointPrices,
  { prompt_tokens: promptTokens, service_tier: serviceTier }: PricedCall,
): Prices {
  return forLength(ofTier(endpoint, serviceTier) ?? endpoint, promptTokens);
}

/**
 * Every price list that may come to apply to a request: its prompt counts at most so many tokens, and whoever asks for a
 * tier may be served in the plain one; who asks for `auto` leaves the tier to the provider. What a budget holds must
 * pay for each of them.
 */
export function pricesInReach(
  endpoint: EndpointPrices,
  { prompt_tokens: promptTokens, service_tier: serviceTier }: PricedCall,
): Prices[] {
  const found: Prices[] = [];
  const add = ({ pricing, price_tiers: priceTiers }: PriceList) => {
    found.push(pricing);
    for (const tier of priceTiers ?? NO_TIERS) if (promptTokens > tier.prompt_tokens_over) found.push(tier.price);
  };
  add(endpoint);
  if (serviceTier === 'auto') for (const list of Object.values(endpoint.service_tiers ?? {})) add(list);
  const asked = ofTier(endpoint, serviceTier);
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
export function pricesAt(endpoint: Endpoint, nowMs: number): Endpoint {
  const change = endpoint.price_changes?.findLast(({ from_ms: fromMs }) => fromMs <= nowMs);
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
  const isWhole = declared.pricing !== undefined;
  const priceTiers = isWhole ? declared.price_tiers : known?.price_tiers;
  const serviceTiers = isWhole ? declared.service_tiers : { ...known?.service_tiers, ...declared.service_tiers };
  const priceChanges = declared.price_changes ?? (isWhole ? undefined : known?.price_changes);
  return {
    pricing: declared.pricing ?? known?.pricing ?? {},
    ...(priceTiers === undefined ? {} : { price_tiers: priceTiers }),
    ...(serviceTiers === undefined || Object.keys(serviceTiers).length === 0 ? {} : { service_tiers: serviceTiers }),
    ...(priceChanges === undefined ? {} : { price_changes: priceChanges }),
  };
}
