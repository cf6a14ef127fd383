import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import type { DialectEndpoint } from '../dialect.ts';
import { providerRow } from '../table.ts';
import type { EmbeddingInput, EmbeddingRequest, EmbeddingWire } from './dialect.ts';
import { embeddingDialects } from './dialects.ts';

function endpoint(upstreamModel: string, quirks = {}): DialectEndpoint {
  return {
    model: 'a/b',
    provider: 'p',
    upstream_model: upstreamModel,
    max_completion_tokens: undefined,
    context_length: undefined,
    input_modalities: ['text', 'image'],
    quirks,
  };
}

function encode(wire: EmbeddingWire, model: string, request: Partial<EmbeddingRequest>, quirks = {}) {
  return embeddingDialects[wire].encodeRequest(
    { inputs: ['one', 'two'], encoding_format: 'float', ...request },
    endpoint(model, quirks),
    MEDIA,
  );
}

const MEDIA = new Map();
const image: EmbeddingInput = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,QUJD' } }];
const both: EmbeddingInput = [{ type: 'text', text: 'look' }, ...image];
const linked: EmbeddingInput = [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }];
const everything = { dimensions: 256, input_type: 'search_query', user: 'u' } as const;

describe('openai-embeddings', () => {
  test('sends the fields of the official types', () => {
    const wanted: OpenAI.EmbeddingCreateParams = {
      model: 'text-embedding-3-small',
      input: ['one', 'two'],
      encoding_format: 'base64',
      dimensions: 256,
      user: 'u',
    };
    const { path, body, report } = encode('openai-embeddings', 'text-embedding-3-small', {
      ...everything,
      encoding_format: 'base64',
    });
    expect([path, body]).toEqual(['/embeddings', wanted]);
    expect(report.map(({ field }) => field)).toEqual(['input_type']);
  });

  test('tokens are sent unchanged', () => {
    const wanted: OpenAI.EmbeddingCreateParams = { model: 'm', input: [[1, 2], [3]], encoding_format: 'float' };
    expect(encode('openai-embeddings', 'm', { inputs: [[1, 2], [3]] }).body).toEqual(wanted);
  });

  test('Mistral: its own name of dimensions, no format, no user, no tokens', () => {
    const { quirks } = providerRow.get('mistral')!;
    const { body } = encode('openai-embeddings', 'codestral-embed', everything, quirks);
    expect(body).toEqual({ model: 'codestral-embed', input: ['one', 'two'], output_dimension: 256 });
    expect(() => encode('openai-embeddings', 'm', { inputs: [[1]] }, quirks)).toThrow(GatewayError);
    expect(embeddingDialects['openai-embeddings'].batch(endpoint('m', quirks), [])).toEqual({
      inputs_max: 256,
      tokens_max: 16_000,
    });
  });

  test.each([
    ['search_query', 'query'],
    ['document', 'passage'],
    [undefined, 'passage'],
  ])('NVIDIA requires an input type: %s becomes %s', (inputType, word) => {
    const { quirks } = providerRow.get('nvidia')!;
    const request = inputType === undefined ? {} : { input_type: inputType };
    expect(encode('openai-embeddings', 'm', request, quirks).body['input_type']).toBe(word);
  });

  test('Azure deployments have their own path', () => {
    const quirks = { path: '/deployments/{model}/chat/completions', query: 'api-version=2024-10-21' };
    expect(encode('openai-embeddings', 'my model', {}, quirks).path).toBe(
      '/deployments/my%20model/embeddings?api-version=2024-10-21',
    );
  });

  test('images are refused', () =>
    expect(() => encode('openai-embeddings', 'm', { inputs: [image] })).toThrow(GatewayError));
});

