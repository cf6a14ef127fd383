import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { UpstreamError } from '../dialect.ts';
import { type EmbeddingWire, embeddingWires } from './dialect.ts';
import { embeddingDialects } from './dialects.ts';

function decode(wire: EmbeddingWire, body: JsonValue, headers: Record<string, string> = {}) {
  return embeddingDialects[wire].decodeResponse(body, headers);
}

/** An answer with two vectors, as in the documentation of each wire. */
const ANSWERS: Record<EmbeddingWire, JsonObject> = {
  'openai-embeddings': {
    object: 'list',
    data: [
      { object: 'embedding', index: 1, embedding: [0, 1] },
      { object: 'embedding', index: 0, embedding: [1, 0] },
    ],
    usage: { prompt_tokens: 5, total_tokens: 5 },
  },
  'voyage-embeddings': {
    object: 'list',
    data: [
      { object: 'embedding', index: 0, embedding: [1, 0] },
      { object: 'embedding', index: 1, embedding: [0, 1] },
    ],
    usage: { total_tokens: 5 },
  },
  'jina-embeddings': {
    data: [
      { index: 0, embedding: 'AACAPwAAAAA=' },
      { index: 1, embedding: 'AAAAAAAAgD8=' },
    ],
    usage: { prompt_tokens: 5, total_tokens: 5 },
  },
  'cohere-embeddings': {
    id: 'e1',
    embeddings: {
      float: [
        [1, 0],
        [0, 1],
      ],
    },
    meta: { billed_units: { input_tokens: 5 } },
  },
  'gemini-embeddings': {
    embeddings: [{ values: [1, 0] }, { values: [0, 1] }],
    usageMetadata: { promptTokenCount: 5 },
  },
  'vertex-embeddings': {
    predictions: [
      { embeddings: { values: [1, 0], statistics: { token_count: 2, truncated: false } } },
      { embeddings: { values: [0, 1], statistics: { token_count: 3, truncated: false } } },
    ],
  },
  'bedrock-embeddings': {
    id: 'e1',
    embeddings: {
      float: [
        [1, 0],
        [0, 1],
      ],
    },
  },
};

const HEADERS = { 'x-amzn-bedrock-input-token-count': '5' };

describe('an answer', () => {
  test.each(embeddingWires)('%s: has vectors in order, and token usage', (wire) => {
    const { vectors, usage } = decode(wire, ANSWERS[wire], HEADERS);
    const wanted =
      wire === 'jina-embeddings'
        ? ['AACAPwAAAAA=', 'AAAAAAAAgD8=']
        : [
            [1, 0],
            [0, 1],
          ];
    expect(vectors).toEqual(wanted);
    expect(usage).toEqual({ in_uncached: 5 });
  });

  test('Vertex: one vector of embedContent, with its usage', () => {
    const usageMetadata = {
      promptTokenCount: 260,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 2 },
        { modality: 'IMAGE', tokenCount: 258 },
      ],
    };
    expect(decode('vertex-embeddings', { embedding: { values: [1, 0] }, usageMetadata })).toEqual({
      vectors: [[1, 0]],
      usage: { in_uncached: 2, in_image: 258 },
    });
    expect(decode('vertex-embeddings', { embedding: { values: ['1'] } })).toEqual({ vectors: [undefined] });
  });

  test('images are counted separately if the wire reports them', () => {
    const modalities = [
      { modality: 'TEXT', tokenCount: 2 },
      { modality: 'IMAGE', tokenCount: 258 },
    ];
    const google = { embeddings: [], usageMetadata: { promptTokenCount: 260, promptTokenDetails: modalities } };
    expect(decode('gemini-embeddings', google).usage).toEqual({ in_uncached: 2, in_image: 258 });
    const usage = { text_tokens: 2, image_pixels: 144_480, total_tokens: 260 };
    expect(decode('voyage-embeddings', { data: [], usage }).usage).toEqual({ in_uncached: 2, in_image: 258 });
    const cohere = { embeddings: [], meta: { billed_units: { input_tokens: 2, image_tokens: 258 } } };
    expect(decode('cohere-embeddings', cohere).usage).toEqual({ in_uncached: 2, in_image: 258 });
  });

  test('Titan: the count of the body, or else that of the header', () => {
    expect(decode('bedrock-embeddings', { embedding: [1], inputTextTokenCount: 3 }, HEADERS).usage).toEqual({
      in_uncached: 3,
    });
    expect(decode('bedrock-embeddings', { embedding: [1] }, HEADERS).usage).toEqual({ in_uncached: 5 });
    expect(decode('bedrock-embeddings', { embedding: [1] }).usage).toBeUndefined();
  });

  test.each([
    ['openai-embeddings', { data: [], usage: { prompt_tokens: 0, total_tokens: 0 } }],
    ['openai-embeddings', { data: [] }],
    ['gemini-embeddings', { embeddings: [] }],
    ['vertex-embeddings', { predictions: [{ embeddings: { values: [1] } }] }],
    ['cohere-embeddings', { embeddings: { float: [] } }],
  ] as [EmbeddingWire, JsonObject][])('%s: usage that is missing or malformed is undefined, not zero', (wire, body) => {
    expect(decode(wire, body).usage).toBeUndefined();
  });

  test.each(['openai-embeddings', 'voyage-embeddings', 'jina-embeddings'] as const)(
    '%s: a missing or repeated index makes the vectors invalid, and the usage is kept',
    (wire) => {
      for (const indices of [
        [0, 0],
        [0, 2],
        [1, 2],
      ]) {
        const data = indices.map((index) => ({ index, embedding: [1] }));
        expect(decode(wire, { data, usage: { prompt_tokens: 3, total_tokens: 3 } })).toEqual({
          vectors: [undefined, undefined],
          usage: { in_uncached: 3 },
        });
      }
    },
  );

  test.each(embeddingWires)('%s: an error inside a 200 is thrown', (wire) => {
    expect(() => decode(wire, { error: { message: 'over capacity', code: 429 } })).toThrow('over capacity');
  });
});

/** Removes, duplicates, moves or replaces something anywhere in a body. */
function damaged(value: JsonValue, next: () => number): JsonValue {
  if (next() % 9 === 0) return [null, 1e308, 'x', [], {}, -1, true, 'AAAA'][next() % 8] as JsonValue;
  if (Array.isArray(value)) {
    const kept = value.filter(() => next() % 11 !== 0).map((one) => damaged(one, next));
    if (next() % 7 === 0) kept.push(...kept.slice(0, 1));
    return next() % 5 === 0 ? kept.toReversed() : kept;
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(() => next() % 13 !== 0);
  return Object.fromEntries(entries.map(([name, inside]) => [name, damaged(inside ?? null, next)]));
}

describe('arbitrary input', () => {
  test.each(embeddingWires)('%s: any JSON is an answer or an UpstreamError', (wire) => {
    const check = (body: JsonValue) => {
      try {
        const { vectors } = decode(wire, body);
        for (const vector of vectors) {
          if (typeof vector !== 'string') expect(vector?.every(Number.isFinite) ?? true).toBe(true);
        }
      } catch (error) {
        expect(error).toBeInstanceOf(UpstreamError);
      }
    };
    fc.assert(
      fc.property(fc.jsonValue(), (body) => check(body as JsonValue)),
      { numRuns: inTier(75, 300), seed: 5 },
    );
    fc.assert(
      fc.property(fc.infiniteStream(fc.nat()), (stream) =>
        check(damaged(ANSWERS[wire], () => stream.next().value as number)),
      ),
      { numRuns: inTier(100, 1_000), seed: 7 },
    );
  });
});
