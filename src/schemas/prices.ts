/** Price names that count tokens: stated per million tokens where people write them. The others are stated per unit. */
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

/** Integer pico-USD per token, image, request, search or second of sound that is transcribed. An absent class has no price of its own. */
export type Prices = { [name in (typeof tokenPrices | typeof unitPrices)[number]]?: number } & {
  /** A fraction taken off, 0 to 1. */
  discount?: number;
};

/** Whether a price list says enough to charge by: without `prompt` or `completion` the price is unknown, which is not zero. */
export function isPriced(prices: Prices): boolean {
  return prices.prompt !== undefined && prices.completion !== undefined;
}
