import type { Prices } from '../schemas/prices.ts';
import type { DatedPrices, Endpoint, EndpointPrices, PriceList, PriceTier } from './model.ts';

const NO_TIERS: readonly PriceTier[] = [];

/** The facts of a call that select one of an endpoint's price lists. */
export interface PricedCall {
  /** All input tokens of every class, including cached ones and cache writes. */
  prompt_tokens: number;
  /** The tier that served the call, else the requested one. */
  service_tier: string | null | undefined;
}

/**
 * The prices for a prompt of this length. Prices rise above a length, not at it, and then for the whole
 * request (https://ai.google.dev/gemini-api/docs/pricing: "prompts > 200k";
 * https://platform.openai.com/docs/pricing: "prompts with >272K input tokens"; https://docs.claude.com/en/docs/about-claude/pricing:
 * "over 200K", cache reads and writes included).
 */
function forLength({ pricing, price_tiers: priceTiers = NO_TIERS }: PriceList, promptTokens: number): Prices {
  return (
    priceTiers.findLast(({ prompt_tokens_over: promptTokensOver }) => promptTokens > promptTokensOver)?.price ?? pricing
  );
}

function ofTier(
  { service_tiers: serviceTiers }: EndpointPrices,
  tier: string | null | undefined,
): PriceList | undefined {
  return serviceTiers !== undefined && tier != null && Object.hasOwn(serviceTiers, tier)
    ? serviceTiers[tier]
    : undefined;
}

/** The prices of a finished call: those of its tier if the tier has its own, else the plain ones. */
export function pricesFor(
  endpoint: EndpointPrices,
  { prompt_tokens: promptTokens, service_tier: serviceTier }: PricedCall,
): Prices {
  const list = serviceTier == null ? endpoint : (ofTier(endpoint, serviceTier) ?? endpoint);
  return list.price_tiers === undefined ? list.pricing : forLength(list, promptTokens);
}

/**
 * All price lists that may apply to a request with at most this many prompt tokens. A request for a tier may be served in the plain one,
 * and `auto` leaves the tier to the provider. A budget hold must cover each of them.
 */
export function pricesInReach(
  endpoint: EndpointPrices,
  { prompt_tokens: promptTokens, service_tier: serviceTier }: PricedCall,
): Prices[] {
  const { pricing: plain, price_tiers: tiers, service_tiers: services } = endpoint;
  if (tiers === undefined && services === undefined) return [plain];
  const lists: Prices[] = [];
  const add = ({ pricing, price_tiers: priceTiers }: PriceList) => {
    lists.push(pricing);
    for (const tier of priceTiers ?? NO_TIERS) if (promptTokens > tier.prompt_tokens_over) lists.push(tier.price);
  };
  add(endpoint);
  if (serviceTier === 'auto') for (const list of Object.values(endpoint.service_tiers ?? {})) add(list);
  const requestedTier = ofTier(endpoint, serviceTier);
  if (requestedTier !== undefined) add(requestedTier);
  return lists;
}

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

/** Whether clients may request a tier from this endpoint: an expensive tier with an unknown price would be charged too little. */
export function offersTier(endpoint: EndpointPrices, tier: unknown): boolean {
  if (typeof tier !== 'string') return false;
  return harmlessTiers.has(tier) || ofTier(endpoint, tier) !== undefined;
}

/** An endpoint at the prices in force at a time. A price change replaces all prices, until the next one. */
export function pricesAt(endpoint: Endpoint, nowMs: number): Endpoint {
  const change = endpoint.price_changes?.findLast(({ from_ms: fromMs }) => fromMs <= nowMs);
  if (change === undefined) return endpoint;
  const { price_tiers: _tiers, service_tiers: _services, ...rest } = endpoint;
  const { from_ms: _from, ...prices } = change;
  return { ...rest, ...prices };
}

/**
 * Declared prices merged over known ones. A declared `pricing` replaces all known prices. Service tiers and future prices may be declared
 * alone, in addition to the known price.
 */
export function declaredPrices(declared: Partial<DatedPrices>, known: DatedPrices | undefined): DatedPrices {
  const isReplaced = declared.pricing !== undefined;
  const priceTiers = isReplaced ? declared.price_tiers : known?.price_tiers;
  const serviceTiers = isReplaced ? declared.service_tiers : { ...known?.service_tiers, ...declared.service_tiers };
  const priceChanges = declared.price_changes ?? (isReplaced ? undefined : known?.price_changes);
  return {
    pricing: declared.pricing ?? known?.pricing ?? {},
    ...(priceTiers === undefined ? {} : { price_tiers: priceTiers }),
    ...(serviceTiers === undefined || Object.keys(serviceTiers).length === 0 ? {} : { service_tiers: serviceTiers }),
    ...(priceChanges === undefined ? {} : { price_changes: priceChanges }),
  };
}
