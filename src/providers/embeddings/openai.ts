/**
 * OpenAI's embeddings (https://platform.openai.com/docs/api-reference/embeddings), and every server that speaks the same
 * wire with quirks of its own: Mistral (https://docs.mistral.ai/api/endpoint/embeddings), NVIDIA
 * (https://docs.api.nvidia.com/nim/reference/nvidia-nv-embedqa-e5-v5-infer).
 */
import { GatewayError } from '../../errors.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { Report } from '../dialect.ts';
import type { Quirks } from '../quirks.ts';
import { gatewayFields } from '../shared/gateway-fields.ts';
import { readList } from './answer.ts';
import type { EmbeddingDialect } from './dialect.ts';
import { isTokens, requireNoTokens } from './parts.ts';
import { purposeOf } from './purpose.ts';

/** 2048 inputs and 300,000 tokens a request (OpenAI); 256 inputs and 16,384 tokens (Mistral, measured by others). */
const OPENAI = { inputs_max: 2048, tokens_max: 300_000 };

function pathOf({ path, query }: Quirks, upstreamModel: string): string {
  const own = path
    ?.replace(/\/chat\/completions$/, '/embeddings')
    .replace('{model}', encodeURIComponent(upstreamModel));
  return `${own ?? '/embeddings'}${query === undefined ? '' : `?${query}`}`;
}

export const openaiEmbeddings: EmbeddingDialect = {
  wire: 'openai-embeddings',
  takesRest: true,
  reserved: new Set([...gatewayFields, 'input', 'encoding_format', 'dimensions', 'output_dimension', 'output_dtype']),
  batch: ({ quirks: { embedding_batch: embeddingBatch } }) => ({ ...OPENAI, ...embeddingBatch }),

  encodeRequest(
    { inputs, encoding_format: encodingFormat, dimensions, input_type: inputType, user, rest },
    { upstream_model: upstreamModel, quirks },
  ) {
    const report: Report[] = [];
    if (inputs.some((input) => typeof input !== 'string' && !isTokens(input))) {
      throw new GatewayError(400, 'This endpoint does not accept images');
    }
    if (quirks.embedding_texts_only) inputs.forEach(requireNoTokens);
    const body: JsonObject = { ...rest, model: upstreamModel, input: inputs as JsonValue };
    if (!quirks.embedding_texts_only) body['encoding_format'] = encodingFormat;
    if (dimensions !== undefined) body[quirks.dimensions_field ?? 'dimensions'] = dimensions;
    if (user !== undefined) {
      if (quirks.refused_parameters?.includes('user')) {
        report.push({ kind: 'dropped', field: 'user', reason: 'the endpoint does not support it' });
      } else body['user'] = user;
    }
    if (quirks.embedding_purpose) body['input_type'] = purposeOf(inputType) === 'query' ? 'query' : 'passage';
    else if (inputType !== undefined) {
      report.push({
        kind: 'dropped',
        field: 'input_type',
        reason: 'the endpoint does not distinguish queries from documents',
      });
    }
    return { path: pathOf(quirks, upstreamModel), headers: {}, body, report };
  },

  decodeResponse: (body) => readList(body),
};
