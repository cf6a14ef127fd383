import type { DatedPrices, PriceChange, PriceList, PriceTier } from '../catalog/model.ts';
import { type PriceFault, picoUsd } from '../catalog/price.ts';
import { limits } from '../limits.ts';
import { type Prices, tokenPrices, unitPrices } from '../schemas/prices.ts';
import type { PricingSection } from './file-schema.ts';
import type { Path, ReadFile } from './read-file.ts';

type ChangeSection = NonNullable<PricingSection['changes']>[number];
type ServiceTiersSection = NonNullable<PricingSection['service_tiers']>;
type ListSection = ServiceTiersSection[string];
type TierSection = NonNullable<ListSection['tiers']>[number];

const SERVICE_TIER = /^[a-z][a-z0-9_-]*$/;

const faults: Record<PriceFault, string> = {
  not_a_price: 'must be a price in USD, 0 or more',
  too_fine:
    'must not be finer than 0.000001 USD per million tokens. If it is the price of one token, add "per: token" to its pricing',
  too_high: `must not be above ${limits.unit_price_usd_max} USD for one unit`,
};

/** A file, with the unit of the token prices of one `pricing`. */
interface PricedFile extends ReadFile {
  token_price_per: 'unit' | 'million';
}

function readPrices(file: PricedFile, path: Path, section: Omit<TierSection, 'over'>): Prices {
  const prices: Prices = {};
  const read = (name: (typeof tokenPrices | typeof unitPrices)[number], per: 'unit' | 'million') => {
    const value = section[name];
    if (value === undefined) return;
    const pico = picoUsd(value, per);
    if (typeof pico === 'string') {
      const fault = pico === 'too_fine' && per === 'unit' ? 'must not have more than 12 decimals' : faults[pico];
      throw file.wrong([...path, name], fault);
    }
    prices[name] = pico;
  };
  for (const name of tokenPrices) read(name, file.token_price_per);
  for (const name of unitPrices) read(name, 'unit');
  if (section.discount !== undefined) prices.discount = section.discount;
  return prices;
}

/**
 * Prices that replace the plain ones. Every token price of the plain list must be repeated: a missing class would be charged at
 * another class's price or at the plain price, and neither is safe. Fees and the discount are kept.
 */
function insteadOf(plain: Prices, file: PricedFile, path: Path, section: Omit<TierSection, 'over'>): Prices {
  const prices = readPrices(file, path, section);
  const missing = tokenPrices.filter((name) => plain[name] !== undefined && prices[name] === undefined);
  if (missing.length > 0) throw file.wrong(path, `must have ${missing.join(', ')} too, because the plain price has`);
  for (const name of [...unitPrices, 'discount'] as const) {
    const fee = plain[name];
    if (prices[name] === undefined && fee !== undefined) prices[name] = fee;
  }
  return prices;
}

function readTiers(plain: Prices, file: PricedFile, path: Path, sections: TierSection[]): PriceTier[] {
  let last = 0;
  return sections.map((section, index) => {
    const at = [...path, index];
    if (section.over <= last) throw file.wrong([...at, 'over'], 'must be more than that of the tier before it');
    last = section.over;
    return { prompt_tokens_over: section.over, price: insteadOf(plain, file, at, section) };
  });
}

function withTiers(pricing: Prices, file: PricedFile, path: Path, { tiers }: ListSection): PriceList {
  if (tiers === undefined) return { pricing };
  return { pricing, price_tiers: readTiers(pricing, file, [...path, 'tiers'], tiers) };
}

function readServiceTiers(
  plain: ListSection,
  pricing: Prices,
  file: PricedFile,
  path: Path,
  sections: ServiceTiersSection,
): Record<string, PriceList> {
  const read = Object.entries(sections).map(([name, section]): [string, PriceList] => {
    const at = [...path, name];
    if (!SERVICE_TIER.test(name)) throw file.wrong(at, 'must be the name of a service tier such as flex or priority');
    if (plain.tiers !== undefined && section.tiers === undefined) {
      throw file.wrong(at, 'must have tiers, because the plain price has them');
    }
    const own = insteadOf(pricing, file, at, section);
    const missing = lacking(own);
    if (missing.length > 0) throw file.wrong(at, `must have ${missing.join(' and ')}`);
    return [name, withTiers(own, file, at, section)];
  });
  return Object.fromEntries(read);
}

/** The names of the required prices that are missing. */
function lacking(prices: Prices): string[] {
  return (['prompt', 'completion'] as const).filter((name) => prices[name] === undefined);
}

function readWhole(
  file: PricedFile,
  path: Path,
  section: ListSection & { service_tiers?: ServiceTiersSection },
): Omit<PriceChange, 'from_ms'> {
  const { service_tiers } = section;
  const pricing = readPrices(file, path, section);
  return {
    ...withTiers(pricing, file, path, section),
    ...(service_tiers === undefined
      ? {}
      : { service_tiers: readServiceTiers(section, pricing, file, [...path, 'service_tiers'], service_tiers) }),
  };
}

/** `Date` reads February 30 as a day of March. */
function isDay(text: string): boolean {
  const at = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().slice(0, 10) === text;
}

function readChanges(file: PricedFile, path: Path, sections: ChangeSection[]): PriceChange[] {
  let last = Number.NEGATIVE_INFINITY;
  return sections.map((section, index) => {
    const at = [...path, index];
    const fromMs = Date.parse(section.from);
    if (!isDay(section.from.slice(0, 10)) || Number.isNaN(fromMs))
      throw file.wrong([...at, 'from'], 'must be a valid day or time');
    if (fromMs <= last) throw file.wrong([...at, 'from'], 'must be later than that of the change before it');
    last = fromMs;
    const prices = readWhole(file, at, section);
    const missing = lacking(prices.pricing);
    if (missing.length > 0)
      throw file.wrong(at, `must have ${missing.join(' and ')}: a change repeats the whole price`);
    return { from_ms: fromMs, ...prices };
  });
}

/** Reads the declared prices of an endpoint: exact, and each list complete. */
export function declaredPricing(read: ReadFile, path: Path, section: PricingSection): Partial<DatedPrices> {
  const { changes, per, ...now } = section;
  const file: PricedFile = { ...read, token_price_per: per === 'token' ? 'unit' : 'million' };
  const priceChanges = changes && readChanges(file, [...path, 'changes'], changes);
  const { pricing, price_tiers, service_tiers } = readWhole(file, path, now);
  // Without a plain price, the declared parts are added to the bundled price.
  const hasPricing = Object.keys(pricing).length > 0 || (priceChanges === undefined && service_tiers === undefined);
  if (!hasPricing && price_tiers !== undefined)
    throw file.wrong([...path, 'tiers'], 'must be used together with a plain price');
  return {
    ...(hasPricing ? { pricing } : {}),
    ...(price_tiers === undefined ? {} : { price_tiers }),
    ...(service_tiers === undefined ? {} : { service_tiers }),
    ...(priceChanges === undefined ? {} : { price_changes: priceChanges }),
  };
}
