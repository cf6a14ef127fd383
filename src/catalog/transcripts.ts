import type { Prices } from '../schemas/prices.ts';
import type { Endpoint } from './model.ts';

/** Whether a model does nothing but write down what is said. */
export function transcribes({
  output_modalities: outputModalities,
}: {
  output_modalities: readonly string[];
}): boolean {
  return outputModalities.includes('transcription');
}

/** What is paid by the second has no price of tokens that could be missing. */
function priced(prices: Prices): Prices {
  if (prices.audio_second === undefined) return prices;
  return { ...prices, prompt: prices.prompt ?? 0, completion: prices.completion ?? 0 };
}

/** An endpoint of a model that transcribes alone: it takes no parameter of chat but the temperature. */
export function endpointOfTranscripts(endpoint: Endpoint): Endpoint {
  const { price_changes: priceChanges } = endpoint;
  return {
    ...endpoint,
    pricing: priced(endpoint.pricing),
    ...(priceChanges && {
      price_changes: priceChanges.map((change) => ({ ...change, pricing: priced(change.pricing) })),
    }),
    supported_parameters: ['temperature'],
  };
}
