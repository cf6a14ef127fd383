import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Endpoint, Model } from '../../catalog/model.ts';
import type { EmbeddingInput, EmbeddingWire } from '../../providers/embeddings/dialect.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import type { Measured } from '../money/admission.ts';
import { priceAttempt } from '../money/attempt-cost.ts';
import { costOf } from '../money/worst-case.ts';
import { divide, embeddingsTask, estimateInputs, messagesOf, type PreparedEmbeddings } from './embeddings.ts';

/** Prices in pico-USD a token; the image token is more expensive. */
const pricing = { prompt: 1_000_000, completion: 0, image_token: 3_000_000, image: 5_000_000, request: 7_000_000 };

function candidateOf(wire: EmbeddingWire, upstreamModel: string): Candidate {
  const endpoint = {
    id: 'e',
    model: 'a/b',
    provider: 'p',
    upstream_model: upstreamModel,
    pricing,
    quirks: {},
    input_modalities: [],
  };
  const provider = { slug: 'p', name: 'P', dialect: 'openai-chat', embeddings_dialect: wire };
  return {
    model: { id: 'a/b', tokenizer: 'Other', output_modalities: ['embeddings'] } as unknown as Model,
    endpoint: endpoint as unknown as Endpoint,
    provider: provider as Provider,
    excluded: undefined,
  };
}

const noTokenizer = { count: async () => undefined, stop: async () => undefined };

function attemptOf(inputs: EmbeddingInput[], wire: EmbeddingWire, model: string, media = new Map()) {
  const request = { model: 'a/b', messages: messagesOf(inputs) };
  const candidate = candidateOf(wire, model);
  const task = embeddingsTask({ inputs, encoding_format: 'float' }, request, noTokenizer);
  const prepared = task.prepare(candidate, media) as PreparedEmbeddings;
  const costIn = (mode: 'strict' | 'soft') => costOf((task.measure(prepared, 0, mode) as Measured).exposure, 0);
  const price = (usage: TokenClasses) => priceAttempt(usage, request, candidate, undefined).cost_nano;
  return { prepared, costIn, price };
}

const image: EmbeddingInput = [
  { type: 'image_url', image_url: { url: `data:image/png;base64,${'QUJD'.repeat(50_000)}` } },
];

describe('the reservation', () => {
  test('covers one token for each byte of every input, in any script and on any wire, and the providers’ prefixes', () => {
    const wires: [EmbeddingWire, string][] = [
      ['openai-embeddings', 'm'],
      ['cohere-embeddings', 'embed-v4.0'],
      ['gemini-embeddings', 'gemini-embedding-001'],
      ['bedrock-embeddings', 'amazon.titan-embed-text-v2:0'],
    ];
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(
        fc.array(text, { minLength: 1, maxLength: 8 }),
        fc.constantFrom(...wires),
        (inputs, [wire, model]) => {
          const { costIn, price } = attemptOf(inputs, wire, model);
          const tokens = inputs.reduce((sum, one) => sum + Buffer.byteLength(one) + 64, 0);
          expect(costIn('strict')).toBeGreaterThanOrEqual(price({ in_uncached: tokens }));
        },
      ),
    );
  });

  test('covers token inputs', () => {
    const tokens = Array.from({ length: 500 }, (_, at) => at % 10);
    const { costIn, price } = attemptOf([tokens], 'openai-embeddings', 'm');
    expect(costIn('strict')).toBeGreaterThanOrEqual(price({ in_uncached: 500 }));
  });

  test.each([
    ['cohere-embeddings', 'embed-v4.0'],
    ['gemini-embeddings', 'gemini-embedding-2'],
    ['bedrock-embeddings', 'amazon.titan-embed-image-v1'],
    ['voyage-embeddings', 'voyage-multimodal-3'],
  ] as [EmbeddingWire, string][])('%s: covers images by their content, not by their bytes', (wire, model) => {
    const { costIn, price } = attemptOf([image], wire, model);
    expect(costIn('strict')).toBeGreaterThanOrEqual(price({ in_uncached: 64, in_image: 16_384 }));
    expect(costIn('strict')).toBeLessThan(price({ in_uncached: 2_000, in_image: 16_384 }));
  });

  test('covers fetched images the same way', () => {
    const url = 'https://example.com/a.png';
    const media = new Map([[url, { mime_type: 'image/png', base64: 'QUJD'.repeat(50_000) }]]);
    const linked: EmbeddingInput = [{ type: 'image_url', image_url: { url } }];
    const { costIn, price } = attemptOf([linked], 'gemini-embeddings', 'gemini-embedding-2', media);
    expect(costIn('strict')).toBeGreaterThanOrEqual(price({ in_image: 16_384 }));
    expect(costIn('strict')).toBeLessThan(price({ in_uncached: 2_000, in_image: 16_384 }));
  });

  test('is the estimate plus a quarter in soft mode', () => {
    const inputs = ['The quick brown fox jumps over the lazy dog'];
    const { costIn, price } = attemptOf(inputs, 'openai-embeddings', 'm');
    const { in_uncached = 0 } = estimateInputs(inputs);
    expect(costIn('soft')).toBe(price({ in_uncached: Math.ceil(in_uncached * 1.25) }));
    expect(costIn('soft')).toBeLessThan(costIn('strict'));
  });

  test('includes every request of an attempt', () => {
    const one = attemptOf(['Hello'], 'bedrock-embeddings', 'amazon.titan-embed-text-v2:0');
    const ten = attemptOf(Array(10).fill('Hello'), 'bedrock-embeddings', 'amazon.titan-embed-text-v2:0');
    expect(ten.prepared.batches).toHaveLength(10);
    expect(ten.costIn('strict') - 7_000).toBe(10 * (one.costIn('strict') - 7_000));
  });
});

describe('splitting into batches', () => {
  test('keeps the order and all inputs, and respects the bounds', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.nat(), { minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 1, max: 60 }),
        (inputs, inputsMax, tokensMax) => {
          const batches = divide(inputs, { inputs_max: inputsMax, tokens_max: tokensMax });
          expect(batches.flat()).toEqual(inputs);
          for (const batch of batches) {
            expect(batch.length).toBeGreaterThan(0);
            expect(batch.length).toBeLessThanOrEqual(inputsMax);
            const tokens = batch.reduce((sum, one) => sum + Math.ceil(one.length * 1.25), 0);
            if (batch.length > 1) expect(tokens).toBeLessThanOrEqual(tokensMax);
          }
        },
      ),
    );
  });
});
