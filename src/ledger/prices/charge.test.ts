import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { limits } from '../../limits.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { type Prices, tokenPrices, unitPrices } from '../../schemas/prices.ts';
import { inputTokens, outputTokens, publicUsage } from '../../schemas/usage.ts';
import { amountAtto, charge as chargeAll, type PricedUsage } from './charge.ts';

const charge = (usage: TokenClasses, prices: PricedUsage['prices'], images = 0) =>
  chargeAll([{ usage, prices, images }]);

// Claude Sonnet's list price: 3, 15, read 0.30, write 3.75 (5 m) and 6 (1 h) USD per million tokens.
const SONNET = {
  prompt: 3_000_000,
  completion: 15_000_000,
  input_cache_read: 300_000,
  input_cache_write: 3_750_000,
  input_cache_write_1h: 6_000_000,
};

test.each<[string, TokenClasses, object, number]>([
  ['plain', { in_uncached: 1000, out_text: 100 }, SONNET, 4_500_000],
  [
    'cache read is not also charged as input',
    { in_uncached: 10, in_cache_read: 1000, out_text: 1 },
    SONNET,
    30_000 + 300_000 + 15_000,
  ],
  [
    'both cache writes at their own prices',
    { in_cache_write_5m: 100, in_cache_write_1h: 100 },
    SONNET,
    375_000 + 600_000,
  ],
  ['reasoning at the completion price', { in_uncached: 0, out_text: 1, out_reasoning: 9 }, SONNET, 150_000],
  ['reasoning at its own price', { out_reasoning: 10 }, { ...SONNET, internal_reasoning: 1_000_000 }, 10_000],
  [
    'cache read without a price costs the input price',
    { in_cache_read: 10 },
    { prompt: 1_000_000, completion: 0 },
    10_000,
  ],
  [
    '1 h writes without a price cost the 5 m price',
    { in_cache_write_1h: 10 },
    { prompt: 1_000_000, completion: 0, input_cache_write: 2_000_000 },
    20_000,
  ],
  ['a fee for each request', { in_uncached: 1 }, { prompt: 1_000, completion: 0, request: 5_000_000_000 }, 5_000_001],
  ['searches', { counts: { web_search: 2 } }, { prompt: 0, completion: 0, web_search: 10_000_000_000 }, 20_000_000],
  [
    'audio by the second, to the millisecond',
    { audio_ms: 1_172 },
    { prompt: 0, completion: 0, audio_second: 100_000_000 },
    117_200,
  ],
  [
    'a price per second that is not divisible by 1,000',
    { audio_ms: 1 },
    { prompt: 0, completion: 0, audio_second: 11_111_111 },
    12,
  ],
  [
    'audio in and out',
    { in_audio: 2, out_audio: 3 },
    { prompt: 1, completion: 1, audio: 1_000_000, audio_output: 2_000_000 },
    8_000,
  ],
  [
    'images in and out',
    { in_image: 2, out_image: 3 },
    { prompt: 1, completion: 1, image_token: 1_000_000, image_output: 2_000_000 },
    8_000,
  ],
  ['a discount is never rounded down', { in_uncached: 1 }, { prompt: 1_001, completion: 0, discount: 0.000001 }, 2],
  ['rounded up, once, at the end', { in_uncached: 1, out_text: 1 }, { prompt: 1, completion: 1 }, 1],
  ['no usage costs nothing', {}, SONNET, 0],
  ['a discount', { in_uncached: 1000 }, { prompt: 1_000_000, completion: 0, discount: 0.25 }, 750_000],
  [
    'beyond the safe integers of a double',
    { in_uncached: 1e9 },
    { prompt: 600_000_000, completion: 0 },
    600_000_000_000_000,
  ],
])('%s', (_title, usage, prices, nano) => {
  expect(charge(usage, prices).cost_nano).toBe(nano);
});

test('images are charged each if they have a price', () => {
  expect(charge({ in_uncached: 1 }, { prompt: 1000, completion: 0, image: 1_000_000_000 }, 3).cost_nano).toBe(
    3_000_001,
  );
});

test('fees are part of the cost, and of neither side', () => {
  const prices = { prompt: 1_000_000, completion: 2_000_000, request: 5_000_000 };
  expect(charge({ in_uncached: 1, out_text: 1 }, prices)).toMatchObject({
    cost_nano: 8_000,
    input_nano: 1_000,
    output_nano: 2_000,
  });
});

