import { limits } from '../../limits.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import type { Prices } from '../../schemas/prices.ts';
import type { ChargeLine } from '../records.ts';

/** What an attempt costs, with the arithmetic that led there. */
export interface Charge {
  cost_nano: number;
  /** The cost of the input classes, and of the output classes; fees for requests, images and searches are in neither. */
  input_nano: number;
  output_nano: number;
  /** What caching saved (negative: cost more) compared to the plain input price; null without caching. */
  cache_discount_nano: number | null;
  lines: ChargeLine[];
  /** A price is missing: the full cost is not known, and `cost_nano` is the known part. */
  is_unpriced: boolean;
}

/** The usage of one model in an attempt, and the model's prices. */
export interface PricedUsage {
  usage: TokenClasses;
  prices: Prices;
  /** Images of the prompt, for models priced by the image. */
  images?: number;
  /** The model's name at the provider, if it is not the attempt's own model. */
  model?: string;
}

const MILLION = 1_000_000;
const PICO_PER_NANO = 1000;
const ATTO_PER_PICO = 1_000_000n;
const ATTO_PER_NANO = 1_000_000_000n;
const MOST_NANO = BigInt(limits.charge_usd_max) * ATTO_PER_NANO;

/** The part of the list price that is paid, in millionths. A discount is a fraction with at most six decimals. */
export function afterDiscountPpm({ discount }: Prices): number {
  return MILLION - Math.round((discount ?? 0) * MILLION);
}

/** The amount of a line in atto-USD (10^-18): exact, or rounded up to one if the price is for many units. */
export function amountAtto({ units, unit_price_pico, discount_ppm, price_units = 1 }: ChargeLine): bigint {
  const product = BigInt(units) * BigInt(unit_price_pico) * BigInt(MILLION - (discount_ppm ?? 0));
  if (price_units === 1) return product;
  const per = BigInt(price_units);
  return (product + per - 1n) / per;
}

/**
 * The sum of the lines of all classes or of one side, in nano-USD: the name of a class of tokens begins with its side, sound is input, and
 * fees are neither. The sum is exact, and rounded up once at the end, so that the gateway does not lose a
 * fraction. Whole pico-USD are summed in a number while it is safe, which covers almost every attempt, and the rest in atto-USD.
 */
function nanoOf(lines: readonly ChargeLine[], prefix: '' | 'in_' | 'out_'): number {
  let wholePico = 0;
  let restAtto = 0n;
  for (const line of lines) {
    const isCounted = line.class.startsWith(prefix) || (prefix === 'in_' && line.class === 'audio_second');
    if (!isCounted) continue;
    const { units, unit_price_pico, discount_ppm, price_units } = line;
    const pico = wholePico + units * unit_price_pico;
    const isWhole = Number.isSafeInteger(units) && Number.isSafeInteger(unit_price_pico);
    const isPlain = discount_ppm === undefined && price_units === undefined && isWhole;
    if (isPlain && Number.isSafeInteger(pico)) wholePico = pico;
    else restAtto += amountAtto(line);
  }
  if (restAtto === 0n) {
    const restPico = wholePico % PICO_PER_NANO;
    return (wholePico - restPico) / PICO_PER_NANO + (restPico > 0 ? 1 : 0);
  }
  const atto = BigInt(wholePico) * ATTO_PER_PICO + restAtto;
  const nano = (atto + ATTO_PER_NANO - 1n) / ATTO_PER_NANO;
  return Number(nano > MOST_NANO ? MOST_NANO : nano);
}

/** Adds the line of one class, if it costs anything. */
function addLine(
  lines: ChargeLine[],
  { prices, model }: PricedUsage,
  name: string,
  units: number | undefined,
  unitPricePico: number,
  priceUnits = 1,
): void {
  if (units === undefined || units <= 0 || unitPricePico <= 0) return;
  const line: ChargeLine = { class: name, units, unit_price_pico: unitPricePico };
  if (priceUnits !== 1) line.price_units = priceUnits;
  const discountPpm = prices.discount === undefined ? 0 : MILLION - afterDiscountPpm(prices);
  if (discountPpm > 0) line.discount_ppm = discountPpm;
  if (model !== undefined) line.model = model;
  lines.push(line);
}

/** Adds the lines of everything that costs something. A class without a price of its own falls back to `prompt` or `completion`. */
function addLines(lines: ChargeLine[], work: PricedUsage): void {
  const { usage, prices, images, model } = work;
  const prompt = prices.prompt ?? 0;
  const completion = prices.completion ?? 0;
  const write = prices.input_cache_write ?? prompt;
  addLine(lines, work, 'in_uncached', usage.in_uncached, prompt);
  addLine(lines, work, 'in_cache_read', usage.in_cache_read, prices.input_cache_read ?? prompt);
  addLine(lines, work, 'in_cache_write_5m', usage.in_cache_write_5m, write);
  addLine(lines, work, 'in_cache_write_1h', usage.in_cache_write_1h, prices.input_cache_write_1h ?? write);
  addLine(lines, work, 'in_audio', usage.in_audio, prices.audio ?? prompt);
  addLine(lines, work, 'in_image', usage.in_image, prices.image_token ?? prompt);
  addLine(lines, work, 'audio_second', usage.audio_ms, prices.audio_second ?? 0, 1000);
  addLine(lines, work, 'out_text', usage.out_text, completion);
  addLine(lines, work, 'out_reasoning', usage.out_reasoning, prices.internal_reasoning ?? completion);
  addLine(lines, work, 'out_audio', usage.out_audio, prices.audio_output ?? completion);
  addLine(lines, work, 'out_image', usage.out_image, prices.image_output ?? completion);
  // The fee of a request is charged once an attempt, not for every model that took part.
  addLine(lines, work, 'request', model === undefined ? 1 : 0, prices.request ?? 0);
  addLine(lines, work, 'image', images, prices.image ?? 0);
  addLine(lines, work, 'web_search', usage.counts?.web_search, prices.web_search ?? 0);
}

/** Prices all work of an attempt: integer arithmetic, rounded up once, at the end. */
export function charge(works: readonly PricedUsage[]): Charge {
  const lines: ChargeLine[] = [];
  let isUnpriced = false;
  for (const work of works) {
    addLines(lines, work);
    isUnpriced ||= work.prices.prompt === undefined || work.prices.completion === undefined;
  }
  const costNano = nanoOf(lines, '');
  const inputNano = Math.min(nanoOf(lines, 'in_'), costNano);
  return {
    cost_nano: costNano,
    input_nano: inputNano,
    output_nano: Math.min(nanoOf(lines, 'out_'), costNano - inputNano),
    cache_discount_nano: cacheDiscount(works),
    lines,
    is_unpriced: isUnpriced,
  };
}

function cacheDiscount(works: readonly PricedUsage[]): number | null {
  let saved = 0n;
  let isCached = false;
  for (const { usage, prices } of works) {
    const read = usage.in_cache_read ?? 0;
    const write5m = usage.in_cache_write_5m ?? 0;
    const write1h = usage.in_cache_write_1h ?? 0;
    if (read + write5m + write1h === 0) continue;
    isCached = true;
    const prompt = prices.prompt ?? 0;
    const write = prices.input_cache_write ?? prompt;
    const pico =
      BigInt(read) * BigInt(prompt - (prices.input_cache_read ?? prompt)) +
      BigInt(write5m) * BigInt(prompt - write) +
      BigInt(write1h) * BigInt(prompt - (prices.input_cache_write_1h ?? write));
    saved += pico * BigInt(afterDiscountPpm(prices));
  }
  return isCached ? Number(saved / ATTO_PER_NANO) : null;
}
