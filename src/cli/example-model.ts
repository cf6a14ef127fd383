import type { Catalog } from '../catalog/catalog.ts';
import type { Endpoint, Model } from '../catalog/model.ts';
import type { Config } from '../config.ts';

/** Older models may be dearer, or about to be retired. */
const NEWEST = 12;

/**
 * A model for a first request: the sandbox's, the one of `GATEWAY_DEFAULT_MODEL`, or the cheapest of the newest that write texts.
 * Undefined: none can be called.
 */
export function exampleModel(config: Pick<Config, 'sandbox' | 'default_model'>, catalog: Catalog): string | undefined {
  const { default_model } = config;
  if (default_model !== undefined && catalog.find(default_model) !== undefined) return default_model;
  // A worker's configuration has its parent's sandbox among the providers.
  if (catalog.find('sandbox/story') !== undefined) return 'sandbox/story';
  const writers = catalog.models().filter((model) => writesText(model) && model.is_expired !== true);
  const newest = writers.filter((model) => priceOf(model) !== undefined).slice(0, NEWEST);
  const cheapest = newest.sort((a, b) => (priceOf(a) ?? 0) - (priceOf(b) ?? 0));
  return (cheapest[0] ?? writers[0])?.id;
}

/** Models that search, draw or speak may want more than a text. */
function writesText({ input_modalities, output_modalities }: Model): boolean {
  return input_modalities.includes('text') && output_modalities.length === 1 && output_modalities[0] === 'text';
}

/** What the cheapest endpoint asks for a token of output; undefined: no endpoint says. */
function priceOf({ endpoints }: Model): number | undefined {
  const prices = endpoints.map(({ pricing }: Endpoint) => pricing.completion).filter((price) => price !== undefined);
  return prices.length === 0 ? undefined : Math.min(...prices);
}
