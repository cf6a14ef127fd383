import type { Prices } from '../schemas/prices.ts';
import type { Endpoint } from './model.ts';

/** Whether a model only transcribes. */
export function transcribes({
  output_modalities: outputModalities,
}: {
  output_modalities: readonly string[];
}): boolean {
  return outputModalities.includes('transcription');
}

/** Prices per second, with zero token prices: otherwise these would count as missing. */
function priced(prices: Prices): Prices {
  if (prices.audio_second === undefined) return prices;
  return { ...prices, prompt: prices.prompt ?? 0, completion: prices.completion ?? 0 };
}

/** An endpoint of a transcription model: of the chat parameters it accepts only the temperature. */
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