describe('cohere-embeddings', () => {
  test('sends texts with the default of the required input type', () => {
    const wanted = {
      texts: ['one', 'two'],
      model: 'embed-v4.0',
      input_type: 'search_document',
      embedding_types: ['float'],
      output_dimension: 256,
    };
    const { path, body } = encode('cohere-embeddings', 'embed-v4.0', { dimensions: 256 });
    expect([path, body]).toEqual(['/embed', wanted]);
  });

  test.each([
    ['search_query', 'search_query'],
    ['query', 'search_query'],
    ['RETRIEVAL_DOCUMENT', 'search_document'],
    ['classification', 'classification'],
    ['semantic_similarity', 'clustering'],
    ['something_new', 'something_new'],
  ])('input_type %s becomes %s', (inputType, word) => {
    expect(encode('cohere-embeddings', 'embed-v4.0', { input_type: inputType }).body['input_type']).toBe(word);
  });

  test('sends texts and images together from version 4', () => {
    const wanted = {
      inputs: [
        { content: [{ type: 'text', text: 'one' }] },
        {
          content: [
            { type: 'text', text: 'look' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,QUJD' } },
          ],
        },
      ],
      model: 'embed-v4.0',
      input_type: 'search_document',
      embedding_types: ['float'],
    };
    expect(encode('cohere-embeddings', 'embed-v4.0', { inputs: ['one', both] }).body).toEqual(wanted);
  });

  test('sends one image alone, without dimensions, to version 3', () => {
    const wanted = {
      images: ['data:image/png;base64,QUJD'],
      model: 'embed-english-v3.0',
      input_type: 'image',
      embedding_types: ['float'],
    };
    expect(encode('cohere-embeddings', 'embed-english-v3.0', { inputs: [image] }).body).toEqual(wanted);
    for (const request of [{ inputs: [both] }, { inputs: ['one', image] }, { dimensions: 256 }]) {
      expect(() => encode('cohere-embeddings', 'embed-english-v3.0', request)).toThrow(GatewayError);
    }
    const { batch } = embeddingDialects['cohere-embeddings'];
    expect(batch(endpoint('embed-english-v3.0'), [image])).toEqual({ inputs_max: 1 });
    expect(batch(endpoint('embed-english-v3.0'), ['one'])).toEqual({ inputs_max: 96 });
    expect(batch(endpoint('embed-v4.0'), [image])).toEqual({ inputs_max: 96 });
  });
});

describe('gemini-embeddings', () => {
  test('sends one request for each input, each with model, task and dimensions', () => {
    const { path, body } = encode('gemini-embeddings', 'gemini-embedding-001', {
      dimensions: 768,
      input_type: 'query',
    });
    const one = (text: string) => ({
      model: 'models/gemini-embedding-001',
      content: { parts: [{ text }] },
      taskType: 'RETRIEVAL_QUERY',
      outputDimensionality: 768,
    });
    expect(path).toBe('/models/gemini-embedding-001:batchEmbedContents');
    expect(body).toEqual({ requests: [one('one'), one('two')] });
  });

  test('shortened vectors of the first model are marked for normalisation, those of others are not', () => {
    expect(encode('gemini-embeddings', 'gemini-embedding-001', { dimensions: 768 })).toMatchObject({
      is_unnormalised: true,
      report: [{ kind: 'changed', field: 'dimensions' }],
    });
    for (const [model, dimensions] of [
      ['gemini-embedding-001', 3072],
      ['gemini-embedding-2', 768],
    ] as const) {
      expect(encode('gemini-embeddings', model, { dimensions }).is_unnormalised).toBeUndefined();
    }
  });

  test.each([
    ['search_query', 'task: search result | query: one'],
    ['search_document', 'title: none | text: one'],
    ['classification', 'task: classification | query: one'],
    ['text-matching', 'task: sentence similarity | query: one'],
  ])('the second model gets the input type as a prefix of the text: %s', (inputType, text) => {
    const { body } = encode('gemini-embeddings', 'gemini-embedding-2', { inputs: ['one'], input_type: inputType });
    expect(body).toEqual({ requests: [{ model: 'models/gemini-embedding-2', content: { parts: [{ text }] } }] });
  });

  test('sends images as bytes', () => {
    const { body } = encode('gemini-embeddings', 'gemini-embedding-2', { inputs: [both] });
    expect(body).toMatchObject({
      requests: [{ content: { parts: [{ text: 'look' }, { inlineData: { mimeType: 'image/png', data: 'QUJD' } }] } }],
    });
    for (const input of [linked, [1, 2]]) {
      expect(() => encode('gemini-embeddings', 'm', { inputs: [input] })).toThrow(GatewayError);
    }
  });
});

describe('vertex-embeddings', () => {
  test('sends texts as instances', () => {
    expect(
      encode('vertex-embeddings', 'text-embedding-005', { dimensions: 256, input_type: 'document' }),
    ).toMatchObject({
      path: '/models/text-embedding-005:predict',
      body: {
        instances: [
          { content: 'one', task_type: 'RETRIEVAL_DOCUMENT' },
          { content: 'two', task_type: 'RETRIEVAL_DOCUMENT' },
        ],
        parameters: { outputDimensionality: 256 },
      },
    });
  });

  test('later Gemini models are called by embedContent, with one vector for all parts of an input', () => {
    const request = { inputs: [both], dimensions: 768, input_type: 'query' };
    expect(encode('vertex-embeddings', 'gemini-embedding-2', request)).toMatchObject({
      path: '/models/gemini-embedding-2:embedContent',
      body: {
        content: {
          parts: [
            { text: 'task: search result | query: look' },
            { inlineData: { mimeType: 'image/png', data: 'QUJD' } },
          ],
        },
        embedContentConfig: { outputDimensionality: 768 },
      },
      report: [],
    });
    expect(encode('vertex-embeddings', 'multilingual-e5-large-maas', { inputs: ['one'], input_type: 'query' })).toEqual(
      {
        path: '/models/multilingual-e5-large-maas:embedContent',
        headers: {},
        body: { content: { parts: [{ text: 'one' }] }, embedContentConfig: { taskType: 'RETRIEVAL_QUERY' } },
        report: [],
      },
    );
    expect(encode('vertex-embeddings', 'gemini-embedding-001', { inputs: ['one'] }).path).toMatch(/:predict$/);
    expect(() => encode('vertex-embeddings', 'gemini-embedding-2', { inputs: [linked] })).toThrow(GatewayError);
  });

  test('allows one text a request for Gemini', () => {
    const { batch } = embeddingDialects['vertex-embeddings'];
    for (const model of ['gemini-embedding-001', 'gemini-embedding-2', 'multilingual-e5-large-maas'])
      expect(batch(endpoint(model), [])).toEqual({ inputs_max: 1 });
    expect(batch(endpoint('text-embedding-005'), [])).toEqual({ inputs_max: 250, tokens_max: 20_000 });
  });

  test('the multimodal model: a text or an image, but not both in one vector', () => {
    const model = 'multimodalembedding@001';
    expect(encode('vertex-embeddings', model, { inputs: [image], dimensions: 512 }).body).toEqual({
      instances: [{ image: { bytesBase64Encoded: 'QUJD' } }],
      parameters: { dimension: 512 },
    });
    expect(() => encode('vertex-embeddings', model, { inputs: [both] })).toThrow(GatewayError);
  });
});

describe('bedrock-embeddings', () => {
  test('Titan: one text a request, with dimensions since the second version', () => {
    expect(
      encode('bedrock-embeddings', 'amazon.titan-embed-text-v2:0', { inputs: ['one'], dimensions: 256 }),
    ).toMatchObject({
      path: '/model/amazon.titan-embed-text-v2%3A0/invoke',
      body: { inputText: 'one', dimensions: 256 },
    });
    expect(() =>
      encode('bedrock-embeddings', 'amazon.titan-embed-text-v1', { inputs: ['one'], dimensions: 256 }),
    ).toThrow(GatewayError);
    expect(embeddingDialects['bedrock-embeddings'].batch(endpoint('amazon.titan-embed-text-v2:0'), [])).toEqual({
      inputs_max: 1,
    });
  });

  test('Titan for images: a text and an image make one vector', () => {
    const { body } = encode('bedrock-embeddings', 'amazon.titan-embed-image-v1', { inputs: [both], dimensions: 384 });
    expect(body).toEqual({ inputText: 'look', inputImage: 'QUJD', embeddingConfig: { outputEmbeddingLength: 384 } });
  });

  test('Cohere on Bedrock: its body without the model', () => {
    expect(encode('bedrock-embeddings', 'us.cohere.embed-v4:0', { input_type: 'query' })).toMatchObject({
      path: '/model/us.cohere.embed-v4%3A0/invoke',
      body: { texts: ['one', 'two'], input_type: 'search_query', embedding_types: ['float'] },
    });
  });

  test('an unknown model is refused', () => {
    expect(() => encode('bedrock-embeddings', 'new.vectors-v1', {})).toThrow(GatewayError);
  });
});

describe('voyage-embeddings', () => {
  test('texts: queries and documents, base64 if requested', () => {
    expect(encode('voyage-embeddings', 'voyage-3.5', { ...everything, encoding_format: 'base64' })).toMatchObject({
      path: '/embeddings',
      body: {
        model: 'voyage-3.5',
        input: ['one', 'two'],
        input_type: 'query',
        output_dimension: 256,
        encoding_format: 'base64',
      },
      report: [{ field: 'user' }],
    });
    const plain = encode('voyage-embeddings', 'voyage-3.5', { input_type: 'clustering' });
    expect(plain.body).toEqual({ model: 'voyage-3.5', input: ['one', 'two'] });
    expect(plain.report.map(({ field }) => field)).toEqual(['input_type']);
  });

  test('texts and images: another path, images as URL or bytes', () => {
    expect(encode('voyage-embeddings', 'voyage-multimodal-3', { inputs: ['one', both, linked] })).toMatchObject({
      path: '/multimodalembeddings',
      body: {
        inputs: [
          { content: [{ type: 'text', text: 'one' }] },
          {
            content: [
              { type: 'text', text: 'look' },
              { type: 'image_base64', image_base64: 'data:image/png;base64,QUJD' },
            ],
          },
          { content: [{ type: 'image_url', image_url: 'https://example.com/a.png' }] },
        ],
      },
    });
  });
});

describe('jina-embeddings', () => {
  test('texts with task and format', () => {
    expect(encode('jina-embeddings', 'jina-embeddings-v3', { ...everything, encoding_format: 'base64' }).body).toEqual({
      model: 'jina-embeddings-v3',
      input: ['one', 'two'],
      task: 'retrieval.query',
      dimensions: 256,
      embedding_type: 'base64',
    });
  });

  test('code models have tasks of their own', () => {
    const task = (inputType: string) =>
      encode('jina-embeddings', 'jina-code-embeddings-1.5b', { input_type: inputType }).body['task'];
    expect(['search_query', 'document', 'code_query', 'qa.query'].map(task)).toEqual([
      'nl2code.query',
      'nl2code.passage',
      'nl2code.query',
      'qa.query',
    ]);
  });

  test('models without tasks get no task', () => {
    const { body, report } = encode('jina-embeddings', 'jina-embeddings-v2-base-en', { input_type: 'query' });
    expect(body['task']).toBeUndefined();
    expect(report.map(({ field }) => field)).toEqual(['input_type']);
  });

  test('texts beside images are objects; a joint vector is refused', () => {
    expect(encode('jina-embeddings', 'jina-clip-v2', { inputs: ['one', image, linked] }).body['input']).toEqual([
      { text: 'one' },
      { image: 'QUJD' },
      { image: 'https://example.com/a.png' },
    ]);
    expect(() => encode('jina-embeddings', 'jina-clip-v2', { inputs: [both] })).toThrow(GatewayError);
  });
});
