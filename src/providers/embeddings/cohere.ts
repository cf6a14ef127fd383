/** Cohere's embeddings, version 2 (https://docs.cohere.com/reference/embed). */
import { GatewayError } from '../../errors.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { Media, Report } from '../dialect.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import { bodyOf, countOf } from './answer.ts';
import type { BatchBounds, EmbeddingAnswer, EmbeddingDialect, EmbeddingInput, EmbeddingRequest } from './dialect.ts';
import { imageBytes, imagesToFetch, isTokens, requireNoTokens } from './parts.ts';
import { type Purpose, wordFor } from './purpose.ts';
import { readVector } from './vector.ts';

const WORDS: Readonly<Partial<Record<Purpose, string>>> = {
  query: 'search_query',
  document: 'search_document',
  classification: 'classification',
  clustering: 'clustering',
  similarity: 'clustering',
  code_query: 'search_query',
};

/** Models since version 4 accept text and images in one input; version 3 accepts one or the other. */
const isJoint = (upstreamModel: string) => !/embed-[a-z-]*v?[23](?:\D|$)/.test(upstreamModel);

function contentOf(input: EmbeddingInput, media: Media): JsonObject {
  if (typeof input === 'string') return { content: [{ type: 'text', text: input }] };
  requireNoTokens(input);
  return {
    content: input.map((part) => {
      if (part.type === 'text') return { type: 'text', text: part.text };
      const { media_type: mediaType, base64 } = imageBytes(part.image_url.url, media);
      return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${base64}` } };
    }),
  };
}

function imageOf(input: EmbeddingInput, media: Media): string {
  const [only, ...others] = typeof input === 'string' || isTokens(input) ? [] : input;
  if (only?.type !== 'image_url' || others.length > 0) {
    throw new GatewayError(400, 'This endpoint accepts texts or images, not both in one request');
  }
  const { media_type: mediaType, base64 } = imageBytes(only.image_url.url, media);
  return `data:${mediaType};base64,${base64}`;
}

/** The body without the model, as Cohere and Bedrock accept it. */
export function cohereBody(
  { inputs, dimensions, input_type: inputType, user }: EmbeddingRequest,
  upstreamModel: string,
  media: Media,
): { body: JsonObject; report: Report[] } {
  const report: Report[] = [];
  if (user !== undefined) report.push({ kind: 'dropped', field: 'user', reason: 'the endpoint does not support it' });
  // Models since version 3 require an input type (documentation page "Embed"); most vectors are of documents.
  const word = wordFor(WORDS, inputType) ?? 'search_document';
  const body: JsonObject = { embedding_types: ['float'], input_type: word };
  if (inputs.every((input) => typeof input === 'string')) body['texts'] = inputs;
  else if (isJoint(upstreamModel)) body['inputs'] = inputs.map((input) => contentOf(input, media));
  else {
    body['images'] = inputs.map((input) => imageOf(input, media));
    body['input_type'] = 'image';
  }
  if (dimensions !== undefined) {
    if (!isJoint(upstreamModel))
      throw new GatewayError(400, 'This model supports vectors of one length only: remove dimensions');
    body['output_dimension'] = dimensions;
  }
  return { body, report };
}

/** At most 96 inputs per request; an image that is no part of an input needs a request of its own. */
export function cohereBatch(upstreamModel: string, inputs: readonly EmbeddingInput[]): BatchBounds {
  const hasImages = inputs.some((input) => typeof input !== 'string');
  return { inputs_max: hasImages && !isJoint(upstreamModel) ? 1 : 96 };
}

/** Reads `{embeddings: {float: […]}}`, and the plain list of older models. */
export function readCohere(value: JsonValue): EmbeddingAnswer {
  const body = bodyOf(value);
  const embeddings = body['embeddings'] ?? undefined;
  const list = asArray(asObject(embeddings)?.['float'] ?? embeddings);
  const usage = usageOf(asObject(asObject(body['meta'])?.['billed_units']));
  return {
    vectors: list.map(readVector),
    ...(usage === undefined ? {} : { usage }),
    ...(typeof body['id'] === 'string' ? { upstream_id: body['id'] } : {}),
  };
}

function usageOf(billed: JsonObject | undefined): TokenClasses | undefined {
  const text = countOf(billed?.['input_tokens']);
  const image = countOf(billed?.['image_tokens']);
  if (text === undefined && image === undefined) {
    // Version 3 bills images by number only, which is covered by the price per image.
    return countOf(billed?.['images']) === undefined ? undefined : { in_uncached: 0 };
  }
  return { in_uncached: text ?? 0, ...(image === undefined ? {} : { in_image: image }) };
}

export const cohereEmbeddings: EmbeddingDialect = {
  wire: 'cohere-embeddings',
  takesRest: false,
  reserved: new Set(['model', 'texts', 'images', 'inputs', 'embedding_types', 'output_dimension']),
  requiredMedia: imagesToFetch,
  batch: ({ upstream_model: upstreamModel }, inputs) => cohereBatch(upstreamModel, inputs),

  encodeRequest(request, { upstream_model: upstreamModel }, media) {
    const { body, report } = cohereBody(request, upstreamModel, media);
    return { path: '/embed', headers: {}, body: { model: upstreamModel, ...body }, report };
  },

  decodeResponse: readCohere,
};
