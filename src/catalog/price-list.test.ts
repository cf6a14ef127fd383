import { describe, expect, test } from 'vitest';
import type { EndpointPrices } from './model.ts';
import { declaredPrices, offersTier, pricesFor, pricesInReach } from './price-list.ts';

const list = (prompt: number) => ({ prompt, completion: 2 * prompt });
const endpoint: EndpointPrices = {
  pricing: list(10),
  price_tiers: [
    { prompt_tokens_over: 100, price: list(20) },
    { prompt_tokens_over: 200, price: list(30) },
  ],
  service_tiers: {
    flex: { pricing: list(5), price_tiers: [{ prompt_tokens_over: 100, price: list(6) }] },
    priority: { pricing: list(40) },
  },
};

test.each<[string, number, string | null | undefined, number]>([
  ['short', 1, undefined, 10],
  ['at the first threshold', 100, undefined, 10],
  ['above the first threshold', 101, undefined, 20],
  ['at the second threshold', 200, null, 20],
  ['above the second threshold', 201, null, 30],
  ['in a service tier', 1, 'flex', 5],
  ['in a service tier, at its own threshold', 100, 'flex', 5],
  ['in a service tier, above its own threshold', 101, 'flex', 6],
  ['in a service tier with one price for any length', 1_000, 'priority', 40],
  ['in a service tier without a price of its own', 101, 'default', 20],
  ['in an unknown service tier of an upstream', 1, 'constructor', 10],
])('the price of a prompt is that of its length and tier: %s', (_title, promptTokens, serviceTier, prompt) => {
  expect(pricesFor(endpoint, { prompt_tokens: promptTokens, service_tier: serviceTier })).toEqual(list(prompt));
});

test.each<[string, number, string | undefined, number[]]>([
  ['a short prompt', 100, undefined, [10]],
  ['a prompt that may be long', 150, undefined, [10, 20]],
  ['a prompt that may be very long', 201, undefined, [10, 20, 30]],
  ['a requested tier may be replaced by the default', 100, 'flex', [10, 5]],
  ['a requested tier, for a long prompt', 150, 'flex', [10, 20, 5, 6]],
  ['a tier that the provider selects', 150, 'auto', [10, 20, 5, 6, 40]],
  ['a tier without a price', 100, 'scale', [10]],
])('price lists in reach: %s', (_title, promptTokens, serviceTier, prompts) => {
  expect(
    pricesInReach(endpoint, { prompt_tokens: promptTokens, service_tier: serviceTier }).map(({ prompt }) => prompt),
  ).toEqual(prompts);
});

test('the charged price list is one of those in reach, whatever tier is requested and served', () => {
  for (const requested of [undefined, 'auto', 'flex', 'priority', 'default']) {
    const served = requested === 'auto' ? ['default', 'flex', 'priority'] : [requested, 'default'];
    for (const bound of [50, 150, 250]) {
      const lists = pricesInReach(endpoint, { prompt_tokens: bound, service_tier: requested });
      for (const serviceTier of served) {
        for (let promptTokens = 0; promptTokens <= bound; promptTokens += 1) {
          expect(lists).toContain(pricesFor(endpoint, { prompt_tokens: promptTokens, service_tier: serviceTier }));
        }
      }
    }
  }
});

test('a more expensive tier is offered only if its price is known', () => {
  expect(offersTier(endpoint, 'priority')).toBe(true);
  expect(offersTier({ pricing: list(1) }, 'priority')).toBe(false);
  expect(offersTier({ pricing: list(1) }, 'toString')).toBe(false);
  for (const tier of ['auto', 'default', 'flex']) expect(offersTier({ pricing: list(1) }, tier)).toBe(true);
});

describe('a declared price', () => {
  const known = { ...endpoint, price_changes: [{ from_ms: 5, pricing: list(7) }] };

  test('that is missing keeps the known prices', () => expect(declaredPrices({}, known)).toEqual(known));

  test('replaces the whole price', () => {
    expect(declaredPrices({ pricing: list(1) }, known)).toEqual({ pricing: list(1) });
  });

  test('of a service tier alone is added to the known prices', () => {
    const merged = declaredPrices({ service_tiers: { flex: { pricing: list(3) } } }, known);
    const { priority } = endpoint.service_tiers!;
    expect(merged).toEqual({ ...known, service_tiers: { flex: { pricing: list(3) }, priority } });
  });

  test('of a later time alone keeps the known prices until then', () => {
    const priceChanges = [{ from_ms: 9, pricing: list(8) }];
    expect(declaredPrices({ price_changes: priceChanges }, known)).toEqual({ ...known, price_changes: priceChanges });
  });

  test('that is missing for an unknown model is no price', () => {
    expect(declaredPrices({}, undefined)).toEqual({ pricing: {} });
  });
});
