import { limits } from '../limits.ts';
import type { TokenClasses } from '../schemas/inner.ts';
import type { Prices } from '../schemas/prices.ts';
import type { ChargeLine } from './records.ts';

/** What an attempt costs, with the arithmetic that led there. */
export interface Charge {
  cost_nano: number;
  /** The share of the input classes, of the output classes; request, image and search fees are in neither. */
  input_nano: number;
  output_nano: number;
  /** What caching saved (negative: what it cost more) against the plain input price; null without caching. */
  cache_discount_nano: number | null;
  lines: ChargeLine[];
  /** A price is missing, so that the cost is not known: `cost_nano` is the part that is. */
  is_unpriced: boolean;
}

/** What one model did in the course of an attempt, and what it asks for that. */
export interface Work {
  usage: TokenClasses;
  prices: Prices;
  /** Images of the prompt, for models priced by the image. */
  images?: number;
  /** The model's name at the provider, where it is not the attempt's own. */
  model?: string;
}

const MILLION = 1_000_000;
/** A price in pico-USD times a share in millionths is an amount in atto-USD: nothing is rounded before the end. */
const ATTO_PER_NANO = 1_000_000_000n;
const MOST_NANO = BigInt(limits.charge_usd_max) * ATTO_PER_NANO;

type Side = 'input' | 'output' | 'fee';

/** What of the list price is paid, in millionths. A discount is a fraction with at most six decimals. */
function keptPpm({ discount }: Prices): number {
  return MILLION - Math.round((discount ?? 0) * MILLION);
}

/** The lines of what costs something. A class without a price of its own falls back to `prompt` or `completion`. */
function linesOf({ usage, prices, images, model }: Work, add: (side: Side, line: ChargeLine) => void): void {
  const prompt = prices.prompt ?? 0;
  const completion = prices.completion ?? 0;
  const write = prices.input_cache_write ?? prompt;
  const discount_ppm = MILLION - keptPpm(prices);
  const line = (side: Side, name: string, units: number | undefined, unit_price_pico: number, price_units = 1) => {
    if (units === undefined || units <= 0 || unit_price_pico <= 0) return;
    const found: ChargeLine = { class: name, units, unit_price_pico };
    if (price_units !== 1) found.price_units = price_units;
    if (discount_ppm > 0) found.discount_ppm = discount_ppm;
    if (model !== undefined) found.model = model;
    add(side, found);
  };
  line('input', 'in_uncached', usage.in_uncached, prompt);
  line('input', 'in_cache_read', usage.in_cache_read, prices.input_cache_read ?? prompt);
  line('input', 'in_cache_write_5m', usage.in_cache_write_5m, write);
  line('input', 'in_cache_write_1h', usage.in_cache_write_1h, prices.input_cache_write_1h ?? write);
  line('input', 'in_audio', usage.in_audio, prices.audio ?? prompt);
  line('input', 'in_image', usage.in_image, prices.image_token ?? prompt);
  line('input', 'audio_second', usage.audio_ms, prices.audio_second ?? 0, 1000);
  line('output', 'out_text', usage.out_text, completion);
  line('output', 'out_reasoning', usage.out_reasoning, prices.internal_reasoning ?? completion);
  line('output', 'out_audio', usage.out_audio, prices.audio_output ?? completion);
  line('output', 'out_image', usage.out_image, prices.image_output ?? completion);
  // The fee of the request is the attempt's own, not once more that of every model that had a part in it.
  line('fee', 'request', model === undefined ? 1 : 0, prices.request ?? 0);
  line('fee', 'image', images, prices.image ?? 0);
  line('fee', 'web_search', usage.counts?.web_search, prices.web_search ?? 0);
}

/** What a line comes to, in atto-USD (10^-18): exact, but for less than one of it where a price is of many units. */
export function amountAtto({ units, unit_price_pico, discount_ppm, price_units = 1 }: ChargeLine): bigint {
  const product = BigInt(units) * BigInt(unit_price_pico) * BigInt(MILLION - (discount_ppm ?? 0));
  if (price_units === 1) return product;
  const per = BigInt(price_units);
  return (product + per - 1n) / per;
}

/** Up, never down: the gateway does not lose a fraction to rounding. */
function toNano(atto: bigint): number {
  const nano = (atto + ATTO_PER_NANO - 1n) / ATTO_PER_NANO;
  return Number(nano > MOST_NANO ? MOST_NANO : nano);
}

/** Prices everything that was done in an attempt: integer arithmetic, rounded up once, at the end. */
export function charge(works: readonly Work[]): Charge {
  const lines: ChargeLine[] = [];
  const sums = { input: 0n, output: 0n, fee: 0n };
  for (const work of works) {
    linesOf(work, (side, line) => {
      sums[side] += amountAtto(line);
      lines.push(line);
    });
  }
  const cost_nano = toNano(sums.input + sums.output + sums.fee);
  const input_nano = Math.min(toNano(sums.input), cost_nano);
  return {
    cost_nano,
    input_nano,
    output_nano: Math.min(toNano(sums.output), cost_nano - input_nano),
    cache_discount_nano: cacheDiscount(works),
    lines,
    is_unpriced: works.some(({ prices }) => prices.prompt === undefined || prices.completion === undefined),
  };
}

function cacheDiscount(works: readonly Work[]): number | null {
  let saved = 0n;
  let is_cached = false;
  for (const { usage, prices } of works) {
    const read = usage.in_cache_read ?? 0;
    const write5m = usage.in_cache_write_5m ?? 0;
    const write1h = usage.in_cache_write_1h ?? 0;
    if (read + write5m + write1h === 0) continue;
    is_cached = true;
    const prompt = prices.prompt ?? 0;
    const write = prices.input_cache_write ?? prompt;
    const pico =
      BigInt(read) * BigInt(prompt - (prices.input_cache_read ?? prompt)) +
      BigInt(write5m) * BigInt(prompt - write) +
      BigInt(write1h) * BigInt(prompt - (prices.input_cache_write_1h ?? write));
    saved += pico * BigInt(keptPpm(prices));
  }
  return is_cached ? Number(saved / ATTO_PER_NANO) : null;
}
