import type { Quirks } from '../providers/quirks.ts';
import type { Wire } from '../schemas/inner.ts';
import type { Category } from '../schemas/model.ts';
import type { Prices } from '../schemas/prices.ts';

/** The price list that holds from a number of prompt tokens on, in place of the endpoint's plain one. */
export interface PriceTier {
  prompt_tokens_over: number;
  price: Prices;
}

/** Prices for prompts of any length. */
export interface PriceList {
  pricing: Prices;
  /** Other prices for long prompts, ascending; absent: none. */
  price_tiers?: readonly PriceTier[];
}

/** Everything that an endpoint asks. */
export interface EndpointPrices extends PriceList {
  /** What it asks in place of that where it serves in a tier of its own, by the tier's name: `flex`, `priority`. */
  service_tiers?: Readonly<Record<string, PriceList>>;
}

/** What an endpoint asks from a moment on. */
export interface PriceChange extends EndpointPrices {
  /** Milliseconds since 1970. */
  from_ms: number;
}

/** Everything that an endpoint asks, now and later. */
export interface DatedPrices extends EndpointPrices {
  /** Ascending. `Catalog.at` puts them in force. */
  price_changes?: readonly PriceChange[];
}

/** What a client names: `author/slug`. */
export interface Model {
  /** A local server lists it; nothing else is known of it. */
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
  /** Its last day is over: `Catalog.at` tells. */
  is_expired?: true;
  model_hub_id: string | null;
  /** What it is known to be good for; absent: nothing is known. */
  categories?: readonly Category[];
  /** Whether its author lets others train on its output; absent: not known. */
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
  /** What the provider calls the model. */
  upstream_model: string;
  /** Where it speaks another wire than its provider's row. */
  dialect?: Wire;
  context_length: number | undefined;
  max_completion_tokens: number | undefined;
  max_prompt_tokens: number | undefined;
  /** Undefined: all. */
  supported_parameters: readonly string[] | undefined;
  quantization: string;
  supports_implicit_caching: boolean;
  input_modalities: readonly string[];
  /** The provider's quirks with the model's own over them. */
  quirks: Quirks;
}
