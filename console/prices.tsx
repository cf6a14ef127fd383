import type { Pricing } from './api.gen.ts';
import { perMillion } from './format.ts';

/** The classes of prices: their labels, and the unit of those that do not count tokens. */
export const PRICE_CLASSES = {
  prompt: ['Input'],
  completion: ['Output'],
  input_cache_read: ['Cache read'],
  input_cache_write: ['Cache write'],
  input_cache_write_1h: ['Cache write, 1 h'],
  internal_reasoning: ['Reasoning'],
  image_token: ['Image input'],
  image_output: ['Image output'],
  audio: ['Audio input'],
  audio_output: ['Audio output'],
  input_audio_cache: ['Cached audio'],
  request: ['Request', 'request'],
  image: ['Image', 'image'],
  web_search: ['Web search', 'search'],
  audio_second: ['Audio', 's'],
} as const satisfies Partial<Record<keyof Pricing, readonly [label: string, unit?: string]>>;
export type PriceClass = keyof typeof PRICE_CLASSES;

export const priceClasses = Object.keys(PRICE_CLASSES) as PriceClass[];

/** The price of a class: of a million tokens, or of one unit. */
export function priceOf(pricing: Pricing, name: PriceClass): string {
  const price = pricing[name];
  if (price === undefined) return '–';
  if (Number(price) < 0) return 'not known';
  const [, unit] = PRICE_CLASSES[name] as readonly [string, string?];
  return unit === undefined ? perMillion(price) : `$${price} / ${unit}`;
}

/** The changed fields that the API names, in words. */
export function changeText(name: string): string {
  if (name === 'price_tiers') return 'Prices of long prompts';
  if (name === 'discount') return 'Discount';
  if (name.startsWith('service_tiers.')) return `Service tier ${name.slice('service_tiers.'.length)}`;
  return PRICE_CLASSES[name as PriceClass]?.[0] ?? name;
}

/** The prices of all classes that have one. */
export function Prices({ of }: { of: Pricing }) {
  return (
    <ul class="prices">
      {priceClasses.flatMap((name) =>
        of[name] === undefined
          ? []
          : [
              <li key={name}>
                <span class="dim">{PRICE_CLASSES[name][0]}</span> <span class="number">{priceOf(of, name)}</span>
              </li>,
            ],
      )}
      {of.discount !== undefined && of.discount > 0 && (
        <li>
          <span class="dim">Discount</span> <span class="number">{+(of.discount * 100).toFixed(4)} %</span>
        </li>
      )}
    </ul>
  );
}
