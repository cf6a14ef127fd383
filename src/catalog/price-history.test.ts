import { expect, test } from 'vitest';
import type { Endpoint } from './model.ts';
import { changedPrices, pricesSince, priceText } from './price-history.ts';

const PER = { prompt: 100, completion: 200 };
const endpoint = (more: Partial<Endpoint> = {}) => ({ id: 'p|a/b', pricing: PER, ...more }) as Endpoint;
const last = (prices: string, fromMs = 1_000) => ({ from_ms: fromMs, prices });

test('the first observation records the current prices, and equal prices are recorded once', () => {
  expect(pricesSince(endpoint(), undefined, 5_000)).toEqual([
    { endpoint_id: 'p|a/b', from_ms: 5_000, prices: priceText({ pricing: PER }) },
  ]);
  expect(pricesSince(endpoint(), last(priceText({ pricing: { completion: 200, prompt: 100 } })), 5_000)).toEqual([]);
});

test('a changed price starts now, dated prices start at their dates, and future ones are not recorded', () => {
  const second = { pricing: { ...PER, prompt: 90 } };
  const third = { pricing: { ...PER, prompt: 80 } };
  const changes = [
    { from_ms: 500, pricing: PER },
    { from_ms: 2_000, ...second },
    { from_ms: 3_000, ...third },
    { from_ms: 9_000, pricing: { ...PER, prompt: 1 } },
  ];
  const rows = pricesSince(endpoint({ ...third, price_changes: changes }), last(priceText({ pricing: PER })), 5_000);
  expect(rows.map(({ from_ms, prices }) => [from_ms, prices])).toEqual([
    [2_000, priceText(second)],
    [3_000, priceText(third)],
  ]);
  const changed = pricesSince(endpoint(second), last(priceText({ pricing: PER })), 5_000);
  expect(changed.map(({ from_ms }) => from_ms)).toEqual([5_000]);
});

test('changes are named by class, price tier and service tier', () => {
  const before = priceText({ pricing: PER, service_tiers: { flex: { pricing: PER } } });
  const after = priceText({
    pricing: { ...PER, completion: 201, input_cache_read: 1 },
    price_tiers: [{ prompt_tokens_over: 200_000, price: PER }],
    service_tiers: { flex: { pricing: { ...PER, discount: 0.5 } }, priority: { pricing: PER } },
  });
  expect(changedPrices(before, after)).toEqual([
    'completion',
    'input_cache_read',
    'price_tiers',
    'service_tiers.flex',
    'service_tiers.priority',
  ]);
  expect(changedPrices(before, before)).toEqual([]);
});
