/**
 * Requests for embeddings checked against the schemas of a provider's own client, if a package has them: Cohere's. The
 * compiler checks OpenAI's types in `src/providers/embeddings/request.test.ts`; of Gemini and Voyage there are recorded
 * requests (`recorded-embeddings.test.ts`); Bedrock's client accepts any bytes; Vertex, Jina and Mistral have no
 * package here, and only the sandbox checks them.
 */
import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { vectorWires } from '../../sandbox/embeddings.ts';
import type { DialectEndpoint } from '../../src/providers/dialect.ts';
import { cohereEmbeddings } from '../../src/providers/embeddings/cohere.ts';
import type { EmbeddingInput, EmbeddingRequest } from '../../src/providers/embeddings/dialect.ts';
import type { JsonValue } from '../../src/schemas/json.ts';

interface Schema {
  parse(value: JsonValue, options: { unrecognizedObjectKeys: 'fail' }): { errors?: unknown[] };
}
const file = new URL('../../node_modules/cohere-ai/serialization/index.js', import.meta.url).pathname;
const { V2EmbedRequest } = createRequire(import.meta.url)(file) as { V2EmbedRequest: Schema };
const faultsOf = (value: JsonValue) => V2EmbedRequest.parse(value, { unrecognizedObjectKeys: 'fail' }).errors ?? [];

const image: EmbeddingInput = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,QUJD' } }];
const requests: [string, string, Partial<EmbeddingRequest>][] = [
  ['texts', 'embed-v4.0', {}],
  ['a text for a query', 'embed-v4.0', { inputs: ['one'], input_type: 'query' }],
  ['shorter vectors', 'embed-v4.0', { dimensions: 256 }],
  ['base64, which the gateway encodes', 'embed-v4.0', { encoding_format: 'base64' }],
  ['an image', 'embed-v4.0', { inputs: [image] }],
  [
    'a text with an image and a text',
    'embed-v4.0',
    { inputs: [[{ type: 'text', text: 'x' }, ...image], 'y'] as EmbeddingInput[] },
  ],
  ['an image for the third version', 'embed-english-v3.0', { inputs: [image] }],
  ['a user', 'embed-v4.0', { user: 'u' }],
];

test('the schema rejects an invalid body', () => {
  const body = { model: 'm', input_type: 'search_query', texts: ['x'] };
  expect(faultsOf(body)).toEqual([]);
  expect(faultsOf({ ...body, user: 'u' })).not.toEqual([]);
  expect(faultsOf({ ...body, input_type: 'query' })).not.toEqual([]);
  expect(faultsOf({ ...body, output_dimension: '256' })).not.toEqual([]);
});

test.each(requests)('Cohere accepts %s', (_, upstreamModel, request) => {
  const endpoint: DialectEndpoint = {
    model: 'cohere/embed',
    provider: 'cohere',
    upstream_model: upstreamModel,
    max_completion_tokens: undefined,
    context_length: undefined,
    input_modalities: ['text', 'image'],
    quirks: {},
  };
  const { body } = cohereEmbeddings.encodeRequest(
    { inputs: ['one', 'two'], encoding_format: 'float', ...request },
    endpoint,
    new Map(),
  );
  expect(faultsOf(body)).toEqual([]);
  // The sandbox is as strict as the provider: both accept the same requests.
  const sandbox = vectorWires.find(({ path }) => path.test('/v2/embed'));
  expect(() => sandbox?.check(body, {})).not.toThrow();
});
