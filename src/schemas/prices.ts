/** Price names that count tokens. Settings state them per million tokens, all others per unit. */
export const tokenPrices = [
  'prompt',
  'completion',
  'image_token',
  'image_output',
  'audio',
  'audio_output',
  'input_audio_cache',
  'input_cache_read',
  'input_cache_write',
  'input_cache_write_1h',
  'internal_reasoning',
] as const;
export const unitPrices = ['request', 'image', 'web_search', 'audio_second'] as const;

/** Prices in integer pico-USD per token, image, request, search or second of transcribed audio. A class that is not set has no price of its own. */
export type Prices = { [name in (typeof tokenPrices | typeof unitPrices)[number]]?: number } & {
  /** The fraction that is deducted, 0 to 1. */
  discount?: number;
};

/** Whether a price list is complete enough to charge by. Without `prompt` or `completion` the price is unknown, which is not zero. */
export function isPriced(prices: Prices): boolean {
  return prices.prompt !== undefined && prices.completion !== undefined;
}
