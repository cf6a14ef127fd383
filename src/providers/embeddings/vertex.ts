/**
 * Embeddings on Vertex AI. By `predict`: texts
 * (https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api), and one text or one image
 * (https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/multimodal-embeddings-api). By `embedContent`: one list of
 * parts a request (https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/projects.locations.publishers.models/embedContent).
 */
import { GatewayError } from '../../errors.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Media, Report } from '../dialect.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import { bodyOf, countOf } from './answer.ts';
import type { EmbeddingDialect, EmbeddingInput } from './dialect.ts';
import { isUnnormalised, NORMALISED, partsOf, purposeFor, TASKS, usageOf } from './gemini.ts';
import { imageBytes, imagesToFetch, requireNoTokens, textsOnly } from './parts.ts';
import { wordFor } from './purpose.ts';
import { readVector } from './vector.ts';

const MULTIMODAL = /multimodalembedding/;

/**
 * Models of `embedContent`: every one of Gemini but the first, and open models that Google serves. The others support `predict` only
 * (https://github.com/googleapis/python-genai, `t_is_vertex_embed_content_model`).
 */
const EMBEDS_CONTENT = /gemini(?!-embedding-001)|maas/;

/** Text and image of one instance make two vectors there, so a joint vector is not possible. */
function instanceOf(input: EmbeddingInput, media: Media): JsonObject {
  if (typeof input === 'string') return { text: input };
  requireNoTokens(input);
  const [only, ...others] = input;
  if (only === undefined || others.length > 0) {
    throw new GatewayError(400, 'This endpoint cannot combine several parts into one vector');
  }
  if (only.type === 'text') return { text: only.text };
  return { image: { bytesBase64Encoded: imageBytes(only.image_url.url, media).base64 } };
}

export const vertexEmbeddings: EmbeddingDialect = {
  wire: 'vertex-embeddings',
  takesRest: false,
  reserved: new Set([
    'instances',
    'parameters.outputDimensionality',
    'parameters.dimension',
    'content',
    'embedContentConfig.outputDimensionality',
  ]),
  requiredMedia: imagesToFetch,
  batch({ upstream_model: upstreamModel }) {
    // One input per request (Gemini and `embedContent`); 250 texts of 20,000 tokens in all (others).
    const isSingle = [/gemini/, MULTIMODAL, EMBEDS_CONTENT].some((pattern) => pattern.test(upstreamModel));
    if (isSingle) return { inputs_max: 1 };
    return { inputs_max: 250, tokens_max: 20_000 };
  },

  encodeRequest({ inputs, dimensions, input_type: inputType, user }, { upstream_model: upstreamModel }, media) {
    const report: Report[] = [];
    if (user !== undefined) report.push({ kind: 'dropped', field: 'user', reason: 'the endpoint does not support it' });
    const modelPath = `/models/${encodeURIComponent(upstreamModel)}`;
    if (EMBEDS_CONTENT.test(upstreamModel)) {
      const [input] = inputs;
      const { prefix, task } = purposeFor(upstreamModel, inputType, report);
      const config = {
        ...(task === undefined ? {} : { taskType: task }),
        ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
      };
      const body = {
        content: { parts: partsOf(input ?? '', prefix, media) },
        ...(Object.keys(config).length === 0 ? {} : { embedContentConfig: config }),
      };
      return { path: `${modelPath}:embedContent`, headers: {}, body, report };
    }
    const path = `${modelPath}:predict`;
    if (MULTIMODAL.test(upstreamModel)) {
      if (inputType !== undefined) {
        report.push({ kind: 'dropped', field: 'input_type', reason: 'the model has no tasks' });
      }
      const parameters = dimensions === undefined ? {} : { parameters: { dimension: dimensions } };
      return {
        path,
        headers: {},
        body: { instances: inputs.map((input) => instanceOf(input, media)), ...parameters },
        report,
      };
    }
    const task = wordFor(TASKS, inputType);
    const instances = textsOnly(inputs).map((content) => ({
      content,
      ...(task === undefined ? {} : { task_type: task }),
    }));
    const parameters = dimensions === undefined ? {} : { parameters: { outputDimensionality: dimensions } };
    const encoded = { path, headers: {}, body: { instances, ...parameters } };
    if (!isUnnormalised(upstreamModel, dimensions)) return { ...encoded, report };
    return { ...encoded, report: [...report, NORMALISED], is_unnormalised: true };
  },

  decodeResponse(value) {
    const body = bodyOf(value);
    const embedding = asObject(body['embedding']);
    if (embedding !== undefined) {
      const usage = usageOf(body['usageMetadata']);
      return { vectors: [readVector(embedding['values'])], ...(usage === undefined ? {} : { usage }) };
    }
    let tokens: number | undefined = 0;
    const vectors = asArray(body['predictions']).map((item) => {
      const prediction = asObject(item) ?? {};
      const embeddings = asObject(prediction['embeddings']);
      const counted = countOf(asObject(embeddings?.['statistics'])?.['token_count']);
      tokens = tokens === undefined || counted === undefined ? undefined : tokens + counted;
      return readVector(embeddings?.['values'] ?? prediction['textEmbedding'] ?? prediction['imageEmbedding']);
    });
    return { vectors, ...(tokens === undefined || tokens === 0 ? {} : { usage: { in_uncached: tokens } }) };
  },
};
