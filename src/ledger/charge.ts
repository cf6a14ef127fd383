import type { TokenClasses } from '../schemas/inner.ts';
import type { Prices } from '../schemas/prices.ts';
import type { ChargeLine } from './records.ts';

/** What a call costs, with the arithmetic that led there. */
export interface Charge {
  cost_nano: number;
  /** The share of the input classes, of the output classes; request and search fees are in neither. */
  input_nano: number;
  output_nano: number;
  /** What caching saved (negative: what it cost more) against the plain input price; null without caching. */
  cache_discount_nano: number | null;
  lines: ChargeLine[];
}

const PICO_PER_NANO = 1000n;

/** Up, never down: the gateway does not lose a fraction to rounding. */
function toNano(pico: bigint): number {
  const nano = (pico + PICO_PER_NANO - 1n) / PICO_PER_NANO;
  return Number(nano);
}

interface Priced {
  class: string;
  side: 'input' | 'output' | 'fee';
  units: number;
  price: number;
}

/** Every class that costs something, with its unit price. A class without a price of its own falls back to `prompt` or `completion`. */
function priced(usage: TokenClasses, prices: Prices, images: number): Priced[] {
  const prompt = prices.prompt ?? 0;
  const completion = prices.completion ?? 0;
  const write = prices.input_cache_write ?? prompt;
  const found: Priced[] = [];
  const add = (name: string, side: Priced['side'], units: number | undefined, price: number) => {
    if (units !== undefined && units > 0 && price > 0) found.push({ class: name, side, units, price });
  };
  add('in_uncached', 'input', usage.in_uncached, prompt);
  add('in_cache_read', 'input', usage.in_cache_read, prices.input_cache_read ?? prompt);
  add('in_cache_write_5m', 'input', usage.in_cache_write_5m, write);
  add('in_cache_write_1h', 'input', usage.in_cache_write_1h, prices.input_cache_write_1h ?? write);
  add('in_audio', 'input', usage.in_audio, prices.audio ?? prompt);
  add('in_image', 'input', usage.in_image, prices.image_token ?? prompt);
  add('out_text', 'output', usage.out_text, completion);
  add('out_reasoning', 'output', usage.out_reasoning, prices.internal_reasoning ?? completion);
  add('out_audio', 'output', usage.out_audio, prices.audio_output ?? completion);
  add('out_image', 'output', usage.out_image, prices.image_output ?? completion);
  add('request', 'fee', 1, prices.request ?? 0);
  add('image', 'fee', images, prices.image ?? 0);
  add('web_search', 'fee', usage.counts?.web_search, prices.web_search ?? 0);
  return found;
}

/** Prices a call's token classes: integer arithmetic, rounded up once, at the end. `images` counts the prompt's, for models priced by the image. */
export function charge(usage: TokenClasses, prices: Prices, { images }: { images: number } = { images: 0 }): Charge {
  const lines: ChargeLine[] = [];
  const sums = { input: 0n, output: 0n, fee: 0n };
  for (const item of priced(usage, prices, images)) {
    const amount = BigInt(item.units) * BigInt(item.price);
    sums[item.side] += amount;
    lines.push({ class: item.class, units: item.units, unit_price_pico: item.price, amount_pico: Number(amount) });
  }
  // A discount is a fraction with at most six decimals; it becomes an integer before it meets money.
  const kept = 1_000_000n - BigInt(Math.round((prices.discount ?? 0) * 1_000_000));
  const after = (pico: bigint) => (kept === 1_000_000n ? pico : (pico * kept + 999_999n) / 1_000_000n);
  const cost_nano = toNano(after(sums.input + sums.output + sums.fee));
  const input_nano = Math.min(toNano(after(sums.input)), cost_nano);
  return {
    cost_nano,
    input_nano,
    output_nano: Math.min(toNano(after(sums.output)), cost_nano - input_nano),
    cache_discount_nano: cacheDiscount(usage, prices),
    lines,
  };
}

function cacheDiscount(usage: TokenClasses, prices: Prices): number | null {
  const read = usage.in_cache_read ?? 0;
  const write5m = usage.in_cache_write_5m ?? 0;
  const write1h = usage.in_cache_write_1h ?? 0;
  if (read + write5m + write1h === 0) return null;
  const prompt = prices.prompt ?? 0;
  const write = prices.input_cache_write ?? prompt;
  const saved =
    BigInt(read) * BigInt(prompt - (prices.input_cache_read ?? prompt)) +
    BigInt(write5m) * BigInt(prompt - write) +
    BigInt(write1h) * BigInt(prompt - (prices.input_cache_write_1h ?? write));
  return Number(saved / PICO_PER_NANO);
}
