import type { JsonObject, JsonValue } from './json.ts';
import { isObject, objectsOf, textOf } from './prompt.ts';

/** Fields for the sandbox itself, which every wire accepts. */
const ours = ['sandbox'];

function unknownField(body: JsonObject, known: readonly string[]): string | undefined {
  const field = Object.keys(body).find((name) => !known.includes(name) && !ours.includes(name));
  return field === undefined ? undefined : `Unrecognized request argument supplied: ${field}`;
}

function isTexts(value: JsonValue | undefined, most: number): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= most &&
    value.every((one) => typeof one === 'string' && one !== '')
  );
}

function isTokens(value: JsonValue | undefined): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((one) => Number.isInteger(one));
}

function oneOf(body: JsonObject, name: string, words: readonly string[]): string | undefined {
  const value = body[name];
  if (value === undefined || value === null || words.includes(textOf(value))) return undefined;
  return `Invalid value for '${name}': ${JSON.stringify(value)}. Supported values are: ${words.join(', ')}.`;
}

function whole(body: JsonObject, name: string): string | undefined {
  const value = body[name];
  if (value === undefined || value === null || (Number.isInteger(value) && Number(value) > 0)) return undefined;
  return `Invalid '${name}': expected an integer of at least 1.`;
}

/** https://platform.openai.com/docs/api-reference/embeddings/create */
export function openaiProblem(body: JsonObject): string | undefined {
  const { input } = body;
  const lists = Array.isArray(input) && input.length > 0 && input.length <= 2048 && input.every(isTokens);
  if (!(typeof input === 'string' && input !== '') && !isTexts(input, 2048) && !isTokens(input) && !lists) {
    return "'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference.";
  }
  return (
    unknownField(body, ['model', 'input', 'encoding_format', 'dimensions', 'user']) ??
    oneOf(body, 'encoding_format', ['float', 'base64']) ??
    whole(body, 'dimensions')
  );
}

/** https://docs.voyageai.com/reference/embeddings-api */
export function voyageProblem(body: JsonObject): string | undefined {
  const shared = ['model', 'input_type', 'truncation', 'output_dimension'];
  const is_mixed = body['inputs'] !== undefined;
  if (is_mixed && objectsOf(body['inputs']).some(({ content }) => objectsOf(content).length === 0)) {
    return 'Each input must have content.';
  }
  if (!is_mixed && typeof body['input'] !== 'string' && !isTexts(body['input'], 1000)) {
    return 'The request body is not valid: input must be a text or at most 1000 texts.';
  }
  return (
    unknownField(
      body,
      is_mixed ? [...shared, 'inputs', 'output_encoding'] : [...shared, 'input', 'encoding_format', 'output_dtype'],
    ) ??
    oneOf(body, 'input_type', ['query', 'document']) ??
    oneOf(body, 'encoding_format', ['base64']) ??
    oneOf(body, 'output_encoding', ['base64']) ??
    whole(body, 'output_dimension')
  );
}

/** https://api.jina.ai/redoc */
export function jinaProblem(body: JsonObject): string | undefined {
  const inputs = Array.isArray(body['input']) ? body['input'] : [];
  const fits = inputs.every(
    (one) =>
      typeof one === 'string' ||
      (isObject(one) && (typeof one['text'] === 'string') !== (typeof one['image'] === 'string')),
  );
  if (inputs.length === 0 || inputs.length > 2048 || !fits)
    return 'input must be texts, or objects with text or image.';
  return (
    unknownField(body, [
      'model',
      'input',
      'task',
      'dimensions',
      'embedding_type',
      'normalized',
      'truncate',
      'late_chunking',
    ]) ??
    oneOf(body, 'embedding_type', ['float', 'base64']) ??
    oneOf(body, 'task', [
      'retrieval.query',
      'retrieval.passage',
      'text-matching',
      'classification',
      'separation',
      'code.query',
    ]) ??
    whole(body, 'dimensions')
  );
}

