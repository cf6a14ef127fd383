import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { UpstreamError } from '../dialect.ts';
import { errorInside } from '../openai-chat/errors.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import type { EmbeddingAnswer } from './dialect.ts';
import { readVector } from './vector.ts';

/** A whole number above zero; undefined for anything else: no input that is embedded has no tokens. */
export function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;
}

/** The body as an object. Throws the error that stands in it. */
export function bodyOf(value: JsonValue): JsonObject {
  const body = asObject(value);
  if (body === undefined) throw new UpstreamError('invalid_response', "The provider's answer is not an object");
  const fault = body['error'] === undefined ? undefined : errorInside(value);
  if (fault !== undefined) throw fault;
  return body;
}

function usageOf(usage: JsonObject | undefined): TokenClasses | undefined {
  const tokens = countOf(usage?.['prompt_tokens']) ?? countOf(usage?.['total_tokens']);
  if (tokens === undefined) return undefined;
  // Voyage tells those of the texts apart; the others are of images (https://docs.voyageai.com/reference/multimodal-embeddings-api).
  const { text_tokens: textTokens } = usage ?? {};
  const isApart = typeof textTokens === 'number' && textTokens >= 0 && textTokens < tokens;
  return isApart ? { in_uncached: textTokens, in_image: tokens - textTokens } : { in_uncached: tokens };
}

/** The list that OpenAI, Voyage and Jina answer with: `data` of `{index, embedding}` in any order, and `usage`. */
export function readList(value: JsonValue): EmbeddingAnswer {
  const body = bodyOf(value);
  const items = asArray(body['data']).map((item, position) => {
    const { index, embedding } = asObject(item) ?? {};
    return { index: typeof index === 'number' ? index : position, vector: readVector(embedding) };
  });
  items.sort((a, b) => a.index - b.index);
  // Whose a vector is must be plain of each.
  const areTold = items.every(({ index }, position) => index === position);
  const usage = usageOf(asObject(body['usage']));
  return {
    vectors: items.map(({ vector }) => (areTold ? vector : undefined)),
    ...(usage === undefined ? {} : { usage }),
    ...(typeof body['id'] === 'string' ? { upstream_id: body['id'] } : {}),
  };
}
