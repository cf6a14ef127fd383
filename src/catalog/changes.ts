import { type Prices, tokenPrices, unitPrices } from '../schemas/prices.ts';
import type { Catalog } from './catalog.ts';
import type { DatedPrices, Endpoint, EndpointPrices, Model } from './model.ts';
import { usdText } from './price.ts';

/** One difference between two catalogs. */
export interface CatalogChange {
  what: 'provider' | 'model' | 'endpoint' | 'price';
  how: 'added' | 'removed' | 'changed';
  name: string;
  /** The changed fields and prices; never a credential. */
  detail?: string;
}

/** The differences between two catalogs: providers, models, endpoints, and their prices. Pure. */
export function catalogChanges(before: Catalog, after: Catalog): CatalogChange[] {
  const [old, now] = [by(before.endpoints(), 'id'), by(after.endpoints(), 'id')];
  // Most endpoints are equal: they are removed first.
  for (const [id, endpoint] of now) {
    if (!isSame(old.get(id), endpoint)) continue;
    old.delete(id);
    now.delete(id);
  }
  return [
    ...compared('provider', by(before.providers(), 'slug'), by(after.providers(), 'slug')),
    ...compared('model', by(before.models().map(modelFacts), 'id'), by(after.models().map(modelFacts), 'id')),
    ...compared(
      'endpoint',
      by([...old.values()].map(endpointFacts), 'id'),
      by([...now.values()].map(endpointFacts), 'id'),
    ),
    ...[...now].flatMap(([name, endpoint]): CatalogChange[] => {
      const detail = priceChanges(old.get(name) ?? endpoint, endpoint);
      return detail === undefined ? [] : [{ what: 'price', how: 'changed', name, detail }];
    }),
  ];
}

/** A change as one line: `+ model acme/fast`, `~ price acme|acme/fast: prompt 0.25 -> 0.3`. */
export function changeLine({ what, how, name, detail }: CatalogChange): string {
  const sign = how === 'added' ? '+' : how === 'removed' ? '-' : '~';
  return `${sign} ${what} ${name}${detail === undefined ? '' : `: ${detail}`}`;
}

function by<K extends string, T extends Record<K, string>>(items: readonly T[], key: K): Map<string, T> {
  return new Map(items.map((item) => [item[key], item]));
}

function compared<T extends object>(
  what: CatalogChange['what'],
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): CatalogChange[] {
  const removed = [...before.keys()].filter((name) => !after.has(name));
  return [
    ...removed.map((name) => ({ what, how: 'removed' as const, name })),
    ...[...after].flatMap(([name, item]): CatalogChange[] => {
      const known = before.get(name);
      if (known === undefined) return [{ what, how: 'added', name }];
      const fields = changedFields(known, item);
      return fields.length === 0 ? [] : [{ what, how: 'changed', name, detail: fields.join(', ') }];
    }),
  ];
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Names of fields with different values. The values may be secrets. */
function changedFields(one: object, other: object): string[] {
  const [before, after] = [new Map(Object.entries(one)), new Map(Object.entries(other))];
  return [...new Set([...before.keys(), ...after.keys()])].filter((name) => !isSame(before.get(name), after.get(name)));
}

function modelFacts({ endpoints, ...facts }: Model): Omit<Model, 'endpoints'> {
  return facts;
}

/** An endpoint without its prices; changes of the provider are listed at the provider. */
function endpointFacts({
  pricing,
  price_tiers: priceTiers,
  service_tiers: serviceTiers,
  price_changes: priceChanges,
  ...facts
}: Endpoint): Omit<Endpoint, keyof DatedPrices> {
  return facts;
}

/** The price changes of an endpoint as text; undefined if there are none. */
function priceChanges(before: Endpoint, after: Endpoint): string | undefined {
  const changed = [
    ...[...tokenPrices, ...unitPrices].flatMap((name) => {
      const [from, to] = [priceText(before.pricing, name), priceText(after.pricing, name)];
      return from === to ? [] : [`${name} ${from} -> ${to}`];
    }),
    ...(before.pricing.discount === after.pricing.discount
      ? []
      : [`discount ${before.pricing.discount ?? 0} -> ${after.pricing.discount ?? 0}`]),
    ...(['price_tiers', 'service_tiers', 'price_changes'] as const satisfies (keyof Endpoint)[]).flatMap((name) =>
      isSame(before[name], after[name]) ? [] : [laterNames[name]],
    ),
  ];
  return changed.length === 0 ? undefined : changed.join(', ');
}

const laterNames = {
  price_tiers: 'prices of long prompts',
  service_tiers: 'prices of service tiers',
  price_changes: 'prices from later days on',
} as const satisfies Partial<Record<keyof EndpointPrices | 'price_changes', string>>;

/** A price in the notation of operators: USD per million tokens, or per unit. */
function priceText(prices: Prices, name: (typeof tokenPrices)[number] | (typeof unitPrices)[number]): string {
  const price = prices[name];
  if (price === undefined) return 'none';
  const isOfTokens = tokenPrices.some((token) => token === name);
  return usdText(isOfTokens ? price * 1_000_000 : price);
}

/** The number of changes of each kind: `{"models_added": 2}`. */
export function changeCounts(changes: readonly CatalogChange[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { what, how } of changes) counts[`${what}s_${how}`] = (counts[`${what}s_${how}`] ?? 0) + 1;
  return counts;
}
