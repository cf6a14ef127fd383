import type { Quirks } from '../providers/quirks.ts';
import type { Wire } from '../schemas/inner.ts';
import type { Prices } from '../schemas/prices.ts';
import type { PriceChange, PriceList, PriceTier } from './model.ts';

/** What a model can do at one provider, as far as facts tell; anything else follows from the provider's row. */
export type Ability = 'tools' | 'structured' | 'reasoning' | 'effort' | 'sampling';

export interface BundledEndpoint {
  provider: string;
  /** What stands after the slash of the tag, such as `turbo`. */
  variant?: string;
  /** The upstream model. */
  model: string;
  /** Where the endpoint speaks another wire than its provider's row. */
  dialect?: Wire;
  context?: number;
  prompt_max?: number;
  completion_max?: number;
  can: Ability[];
  /** What it takes, where that is less than the model does. */
  input?: string[];
  quantization?: string;
  /** Integer pico-USD; absent: not known. */
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

/** The facts that come with the program: `catalog/models.json`, one model a line, rebuilt by `catalog refresh` only. */
export interface BundledCatalog {
  format: 1;
  models: BundledModel[];
}

/** Writes one model a line, so that a refresh shows as a readable difference. */
export function printBundledCatalog(catalog: BundledCatalog): string {
  const lines = catalog.models.map((model) => JSON.stringify(model));
  return `{"format":${catalog.format},"models":[\n${lines.join(',\n')}\n]}\n`;
}

/** Reads what `printBundledCatalog` wrote; throws for anything else. */
export function parseBundledCatalog(text: string): BundledCatalog {
  const value = JSON.parse(text) as Partial<BundledCatalog> | null;
  if (value?.format !== 1 || !Array.isArray(value.models)) {
    throw new Error('Not a catalog of this version: expected {"format":1,"models":[…]}');
  }
  return value as BundledCatalog;
}
