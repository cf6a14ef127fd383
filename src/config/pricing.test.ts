import { describe, expect, test } from 'vitest';
import { declaredModels } from './models.ts';
import { readConfigFile } from './read-file.ts';

/** The prices of an endpoint with this text as its `pricing`. */
function read(pricing: string) {
  const text = `models: { acme/fast-1: { endpoints: [{ provider: acme, upstream_model: m, pricing: ${pricing} }] } }`;
  const [model] = declaredModels(readConfigFile('gateway.yaml', text), new Set(['acme']), true);
  const { provider: _provider, upstream_model: _model, ...prices } = model!.endpoints![0]!;
  return prices;
}

describe('prices for long prompts', () => {
  test('replace the plain ones, and fees and discount apply to any length', () => {
    expect(
      read(`{ prompt: 1.25, completion: 10, request: 0.01, web_search: 0.005, discount: 0.1,
              tiers: [{ over: 200000, prompt: 2.5, completion: 15 }, { over: 400000, prompt: 5, completion: 20, request: 0.02 }] }`),
    ).toEqual({
      pricing: {
        prompt: 1_250_000,
        completion: 10_000_000,
        request: 10_000_000_000,
        web_search: 5_000_000_000,
        discount: 0.1,
      },
      price_tiers: [
        {
          prompt_tokens_over: 200_000,
          price: {
            prompt: 2_500_000,
            completion: 15_000_000,
            request: 10_000_000_000,
            web_search: 5_000_000_000,
            discount: 0.1,
          },
        },
        {
          prompt_tokens_over: 400_000,
          price: {
            prompt: 5_000_000,
            completion: 20_000_000,
            request: 20_000_000_000,
            web_search: 5_000_000_000,
            discount: 0.1,
          },
        },
      ],
    });
  });
});

test('a service tier has its own price, also by length', () => {
  const text = `{ prompt: 2, completion: 4, tiers: [{ over: 10, prompt: 3, completion: 5 }],
    service_tiers: { flex: { prompt: 1, completion: 2, tiers: [{ over: 20, prompt: 1.5, completion: 2.5 }] } } }`;
  expect(read(text).service_tiers).toEqual({
    flex: {
      pricing: { prompt: 1_000_000, completion: 2_000_000 },
      price_tiers: [{ prompt_tokens_over: 20, price: { prompt: 1_500_000, completion: 2_500_000 } }],
    },
  });
});

describe('later prices', () => {
  test('start at the beginning of a day in UTC, or at a time', () => {
    const text = `{ prompt: 1, completion: 1, changes: [{ from: 2027-01-31, prompt: 2, completion: 2 },
      { from: 2027-02-01T09:00:00+02:00, prompt: 3, completion: 3, tiers: [{ over: 5, prompt: 4, completion: 4 }] }] }`;
    expect(read(text).price_changes).toEqual([
      { from_ms: Date.UTC(2027, 0, 31), pricing: { prompt: 2_000_000, completion: 2_000_000 } },
      {
        from_ms: Date.UTC(2027, 1, 1, 7),
        pricing: { prompt: 3_000_000, completion: 3_000_000 },
        price_tiers: [{ prompt_tokens_over: 5, price: { prompt: 4_000_000, completion: 4_000_000 } }],
      },
    ]);
  });

  test('and service tiers may be declared without a price, and then the bundled price stays', () => {
    const change = '{ from: 2027-01-31, prompt: 2, completion: 2 }';
    expect(read(`{ changes: [${change}] }`)).not.toHaveProperty('pricing');
    expect(read('{ service_tiers: { flex: { prompt: 2, completion: 2 } } }')).not.toHaveProperty('pricing');
    expect(read(`{ prompt: 1, changes: [${change}] }`).pricing).toEqual({ prompt: 1_000_000 });
  });
});

test.each([
  ['an empty object', '{}', { pricing: {} }],
  ['a discount alone', '{ discount: 0.5 }', { pricing: { discount: 0.5 } }],
])('%s is an unknown price', (_title, text, expected) => expect(read(text)).toEqual(expected));

test.each([
  [
    'a tier without one of the classes',
    '{ prompt: 1, completion: 2, input_cache_read: 0.1, tiers: [{ over: 5, prompt: 2, completion: 3 }] }',
    'pricing.tiers[0] must have input_cache_read too, because the plain price has',
  ],
  [
    'tiers out of order',
    '{ prompt: 1, completion: 1, tiers: [{ over: 5, prompt: 1, completion: 1 }, { over: 5, prompt: 1, completion: 1 }] }',
    'pricing.tiers[1].over must be more than that of the tier before it',
  ],
  [
    'a tier without its threshold',
    '{ prompt: 1, completion: 1, tiers: [{ prompt: 1, completion: 1 }] }',
    'tiers[0] must have over',
  ],
  [
    'a tier with a wrong price',
    '{ prompt: 1, completion: 1, tiers: [{ over: 5, prompt: much, completion: 1 }] }',
    'pricing.tiers[0].prompt must be a price in USD per million tokens, 0 or more, not "much"',
  ],
  [
    'tiers without a plain price',
    '{ tiers: [{ over: 5, prompt: 1, completion: 1 }], service_tiers: { flex: { prompt: 1, completion: 1, tiers: [{ over: 5, prompt: 1, completion: 1 }] } } }',
    'pricing.tiers must be used together with a plain price',
  ],
  [
    'a service tier without thresholds',
    '{ prompt: 1, completion: 1, tiers: [{ over: 5, prompt: 2, completion: 2 }], service_tiers: { flex: { prompt: 1, completion: 1 } } }',
    'pricing.service_tiers.flex must have tiers, because the plain price has them',
  ],
  [
    'a service tier with half a price',
    '{ service_tiers: { flex: { prompt: 1 } } }',
    'pricing.service_tiers.flex must have completion',
  ],
  [
    'a service tier with another name',
    '{ prompt: 1, completion: 1, service_tiers: { "On Demand": { prompt: 1, completion: 1 } } }',
    'must be the name of a service tier such as flex or priority',
  ],
  [
    'a change with half a price',
    '{ prompt: 1, completion: 1, changes: [{ from: 2027-01-31, prompt: 1 }] }',
    'pricing.changes[0] must have completion: a change repeats the whole price',
  ],
  [
    'changes out of order',
    '{ changes: [{ from: 2027-01-31, prompt: 1, completion: 1 }, { from: 2027-01-30, prompt: 1, completion: 1 }] }',
    'pricing.changes[1].from must be later than that of the change before it',
  ],
  [
    'an invalid day',
    '{ changes: [{ from: 2027-02-30, prompt: 1, completion: 1 }] }',
    'pricing.changes[0].from must be a valid day or time',
  ],
  [
    'an invalid hour',
    '{ changes: [{ from: "2027-02-20T25:00:00Z", prompt: 1, completion: 1 }] }',
    'pricing.changes[0].from must be a valid day or time',
  ],
  [
    'a time without a zone',
    '{ changes: [{ from: 2027-02-20T09:00:00, prompt: 1, completion: 1 }] }',
    'pricing.changes[0].from must be a day such as 2027-01-31, which begins in UTC, or a time such as 2027-01-31T09:00:00Z',
  ],
])('%s is refused', (_title, text, message) => expect(() => read(text)).toThrow(message));
