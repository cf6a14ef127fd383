import type { Prices } from '../schemas/prices.ts';
import type { Endpoint, EndpointPrices, PriceList } from './model.ts';

/** Prices with a zero completion price, which would otherwise count as missing: embeddings have no output tokens. */
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

/** An endpoint of an embedding model: it has no output tokens, and accepts no chat parameters. */
export function endpointOfVectors(endpoint: Endpoint): Endpoint {
  const { price_changes: priceChanges } = endpoint;
  return {
    ...all(endpoint),
    ...(priceChanges && { price_changes: priceChanges.map(all) }),
    max_completion_tokens: undefined,
    supported_parameters: [],
  };
}

/** Whether a model makes embeddings. */
export function makesVectors({
  output_modalities: outputModalities,
}: {
  output_modalities: readonly string[];
}): boolean {
  return outputModalities.includes('embeddings');
}
