import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TokenClasses } from '../schemas/inner.ts';
import { inputTokens, outputTokens, publicUsage } from '../schemas/usage.ts';
import { amountAtto, charge as chargeAll, type Work } from './charge.ts';

const charge = (usage: TokenClasses, prices: Work['prices'], images = 0) => chargeAll([{ usage, prices, images }]);

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
    'both cache writes at their own price',
    { in_cache_write_5m: 100, in_cache_write_1h: 100 },
    SONNET,
    375_000 + 600_000,
  ],
  ['reasoning at the completion price', { in_uncached: 0, out_text: 1, out_reasoning: 9 }, SONNET, 150_000],
  ['reasoning at its own price', { out_reasoning: 10 }, { ...SONNET, internal_reasoning: 1_000_000 }, 10_000],
  ['cache read without a price costs as input', { in_cache_read: 10 }, { prompt: 1_000_000, completion: 0 }, 10_000],
  [
    '1 h writes without a price cost as 5 m writes',
    { in_cache_write_1h: 10 },
    { prompt: 1_000_000, completion: 0, input_cache_write: 2_000_000 },
    20_000,
  ],
  ['a fee for each request', { in_uncached: 1 }, { prompt: 1_000, completion: 0, request: 5_000_000_000 }, 5_000_001],
  ['searches', { counts: { web_search: 2 } }, { prompt: 0, completion: 0, web_search: 10_000_000_000 }, 20_000_000],
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
  ['a discount never rounds down', { in_uncached: 1 }, { prompt: 1_001, completion: 0, discount: 0.000001 }, 2],
  ['rounded up, once, at the end', { in_uncached: 1, out_text: 1 }, { prompt: 1, completion: 1 }, 1],
  ['nothing costs nothing', {}, SONNET, 0],
  ['a discount', { in_uncached: 1000 }, { prompt: 1_000_000, completion: 0, discount: 0.25 }, 750_000],
  [
    'beyond the integers of a double',
    { in_uncached: 1e9 },
    { prompt: 600_000_000, completion: 0 },
    600_000_000_000_000,
  ],
])('%s', (_title, usage, prices, nano) => {
  expect(charge(usage, prices).cost_nano).toBe(nano);
});

test('images are charged by the image where they have a price', () => {
  expect(charge({ in_uncached: 1 }, { prompt: 1000, completion: 0, image: 1_000_000_000 }, 3).cost_nano).toBe(
    3_000_001,
  );
});

test('fees are part of the cost, of neither side', () => {
  const prices = { prompt: 1_000_000, completion: 2_000_000, request: 5_000_000 };
  expect(charge({ in_uncached: 1, out_text: 1 }, prices)).toMatchObject({
    cost_nano: 8_000,
    input_nano: 1_000,
    output_nano: 2_000,
  });
});

describe('cache_discount', () => {
  test('is what reads saved', () => {
    expect(charge({ in_cache_read: 1000 }, SONNET).cache_discount_nano).toBe(2_700_000);
  });
  test('is negative when writes cost more than they saved', () => {
    expect(charge({ in_cache_write_5m: 1000 }, SONNET).cache_discount_nano).toBe(-750_000);
  });
  test('counts 1 h writes at their own price', () => {
    expect(charge({ in_cache_write_1h: 1000 }, SONNET).cache_discount_nano).toBe(-3_000_000);
  });
  test('is null without caching', () => {
    expect(charge({ in_uncached: 1000 }, SONNET).cache_discount_nano).toBeNull();
  });
});

const count = fc.option(fc.integer({ min: 0, max: 10_000_000 }), { nil: undefined });
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

test('the classes are disjoint: they add up to the public totals', () => {
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

test('the lines add up to the cost, and the two sides to no more', () => {
  fc.assert(
    fc.property(
      classes,
      fc.integer({ min: 0, max: 100_000_000 }),
      fc.integer({ min: 0, max: 100_000_000 }),
      (usage, prompt, completion) => {
        const { cost_nano, input_nano, output_nano, lines } = charge(usage, { prompt, completion });
        const atto = lines.reduce((sum, line) => sum + amountAtto(line), 0n);
        expect(BigInt(cost_nano)).toBe((atto + 999_999_999n) / 1_000_000_000n);
        expect(input_nano + output_nano).toBeLessThanOrEqual(cost_nano);
      },
    ),
  );
});
