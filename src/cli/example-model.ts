import type { Catalog } from '../catalog/catalog.ts';
import type { Endpoint, Model } from '../catalog/model.ts';
import type { Config } from '../config.ts';

/** How many of the newest models are considered: older ones may be more expensive, or about to be retired. */
const NEWEST = 12;

/** The size of a short request, in tokens. */
const PROMPT = 20;
const ANSWER = 16;

/** The cost of a short request of text, or of a second of sound, in pico-USD; undefined if the price is not known. */
function costOf({ pricing: { prompt, completion, request = 0, audio_second = 0 } }: Endpoint): number | undefined {
  if (prompt === undefined || completion === undefined) return audio_second || undefined;
  return request + PROMPT * prompt + ANSWER * completion + audio_second;
}

function leastCostOf(endpoints: readonly Endpoint[]): number | undefined {
  const costs = endpoints.map(costOf).filter((cost) => cost !== undefined);
  return costs.length === 0 ? undefined : Math.min(...costs);
}

/** The kinds of output that a short request can ask for. */
export type CheapOutput = 'text' | 'embeddings' | 'transcription';

/**
 * The cheapest of the newest models with the given output that accept text, or sound to transcribe; of one provider if
 * `provider` is set. Undefined if there is none with a known price.
 */
export function cheapModel(
  catalog: Pick<Catalog, 'models'>,
  output: CheapOutput,
  provider?: string,
): Model | undefined {
  const input = output === 'transcription' ? 'audio' : 'text';
  const priced = catalog.models().flatMap((model) => {
    const { input_modalities, output_modalities, is_expired, endpoints } = model;
    const isFit = input_modalities.includes(input) && output_modalities.join() === output && is_expired !== true;
    const cost = isFit
      ? leastCostOf(endpoints.filter((endpoint) => provider === undefined || endpoint.provider === provider))
      : undefined;
    return cost === undefined ? [] : [{ model, cost }];
  });
  return priced.slice(0, NEWEST).sort((a, b) => a.cost - b.cost)[0]?.model;
}

/** A model for a first request: that of `GATEWAY_DEFAULT_MODEL`, the sandbox's, or a cheap one. Undefined if none is known. */
export function exampleModel({ default_model }: Pick<Config, 'default_model'>, catalog: Catalog): string | undefined {
  if (default_model !== undefined && catalog.find(default_model) !== undefined) return default_model;
  return catalog.find('sandbox/story')?.id ?? cheapModel(catalog, 'text')?.id;
}
