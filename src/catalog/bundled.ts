import type { Quirks } from '../providers/quirks.ts';
import type { Wire } from '../schemas/inner.ts';
import type { Prices } from '../schemas/prices.ts';
import type { PriceChange, PriceList, PriceTier } from './model.ts';

/** A capability of a model at one provider, as far as known; everything else follows from the provider's row. */
export type Ability = 'tools' | 'structured' | 'reasoning' | 'effort' | 'sampling';

export interface BundledEndpoint {
  provider: string;
  /** The part of the tag after the slash, such as `turbo`. */
  variant?: string;
  /** The upstream model. */
  model: string;
  /** Set if the endpoint speaks another wire than its provider's row. */
  dialect?: Wire;
  context?: number;
  prompt_max?: number;
  completion_max?: number;
  can: Ability[];
  /** The accepted input modalities, if fewer than the model's. */
  input?: string[];
  quantization?: string;
  /** Integer pico-USD; not set if unknown. */
  price?: Prices;
  tiers?: PriceTier[];
  service_tiers?: Record<string, PriceList>;
  price_changes?: PriceChange[];
  quirks?: Quirks;
}

export interface BundledModel {
  id: string;
  canonical_slug: string;
  name: string;
  created: number;
  context?: number;
  knowledge_cutoff?: string;
  input: string[];
  output: string[];
  tokenizer: string;
  hub?: string;
  endpoints: BundledEndpoint[];
}

/** The catalog of the package: `catalog/models.json`, one model per line, rebuilt by `catalog refresh` only. */
export interface BundledCatalog {
  format: 1;
  models: BundledModel[];
}

/** Writes one model per line, so that a refresh is a readable diff. */
export function printBundledCatalog(catalog: BundledCatalog): string {
  const lines = catalog.models.map((model) => JSON.stringify(model));
  return `{"format":${catalog.format},"models":[\n${lines.join(',\n')}\n]}\n`;
}

/** Reads the output of `printBundledCatalog`; throws for anything else. */
export function parseBundledCatalog(text: string): BundledCatalog {
  const value = JSON.parse(text) as Partial<BundledCatalog> | null;
  if (value?.format !== 1 || !Array.isArray(value.models)) {
    throw new Error('Not a catalog of this version: expected {"format":1,"models":[…]}');
  }
  return value as BundledCatalog;
}
