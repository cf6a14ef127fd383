import type { Catalog } from '../catalog/catalog.ts';
import type { Endpoint, Model } from '../catalog/model.ts';
import type { Config } from '../config.ts';

/** Older models may be dearer, or about to be retired. */
const NEWEST = 12;

/** A short request, in tokens. */
const PROMPT = 20;
const ANSWER = 16;

/** What a short request to an endpoint, of words or a second of sound, may cost, pico-USD; undefined: its price is not known. */
function costOf({ pricing: { prompt, completion, request = 0, audio_second = 0 } }: Endpoint): number | undefined {
  if (prompt === undefined || completion === undefined) return audio_second || undefined;
  return request + PROMPT * prompt + ANSWER * completion + audio_second;
}

function leastCostOf(endpoints: readonly Endpoint[]): number | undefined {
  const costs = endpoints.map(costOf).filter((cost) => cost !== undefined);
  return costs.length === 0 ? undefined : Math.min(...costs);
}

/** Of which output a short request can be made. */
export type CheapOutput = 'text' | 'embeddings' | 'transcription';

/**
 * The cheapest of the newest models that give what `output` says, and take texts, or sound to transcribe; `provider`: at this one.
 * Undefined: there is none of a known price.
 */
export function cheapModel(
  catalog: Pick<Catalog, 'models'>,
  output: CheapOutput,
  provider?: string,
): Model | undefined {
  const input = output === 'transcription' ? 'audio' : 'text';
  const priced = catalog.models().flatMap((model) => {
    const { input_modalities, output_modalities, is_expired, endpoints } = model;
    const is_fit = input_modalities.includes(input) && output_modalities.join() === output && is_expired !== true;
    const cost = is_fit
      ? leastCostOf(endpoints.filter((endpoint) => provider === undefined || endpoint.provider === provider))
      : undefined;
    return cost === undefined ? [] : [{ model, cost }];
  });
  return priced.slice(0, NEWEST).sort((a, b) => a.cost - b.cost)[0]?.model;
}

/** A model for a first request: that of `GATEWAY_DEFAULT_MODEL`, the sandbox's, or a cheap one. Undefined: none is known. */
export function exampleModel({ default_model }: Pick<Config, 'default_model'>, catalog: Catalog): string | undefined {
  if (default_model !== undefined && catalog.find(default_model) !== undefined) return default_model;
  return catalog.find('sandbox/story')?.id ?? cheapModel(catalog, 'text')?.id;
}
