import { type Prices, tokenPrices, unitPrices } from '../schemas/prices.ts';
import type { Catalog } from './catalog.ts';
import type { Endpoint, EndpointPrices, PriceList } from './model.ts';

/** The prices of an endpoint from a moment on, as text: equal prices are equal texts. */
export interface DatedPriceText {
  endpoint_id: string;
  from_ms: number;
  prices: string;
}

function ordered(prices: Prices): Prices {
  const names = [...tokenPrices, ...unitPrices, 'discount'] as const;
  return Object.fromEntries(names.flatMap((name) => (prices[name] === undefined ? [] : [[name, prices[name]]])));
}

function orderedList({ pricing, price_tiers: priceTiers = [] }: PriceList): PriceList {
  const tiers = priceTiers.map(({ prompt_tokens_over, price }) => ({ prompt_tokens_over, price: ordered(price) }));
  return { pricing: ordered(pricing), ...(tiers.length === 0 ? {} : { price_tiers: tiers }) };
}

/** All prices of an endpoint at one time, as text. */
export function priceText(prices: EndpointPrices): string {
  const tiers = Object.entries(prices.service_tiers ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const serviceTiers = Object.fromEntries(tiers.map(([name, list]) => [name, orderedList(list)]));
  return JSON.stringify({ ...orderedList(prices), ...(tiers.length === 0 ? {} : { service_tiers: serviceTiers }) });
}

/** The endpoints whose prices are recorded: models that a local server lists are free, and their names are not the operator's. */
export function pricedEndpoints(catalog: Catalog): Endpoint[] {
  return catalog.models().flatMap(({ is_discovered: isDiscovered, endpoints }) => (isDiscovered ? [] : endpoints));
}

/** The changes of an endpoint's prices since the last recorded ones, at their declared moments; other changes are of now. Pure. */
export function pricesSince(
  endpoint: Endpoint,
  last: Pick<DatedPriceText, 'from_ms' | 'prices'> | undefined,
  nowMs: number,
): DatedPriceText[] {
  const row = (fromMs: number, prices: string) => ({ endpoint_id: endpoint.id, from_ms: fromMs, prices });
  const current = priceText(endpoint);
  if (last === undefined) return [row(nowMs, current)];
  const rows: DatedPriceText[] = [];
  let known = last.prices;
  for (const change of endpoint.price_changes ?? []) {
    if (change.from_ms <= last.from_ms || change.from_ms > nowMs) continue;
    const prices = priceText(change);
    if (prices === known) continue;
    rows.push(row(change.from_ms, prices));
    known = prices;
  }
  if (known !== current) rows.push(row(Math.max(nowMs, last.from_ms), current));
  return rows;
}

/** The names of what differs between two prices: of price classes, `price_tiers` and `service_tiers.flex`. */
export function changedPrices(before: string, after: string): string[] {
  const [old, now] = [JSON.parse(before) as EndpointPrices, JSON.parse(after) as EndpointPrices];
  const differ = (one: unknown, other: unknown) => JSON.stringify(one) !== JSON.stringify(other);
  const tiers = new Set([...Object.keys(old.service_tiers ?? {}), ...Object.keys(now.service_tiers ?? {})]);
  return [
    ...[...tokenPrices, ...unitPrices, 'discount' as const].filter((name) => old.pricing[name] !== now.pricing[name]),
    ...(differ(old.price_tiers, now.price_tiers) ? ['price_tiers'] : []),
    ...[...tiers].flatMap((name) =>
      differ(old.service_tiers?.[name], now.service_tiers?.[name]) ? [`service_tiers.${name}`] : [],
    ),
  ];
}
