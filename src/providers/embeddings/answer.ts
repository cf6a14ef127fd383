import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { UpstreamError } from '../dialect.ts';
import { errorInside } from '../openai-chat/errors.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import type { EmbeddingAnswer } from './dialect.ts';
import { readVector } from './vector.ts';

/** A positive integer; undefined for anything else. An embedded input always has tokens. */
export function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;
}

/** The body as an object. Throws `UpstreamError` for anything else, and for an error in the body. */
export function bodyOf(value: JsonValue): JsonObject {
  const body = asObject(value);
  if (body === undefined) throw new UpstreamError('invalid_response', "The provider's answer is not an object");
  const error = body['error'] === undefined ? undefined : errorInside(value);
  if (error !== undefined) throw error;
  return body;
}

function usageOf(usage: JsonObject | undefined): TokenClasses | undefined {
  const tokens = countOf(usage?.['prompt_tokens']) ?? countOf(usage?.['total_tokens']);
  if (tokens === undefined) return undefined;
  // Voyage reports the tokens of texts separately; the others are of images (https://docs.voyageai.com/reference/multimodal-embeddings-api).
  const { text_tokens: textTokens } = usage ?? {};
  const hasTextTokens = typeof textTokens === 'number' && textTokens >= 0 && textTokens < tokens;
  return hasTextTokens ? { in_uncached: textTokens, in_image: tokens - textTokens } : { in_uncached: tokens };
}

/** The list in answers of OpenAI, Voyage and Jina: `data` of `{index, embedding}` in any order, and `usage`. */
export function readList(value: JsonValue): EmbeddingAnswer {
  const body = bodyOf(value);
  const items = asArray(body['data']).map((item, position) => {
    const { index, embedding } = asObject(item) ?? {};
    return { index: typeof index === 'number' ? index : position, vector: readVector(embedding) };
  });
  items.sort((a, b) => a.index - b.index);
  // The indexes must be complete, so that each vector belongs to one input.
  const isComplete = items.every(({ index }, position) => index === position);
  const usage = usageOf(asObject(body['usage']));
  return {
    vectors: items.map(({ vector }) => (isComplete ? vector : undefined)),
    ...(usage === undefined ? {} : { usage }),
    ...(typeof body['id'] === 'string' ? { upstream_id: body['id'] } : {}),
  };
}