/** https://docs.cohere.com/reference/embed */
export function cohereProblem(body: JsonObject): string | undefined {
  const kinds = ['texts', 'images', 'inputs'].filter((name) => body[name] !== undefined);
  if (kinds.length !== 1) return 'invalid request: exactly one of texts, images or inputs must be given';
  const [kind = ''] = kinds;
  const list = body[kind];
  if (!Array.isArray(list) || list.length === 0 || list.length > 96)
    return `invalid request: ${kind} must have 1 to 96 items`;
  if (kind === 'texts' && !isTexts(list, 96)) return 'invalid request: texts must be texts';
  const words = ['search_document', 'search_query', 'classification', 'clustering', 'image'];
  if (body['input_type'] === undefined) return 'invalid request: input_type must be set for this model';
  return (
    unknownField(body, [
      ...['model', 'texts', 'images', 'inputs', 'input_type'],
      ...['embedding_types', 'output_dimension', 'truncate', 'max_tokens'],
    ]) ??
    oneOf(body, 'input_type', words) ??
    oneOf(body, 'truncate', ['NONE', 'START', 'END']) ??
    whole(body, 'output_dimension')
  );
}

const tasks = [
  'RETRIEVAL_QUERY',
  'RETRIEVAL_DOCUMENT',
  'SEMANTIC_SIMILARITY',
  'CLASSIFICATION',
  'CLUSTERING',
  'QUESTION_ANSWERING',
  'FACT_VERIFICATION',
  'CODE_RETRIEVAL_QUERY',
];

/** https://ai.google.dev/api/embeddings#method:-models.batchembedcontents */
export function geminiProblem(body: JsonObject): string | undefined {
  const requests = objectsOf(body['requests']);
  if (requests.length === 0) return 'requests must not be empty';
  if (requests.length > 100) return 'at most 100 requests can be in one batch';
  const known = ['model', 'content', 'taskType', 'title', 'outputDimensionality'];
  for (const one of requests) {
    const parts = objectsOf(isObject(one['content']) ? one['content']['parts'] : undefined);
    if (parts.length === 0) return 'content contains an empty Part.';
    if (!textOf(one['model']).startsWith('models/')) return 'model must be given in each request';
    const fault = unknownField(one, known) ?? oneOf(one, 'taskType', tasks) ?? whole(one, 'outputDimensionality');
    if (fault !== undefined) return fault;
  }
  return unknownField(body, ['requests']);
}

/** https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api */
export function vertexProblem(body: JsonObject): string | undefined {
  const instances = objectsOf(body['instances']);
  if (instances.length === 0 || instances.length > 250) return 'instances must have 1 to 250 items';
  for (const one of instances) {
    if (textOf(one['content']) === '') return 'The text content is empty.';
    const fault = unknownField(one, ['content', 'task_type', 'title']) ?? oneOf(one, 'task_type', tasks);
    if (fault !== undefined) return fault;
  }
  const { parameters } = body;
  return (
    unknownField(body, ['instances', 'parameters']) ??
    (isObject(parameters) ? unknownField(parameters, ['outputDimensionality', 'autoTruncate']) : undefined)
  );
}

/** https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/projects.locations.publishers.models/embedContent */
export function vertexContentProblem(body: JsonObject): string | undefined {
  const { content, embedContentConfig: config = {} } = body;
  if (objectsOf(isObject(content) ? content['parts'] : undefined).length === 0) return 'content must not be empty';
  if (!isObject(config)) return 'embedContentConfig must be an object';
  return (
    unknownField(body, ['content', 'embedContentConfig']) ??
    unknownField(config, ['autoTruncate', 'taskType', 'title', 'outputDimensionality']) ??
    oneOf(config, 'taskType', tasks) ??
    whole(config, 'outputDimensionality')
  );
}

/** https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html */
export function titanProblem(body: JsonObject): string | undefined {
  if (textOf(body['inputText']) === '') return 'Malformed input request: expected inputText';
  const extra = unknownField(body, ['inputText', 'dimensions', 'normalize', 'embeddingTypes']);
  if (extra !== undefined) return `Malformed input request: ${extra}`;
  const { dimensions } = body;
  if (dimensions === undefined || [256, 512, 1024].includes(Number(dimensions))) return undefined;
  return 'Malformed input request: dimensions must be 256, 512 or 1024';
}
