import type { Quirks } from '../providers/quirks.ts';
import type { Wire } from '../schemas/inner.ts';
import type { Category } from '../schemas/model.ts';
import type { Prices } from '../schemas/prices.ts';

/** The prices that apply above a number of prompt tokens, instead of the plain ones. */
export interface PriceTier {
  prompt_tokens_over: number;
  price: Prices;
}

/** Prices for prompts of any length. */
export interface PriceList {
  pricing: Prices;
  /** Other prices for long prompts, ascending; not set if there are none. */
  price_tiers?: readonly PriceTier[];
}

/** All prices of an endpoint. */
export interface EndpointPrices extends PriceList {
  /** Prices of service tiers that replace the plain ones, by the tier's name: `flex`, `priority`. */
  service_tiers?: Readonly<Record<string, PriceList>>;
}

/** The prices of an endpoint from a moment on. */
export interface PriceChange extends EndpointPrices {
  /** Milliseconds since 1970. */
  from_ms: number;
}

/** All prices of an endpoint, current and future. */
export interface DatedPrices extends EndpointPrices {
  /** Ascending. `Catalog.at` applies them. */
  price_changes?: readonly PriceChange[];
}

/** A model that clients name as `author/slug`. */
export interface Model {
  /** Set for a model that a local server lists; nothing else is known of it. */
  is_discovered?: true;
  id: string;
  /** Never changes, even if `id` later means a newer version. */
  canonical_slug: string;
  name: string;
  description: string;
  /** Unix seconds. */
  created: number;
  context_length: number | undefined;
  input_modalities: readonly string[];
  output_modalities: readonly string[];
  tokenizer: string;
  instruct_type: string | null;
  /** YYYY-MM-DD. */
  knowledge_cutoff: string | null;
  expiration_date: string | null;
  /** Set by `Catalog.at` once its last day is over. */
  is_expired?: true;
  model_hub_id: string | null;
  /** The purposes that it is known to suit; not set if unknown. */
  categories?: readonly Category[];
  /** Whether its author allows training on its output; not set if unknown. */
  is_distillable?: boolean | undefined;
  endpoints: readonly Endpoint[];
}

/** One model at one provider, with its limits and the prices in force. */
export interface Endpoint extends DatedPrices {
  /** Unique: `<tag>|<model id>`. */
  id: string;
  model: string;
  /** Provider slug. */
  provider: string;
  /** Provider slug with an optional variant after a slash: `deepinfra/turbo`. */
  tag: string;
  /** The provider's name for the model. */
  upstream_model: string;
  /** Set if it speaks another wire than its provider's row. */
  dialect?: Wire;
  context_length: number | undefined;
  max_completion_tokens: number | undefined;
  max_prompt_tokens: number | undefined;
  /** Undefined for all. */
  supported_parameters: readonly string[] | undefined;
  quantization: string;
  supports_implicit_caching: boolean;
  input_modalities: readonly string[];
  /** The provider's quirks, overridden by the model's own. */
  quirks: Quirks;
}
