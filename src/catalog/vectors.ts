import type { Prices } from '../schemas/prices.ts';
import type { Endpoint, EndpointPrices, PriceList } from './model.ts';

/** Nothing comes out that is counted, so that a price for it is not missing. */
function priced(prices: Prices): Prices {
  return prices.prompt === undefined || prices.completion !== undefined ? prices : { ...prices, completion: 0 };
}

function list<List extends PriceList>(prices: List): List {
  const { price_tiers } = prices;
  return {
    ...prices,
    pricing: priced(prices.pricing),
    ...(price_tiers && { price_tiers: price_tiers.map((tier) => ({ ...tier, price: priced(tier.price) })) }),
  };
}

function all<Asks extends EndpointPrices>(prices: Asks): Asks {
  const { service_tiers } = prices;
  const tiers = Object.entries(service_tiers ?? {}).map(([name, tier]) => [name, list(tier)]);
  return { ...list(prices), ...(service_tiers && { service_tiers: Object.fromEntries(tiers) }) };
}

/** An endpoint of a model that makes vectors alone: it writes no tokens, and takes no parameter of chat. */
export function endpointOfVectors(endpoint: Endpoint): Endpoint {
  const { price_changes } = endpoint;
  return {
    ...all(endpoint),
    ...(price_changes && { price_changes: price_changes.map(all) }),
    max_completion_tokens: undefined,
    supported_parameters: [],
  };
}

/** Whether a model makes vectors. */
export function makesVectors({ output_modalities }: { output_modalities: readonly string[] }): boolean {
  return output_modalities.includes('embeddings');
}
