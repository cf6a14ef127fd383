/** Jina AI's embeddings (https://api.jina.ai/redoc, https://jina.ai/embeddings). */
import { GatewayError } from '../../errors.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { Report } from '../dialect.ts';
import { readDataUrl } from '../shared/data-url.ts';
import { readList } from './answer.ts';
import type { EmbeddingDialect, EmbeddingInput } from './dialect.ts';
import { requireNoTokens } from './parts.ts';
import { type Purpose, wordFor } from './purpose.ts';

const WORDS: Readonly<Partial<Record<Purpose, string>>> = {
  query: 'retrieval.query',
  document: 'retrieval.passage',
  classification: 'classification',
  clustering: 'separation',
  similarity: 'text-matching',
  code_query: 'code.query',
};

/** The code models have their own tasks, for queries and for code. */
const CODE_WORDS: Readonly<Partial<Record<Purpose, string>>> = {
  query: 'nl2code.query',
  document: 'nl2code.passage',
  code_query: 'nl2code.query',
};
const CODE_MODEL = /code-embeddings/;

/** Models before version 3 have no tasks and refuse the field. */
const HAS_TASKS = /embeddings-v[3-9]|clip-v2|code-embeddings/;

function inputOf(input: EmbeddingInput, isMixed: boolean): JsonValue {
  if (typeof input === 'string') return isMixed ? { text: input } : input;
  requireNoTokens(input);
  const [only, ...others] = input;
  if (only === undefined || others.length > 0) {
    throw new GatewayError(400, 'This endpoint cannot combine several parts into one vector');
  }
  if (only.type === 'text') return { text: only.text };
  return { image: readDataUrl(only.image_url.url)?.base64 ?? only.image_url.url };
}

export const jinaEmbeddings: EmbeddingDialect = {
  wire: 'jina-embeddings',
  takesRest: false,
  reserved: new Set(['model', 'input', 'embedding_type', 'dimensions', 'return_multivector']),
  batch: () => ({ inputs_max: 512 }),

  encodeRequest(
    { inputs, encoding_format: encodingFormat, dimensions, input_type: inputType, user },
    { upstream_model: upstreamModel },
  ) {
    const report: Report[] = [];
    if (user !== undefined) report.push({ kind: 'dropped', field: 'user', reason: 'the endpoint does not support it' });
    const isMixed = inputs.some((input) => typeof input !== 'string');
    const body: JsonObject = {
      model: upstreamModel,
      input: inputs.map((input) => inputOf(input, isMixed)),
      embedding_type: encodingFormat,
    };
    const task = wordFor(CODE_MODEL.test(upstreamModel) ? CODE_WORDS : WORDS, inputType);
    if (task !== undefined && HAS_TASKS.test(upstreamModel)) body['task'] = task;
    else if (task !== undefined) {
      report.push({ kind: 'dropped', field: 'input_type', reason: 'the model has no tasks' });
    }
    if (dimensions !== undefined) body['dimensions'] = dimensions;
    return { path: '/embeddings', headers: {}, body, report };
  },

  decodeResponse: (body) => readList(body),
};
