/**
 * Embedding models of Amazon Bedrock by `InvokeModel`: Titan
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html,
 * https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-mm.html) and Cohere
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-embed.html).
 */
import { GatewayError } from '../../errors.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Media, Report } from '../dialect.ts';
import { bodyOf, countOf } from './answer.ts';
import { cohereBatch, cohereBody, readCohere } from './cohere.ts';
import type { EmbeddingDialect, EmbeddingInput, EmbeddingRequest } from './dialect.ts';
import { imageBytes, imagesToFetch, requireNoTokens, textsOnly } from './parts.ts';
import { readVector } from './vector.ts';

const COHERE = /cohere\.embed/;
const TITAN_IMAGE = /titan-embed-image/;
const TITAN_TEXT = /titan-embed/;

/** Titan's multimodal model accepts at most one text and one image, which make one vector. */
function jointInput(input: EmbeddingInput, media: Media): JsonObject {
  if (typeof input === 'string') return { inputText: input };
  requireNoTokens(input);
  const body: JsonObject = {};
  for (const part of input) {
    const name = part.type === 'text' ? 'inputText' : 'inputImage';
    if (body[name] !== undefined)
      throw new GatewayError(400, 'This endpoint accepts at most one text and one image per input');
    body[name] = part.type === 'text' ? part.text : imageBytes(part.image_url.url, media).base64;
  }
  return body;
}

function titanBody({ inputs, dimensions }: EmbeddingRequest, upstreamModel: string, media: Media): JsonObject {
  if (TITAN_IMAGE.test(upstreamModel)) {
    const config = dimensions === undefined ? {} : { embeddingConfig: { outputEmbeddingLength: dimensions } };
    return { ...jointInput(inputs[0] ?? '', media), ...config };
  }
  const [inputText = ''] = textsOnly(inputs);
  if (dimensions === undefined) return { inputText };
  if (!/embed-text-v2/.test(upstreamModel)) {
    throw new GatewayError(400, 'This model supports vectors of one length only: remove dimensions');
  }
  return { inputText, dimensions };
}

function headerCount(value: string | string[] | undefined): number | undefined {
  return countOf(Number(value));
}

export const bedrockEmbeddings: EmbeddingDialect = {
  wire: 'bedrock-embeddings',
  takesRest: false,
  reserved: new Set([
    ...['texts', 'images', 'inputs', 'embedding_types', 'output_dimension'],
    ...['inputText', 'inputImage', 'dimensions', 'embeddingTypes', 'embeddingConfig'],
  ]),
  requiredMedia: imagesToFetch,
  // Titan accepts one input per request.
  batch: ({ upstream_model: upstreamModel }, inputs) =>
    COHERE.test(upstreamModel) ? cohereBatch(upstreamModel, inputs) : { inputs_max: 1 },

  encodeRequest(request, { upstream_model: upstreamModel }, media) {
    const path = `/model/${encodeURIComponent(upstreamModel)}/invoke`;
    if (COHERE.test(upstreamModel)) return { path, headers: {}, ...cohereBody(request, upstreamModel, media) };
    if (!TITAN_TEXT.test(upstreamModel)) {
      throw new GatewayError(400, 'Embeddings of this Bedrock model are not supported by the gateway');
    }
    const report: Report[] = [];
    for (const field of ['user', 'input_type'] as const) {
      if (request[field] === undefined) continue;
      report.push({ kind: 'dropped', field, reason: 'the endpoint does not support it' });
    }
    return { path, headers: {}, body: titanBody(request, upstreamModel, media), report };
  },

  decodeResponse(value, headers) {
    const body = bodyOf(value);
    // Bedrock sends the count in a header of every answer; Cohere's body has none.
    const counted = headerCount(headers['x-amzn-bedrock-input-token-count']);
    if (body['embeddings'] !== undefined) {
      const { usage = counted === undefined ? undefined : { in_uncached: counted }, ...answer } = readCohere(value);
      return usage === undefined ? answer : { ...answer, usage };
    }
    const tokens = countOf(body['inputTextTokenCount']) ?? counted;
    const vectors = [readVector(body['embedding'])];
    return tokens === undefined ? { vectors } : { vectors, usage: { in_uncached: tokens } };
  },
};