test('input and output costs are separate for every class', () => {
  const ones: Prices = Object.fromEntries([...tokenPrices, ...unitPrices].map((name) => [name, 1_000_000]));
  for (const name of [
    'in_uncached',
    'in_cache_read',
    'in_cache_write_5m',
    'in_cache_write_1h',
    'in_audio',
    'in_image',
  ]) {
    expect(charge({ [name]: 3 }, { ...ones, request: 0 })).toMatchObject({ input_nano: 3_000, output_nano: 0 });
  }
  expect(charge({ audio_ms: 3_000 }, { ...ones, request: 0 })).toMatchObject({ input_nano: 3_000, output_nano: 0 });
  for (const name of ['out_text', 'out_reasoning', 'out_audio', 'out_image']) {
    expect(charge({ [name]: 3 }, { ...ones, request: 0 })).toMatchObject({ input_nano: 0, output_nano: 3_000 });
  }
  const fees = charge({ counts: { web_search: 2 } }, ones, 3);
  expect(fees).toMatchObject({ cost_nano: 6_000, input_nano: 0, output_nano: 0 });
});

test.each([Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER])(
  'a price of %i pico-USD and more is charged exactly',
  (pico) => {
    const { cost_nano } = charge({ in_uncached: 1, out_text: 1 }, { prompt: pico, completion: 1_001 });
    expect(BigInt(cost_nano)).toBe((BigInt(pico) + 1_001n + 999n) / 1_000n);
  },
);

describe('cache_discount', () => {
  test('is the saving of cache reads', () => {
    expect(charge({ in_cache_read: 1000 }, SONNET).cache_discount_nano).toBe(2_700_000);
  });
  test('is negative if cache writes cost more than was saved', () => {
    expect(charge({ in_cache_write_5m: 1000 }, SONNET).cache_discount_nano).toBe(-750_000);
  });
  test('counts 1 h writes at their own price', () => {
    expect(charge({ in_cache_write_1h: 1000 }, SONNET).cache_discount_nano).toBe(-3_000_000);
  });
  test('is null without caching', () => {
    expect(charge({ in_uncached: 1000 }, SONNET).cache_discount_nano).toBeNull();
  });
});

