/** Gemini's embeddings (https://ai.google.dev/api/embeddings, https://ai.google.dev/gemini-api/docs/embeddings). */

import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { Media, Report } from '../dialect.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import { bodyOf, countOf } from './answer.ts';
import type { EmbeddingDialect, EmbeddingInput } from './dialect.ts';
import { imageBytes, imagesToFetch, requireNoTokens } from './parts.ts';
import { type Purpose, purposeOf, wordFor } from './purpose.ts';
import { readVector } from './vector.ts';

/** The `taskType` of Google's wires. */
export const TASKS: Readonly<Record<Purpose, string>> = {
  query: 'RETRIEVAL_QUERY',
  document: 'RETRIEVAL_DOCUMENT',
  classification: 'CLASSIFICATION',
  clustering: 'CLUSTERING',
  similarity: 'SEMANTIC_SIMILARITY',
  code_query: 'CODE_RETRIEVAL_QUERY',
};

/** Gemini Embedding 2 has no `taskType`: the task is a prefix of the text (documentation page "Embeddings"). Its preview had one. */
const TASK_IN_TEXT = /gemini-embedding-2(?!-preview)/;
const PREFIXES: Readonly<Record<Purpose, string>> = {
  query: 'task: search result | query: ',
  document: 'title: none | text: ',
  classification: 'task: classification | query: ',
  clustering: 'task: clustering | query: ',
  similarity: 'task: sentence similarity | query: ',
  code_query: 'task: code retrieval | query: ',
};

/** Whether vectors are not of length one: only those of full dimensions are (documentation page "Embeddings", section on quality for smaller ones). */
export function isUnnormalised(upstreamModel: string, dimensions: number | undefined): boolean {
  return /gemini-embedding-001/.test(upstreamModel) && dimensions !== undefined && dimensions !== 3072;
}

/** The report for vectors that the gateway normalises. */
export const NORMALISED: Report = {
  kind: 'changed',
  field: 'dimensions',
  reason: 'the gateway normalises shortened vectors of this model to length one',
};

/** One input, as a list of parts that make one vector together. */
export function partsOf(input: EmbeddingInput, prefix: string, media: Media): JsonObject[] {
  if (typeof input === 'string') return [{ text: prefix + input }];
  requireNoTokens(input);
  return input.map((part) => {
    if (part.type === 'text') return { text: prefix + part.text };
    const { media_type: mediaType, base64 } = imageBytes(part.image_url.url, media);
    return { inlineData: { mimeType: mediaType, data: base64 } };
  });
}

/** The purpose of the inputs as the model expects it: a task field, or a prefix of each text. */
export function purposeFor(
  model: string,
  inputType: string | undefined,
  report: Report[],
): { prefix: string; task: string | undefined } {
  if (!TASK_IN_TEXT.test(model)) return { prefix: '', task: wordFor(TASKS, inputType) };
  const purpose = purposeOf(inputType);
  if (inputType !== undefined && purpose === undefined) {
    report.push({ kind: 'dropped', field: 'input_type', reason: 'the model has no such task' });
  }
  return { prefix: purpose === undefined ? '' : PREFIXES[purpose], task: undefined };
}

/** The usage that an answer of Google's reports for its prompt. */
export function usageOf(value: JsonValue | undefined): TokenClasses | undefined {
  const metadata = asObject(value);
  const tokens = countOf(metadata?.['promptTokenCount']);
  if (tokens === undefined) return undefined;
  let inImage = 0;
  for (const detail of asArray(metadata?.['promptTokenDetails'] ?? metadata?.['promptTokensDetails'])) {
    const { modality, tokenCount } = asObject(detail) ?? {};
    if (modality === 'IMAGE') inImage += countOf(tokenCount) ?? 0;
  }
  if (inImage === 0 || inImage > tokens) return { in_uncached: tokens };
  return { in_uncached: tokens - inImage, in_image: inImage };
}

export const geminiEmbeddings: EmbeddingDialect = {
  wire: 'gemini-embeddings',
  takesRest: false,
  reserved: new Set(['requests']),
  requiredMedia: imagesToFetch,
  batch: () => ({ inputs_max: 100 }),

  encodeRequest({ inputs, dimensions, input_type: inputType, user }, { upstream_model: upstreamModel }, media) {
    const report: Report[] = [];
    const model = upstreamModel.startsWith('models/') ? upstreamModel : `models/${upstreamModel}`;
    const { prefix, task } = purposeFor(model, inputType, report);
    if (user !== undefined) report.push({ kind: 'dropped', field: 'user', reason: 'the endpoint does not support it' });
    const requests = inputs.map((input) => ({
      model,
      content: { parts: partsOf(input, prefix, media) },
      ...(task === undefined ? {} : { taskType: task }),
      ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
    }));
    const encoded = { path: `/${model}:batchEmbedContents`, headers: {}, body: { requests } };
    if (!isUnnormalised(model, dimensions)) return { ...encoded, report };
    return { ...encoded, report: [...report, NORMALISED], is_unnormalised: true };
  },

  decodeResponse(value) {
    const body = bodyOf(value);
    const vectors = asArray(body['embeddings']).map((item) => readVector(asObject(item)?.['values']));
    const usage = usageOf(body['usageMetadata']);
    return { vectors, ...(usage === undefined ? {} : { usage }) };
  },
};
