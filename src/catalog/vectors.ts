import type { Prices } from '../schemas/prices.ts';
import type { Endpoint, EndpointPrices, PriceList } from './model.ts';

/** Nothing comes out that is counted, so that a price for it is not missing. */
function priced(prices: Prices): Prices {
  return prices.prompt === undefined || prices.completion !== undefined ? prices : { ...prices, completion: 0 };
}

function list<List extends PriceList>(prices: List): List {
  const { price_tiers: priceTiers } = prices;
  return {
    ...prices,
    pricing: priced(prices.pricing),
    ...(priceTiers && { price_tiers: priceTiers.map((tier) => ({ ...tier, price: priced(tier.price) })) }),
  };
}

function all<Asks extends EndpointPrices>(prices: Asks): Asks {
  const { service_tiers: serviceTiers } = prices;
  const tiers = Object.entries(serviceTiers ?? {}).map(([name, tier]) => [name, list(tier)]);
  return { ...list(prices), ...(serviceTiers && { service_tiers: Object.fromEntries(tiers) }) };
}

/** An endpoint of a model that makes vectors alone: it writes no tokens, and takes no parameter of chat. */
export function endpointOfVectors(endpoint: Endpoint): Endpoint {
  const { price_changes: priceChanges } = endpoint;
  return {
    ...all(endpoint),
    ...(priceChanges && { price_changes: priceChanges.map(all) }),
    max_completion_tokens: undefined,
    supported_parameters: [],
  };
}

/** Whether a model makes vectors. */
export function makesVectors({
  output_modalities: outputModalities,
}: {
  output_modalities: readonly string[];
}): boolean {
  return outputModalities.includes('embeddings');
}