const count = fc.option(fc.integer({ min: 0, max: limits.usage_count_max }), { nil: undefined });
const classes = fc
  .record({
    in_uncached: count,
    in_cache_read: count,
    in_cache_write_5m: count,
    in_cache_write_1h: count,
    in_audio: count,
    in_image: count,
    out_text: count,
    out_reasoning: count,
    out_audio: count,
    out_image: count,
  })
  .map(
    (record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as TokenClasses,
  );

test('the classes are disjoint: their sum is the public total', () => {
  fc.assert(
    fc.property(classes, (usage) => {
      const shown = publicUsage(usage);
      const sum = Object.values(usage as Record<string, number>).reduce((total, value) => total + value, 0);
      expect(shown.total_tokens).toBe(sum);
      expect(shown.prompt_tokens).toBe(inputTokens(usage));
      expect(shown.completion_tokens).toBe(outputTokens(usage));
    }),
  );
});

const price = fc.option(
  fc.oneof(
    fc.integer({ min: 0, max: 100_000_000 }),
    fc.constantFrom(0, 1, limits.unit_price_usd_max * 1e12),
    fc.maxSafeInteger().filter((pico) => pico >= 0 && pico <= limits.unit_price_usd_max * 1e12),
  ),
  { nil: undefined },
);
const names = [...tokenPrices, ...unitPrices];
const prices = fc
  .record({
    list: fc.array(price, { minLength: names.length, maxLength: names.length }),
    discount: fc.option(fc.integer({ min: 0, max: 1_000_000 }), { nil: undefined }),
  })
  .map(({ list, discount }): Prices => {
    const listed = names.flatMap((name, index) => (list[index] === undefined ? [] : [[name, list[index]]]));
    return { ...Object.fromEntries(listed), ...(discount === undefined ? {} : { discount: discount / 1_000_000 }) };
  });
const work = fc
  .record({
    usage: classes,
    prices,
    images: fc.integer({ min: 0, max: 1000 }),
    model: fc.constantFrom(undefined, 'other'),
  })
  .map(({ model, ...rest }): PricedUsage => (model === undefined ? rest : { ...rest, model }));

/** The unit price of each class, with its fallback: an independent implementation. */
const unitPrice: Record<string, (prices: Prices) => number | undefined> = {
  in_uncached: ({ prompt }) => prompt,
  in_cache_read: ({ input_cache_read, prompt }) => input_cache_read ?? prompt,
  in_cache_write_5m: ({ input_cache_write, prompt }) => input_cache_write ?? prompt,
  in_cache_write_1h: (p) => p.input_cache_write_1h ?? p.input_cache_write ?? p.prompt,
  in_audio: ({ audio, prompt }) => audio ?? prompt,
  in_image: ({ image_token, prompt }) => image_token ?? prompt,
  out_text: ({ completion }) => completion,
  out_reasoning: ({ internal_reasoning, completion }) => internal_reasoning ?? completion,
  out_audio: ({ audio_output, completion }) => audio_output ?? completion,
  out_image: ({ image_output, completion }) => image_output ?? completion,
};

/** The amount in 10^-18 USD, by plain multiplication. */
function expectedAtto({ usage, prices, images = 0, model }: PricedUsage): bigint {
  const counts = usage as Record<string, number | undefined>;
  let pico = 0n;
  for (const [name, priceOf] of Object.entries(unitPrice)) {
    pico += BigInt(counts[name] ?? 0) * BigInt(priceOf(prices) ?? 0);
  }
  if (model === undefined) pico += BigInt(prices.request ?? 0);
  pico += BigInt(images) * BigInt(prices.image ?? 0);
  return pico * BigInt(1_000_000 - Math.round((prices.discount ?? 0) * 1_000_000));
}

test('any prices and counts are charged exactly, rounded up once, and safe to add up', () => {
  const nano = 1_000_000_000n;
  const most = BigInt(limits.charge_usd_max) * nano;
  fc.assert(
    fc.property(fc.array(work, { maxLength: 3 }), (works) => {
      const { cost_nano, input_nano, output_nano, cache_discount_nano, lines } = chargeAll(works);
      const atto = works.reduce((sum, one) => sum + expectedAtto(one), 0n);
      expect(lines.reduce((sum, line) => sum + amountAtto(line), 0n)).toBe(atto);
      const exact = (atto + nano - 1n) / nano;
      expect(BigInt(cost_nano)).toBe(exact > most ? most : exact);
      expect(Number.isSafeInteger(cost_nano)).toBe(true);
      expect(input_nano + output_nano).toBeLessThanOrEqual(cost_nano);
      expect(Math.min(input_nano, output_nano)).toBeGreaterThanOrEqual(0);
      expect(cache_discount_nano === null || Number.isFinite(cache_discount_nano)).toBe(true);
      for (const line of lines) {
        expect(line.units).toBeGreaterThan(0);
        expect(line.unit_price_pico).toBeGreaterThan(0);
      }
    }),
    { numRuns: inTier(125, 500) },
  );
});

test('a charge of millions of USD is capped at the bound, so that sums stay exact', () => {
  const { cost_nano, lines } = charge({ in_uncached: 1e9 }, { prompt: 9_007e12, completion: 0 });
  expect(cost_nano).toBe(limits.charge_usd_max * 1e9);
  expect(amountAtto(lines[0]!)).toBe(9_007_000_000_000n * 10n ** 18n);
});

test('several models in one attempt: each at its own price, rounded once together, with one request fee', () => {
  const works: PricedUsage[] = [
    { usage: { in_uncached: 1, out_text: 1 }, prices: { prompt: 300, completion: 300, request: 1 } },
    { usage: { in_uncached: 1 }, prices: { prompt: 399, completion: 0, request: 5_000, discount: 0 }, model: 'other' },
  ];
  const { cost_nano, lines } = chargeAll(works);
  expect(cost_nano).toBe(1);
  expect(lines).toEqual([
    { class: 'in_uncached', units: 1, unit_price_pico: 300 },
    { class: 'out_text', units: 1, unit_price_pico: 300 },
    { class: 'request', units: 1, unit_price_pico: 1 },
    { class: 'in_uncached', units: 1, unit_price_pico: 399, model: 'other' },
  ]);
});

test('each model has its own discount, and the cache discount is based on discounted prices', () => {
  const prices = { prompt: 1_000_000, completion: 0, input_cache_read: 100_000, discount: 0.5 };
  const { cost_nano, cache_discount_nano, lines } = charge({ in_cache_read: 1000 }, prices);
  expect(cost_nano).toBe(50_000);
  expect(cache_discount_nano).toBe(450_000);
  expect(lines).toEqual([{ class: 'in_cache_read', units: 1000, unit_price_pico: 100_000, discount_ppm: 500_000 }]);
});

test.each<[string, Prices, boolean]>([
  ['both', { prompt: 0, completion: 0 }, false],
  ['no completion price', { prompt: 1 }, true],
  ['no prompt price', { completion: 1 }, true],
])('whether a cost is unpriced: %s', (_title, prices, isUnpriced) => {
  expect(charge({ in_uncached: 1 }, prices).is_unpriced).toBe(isUnpriced);
});

test('a price that is not an integer is refused, also if the amount would be one', () => {
  for (const units of [1, 2]) expect(() => charge({ in_uncached: units }, { prompt: 0.5, completion: 0 })).toThrow();
});
