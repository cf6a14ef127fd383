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
  ['at the first length: not yet', 100, undefined, 10],
  ['over it', 101, undefined, 20],
  ['at the second', 200, null, 20],
  ['over the second', 201, null, 30],
  ['in a tier of service', 1, 'flex', 5],
  ['in a tier of service, at its own length', 100, 'flex', 5],
  ['in a tier of service, over its own length', 101, 'flex', 6],
  ['in a tier of service with one price for any length', 1_000, 'priority', 40],
  ['in a tier that has no price of its own', 101, 'default', 20],
  ['in a tier of an upstream’s fancy', 1, 'constructor', 10],
])('the price of a prompt is that of its length and tier: %s', (_title, promptTokens, serviceTier, prompt) => {
  expect(pricesFor(endpoint, { prompt_tokens: promptTokens, service_tier: serviceTier })).toEqual(list(prompt));
});

test.each<[string, number, string | undefined, number[]]>([
  ['a short prompt', 100, undefined, [10]],
  ['a prompt that may be long', 150, undefined, [10, 20]],
  ['a prompt that may be very long', 201, undefined, [10, 20, 30]],
  ['who asks for a tier may be served without', 100, 'flex', [10, 5]],
  ['who asks for a tier, at length', 150, 'flex', [10, 20, 5, 6]],
  ['who leaves the tier to the provider', 150, 'auto', [10, 20, 5, 6, 40]],
  ['a tier of no price', 100, 'scale', [10]],
])('what may come to apply: %s', (_title, promptTokens, serviceTier, prompts) => {
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

test('a dearer tier is offered only where its price is known', () => {
  expect(offersTier(endpoint, 'priority')).toBe(true);
  expect(offersTier({ pricing: list(1) }, 'priority')).toBe(false);
  expect(offersTier({ pricing: list(1) }, 'toString')).toBe(false);
  for (const tier of ['auto', 'default', 'flex']) expect(offersTier({ pricing: list(1) }, tier)).toBe(true);
});

describe('what an operator says of prices', () => {
  const known = { ...endpoint, price_changes: [{ from_ms: 5, pricing: list(7) }] };

  test('nothing: what is known holds', () => expect(declaredPrices({}, known)).toEqual(known));

  test('a price: it is the whole price', () => {
    expect(declaredPrices({ pricing: list(1) }, known)).toEqual({ pricing: list(1) });
  });

  test('a service tier alone is added to the known prices', () => {
    const merged = declaredPrices({ service_tiers: { flex: { pricing: list(3) } } }, known);
    const { priority } = endpoint.service_tiers!;
    expect(merged).toEqual({ ...known, service_tiers: { flex: { pricing: list(3) }, priority } });
  });

  test('later prices alone: what is known holds until then', () => {
    const priceChanges = [{ from_ms: 9, pricing: list(8) }];
    expect(declaredPrices({ price_changes: priceChanges }, known)).toEqual({ ...known, price_changes: priceChanges });
  });

  test('nothing, of what nobody knows: there is no price', () => {
    expect(declaredPrices({}, undefined)).toEqual({ pricing: {} });
  });
});
