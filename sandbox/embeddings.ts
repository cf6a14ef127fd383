import { cohereChat } from './cohere-chat.ts';
import {
  cohereProblem,
  geminiProblem,
  jinaProblem,
  openaiProblem,
  titanProblem,
  vertexContentProblem,
  vertexProblem,
  voyageProblem,
} from './embeddings-checks.ts';
import { geminiGenerateContent } from './gemini-generate-content.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { limits } from './limits.ts';
import { openAiChat } from './openai-chat.ts';
import { isObject, objectsOf, type Prompt, Refusal, textOf } from './prompt.ts';
import { countTokens } from './tokens.ts';
import type { Envelope, SandboxWire } from './wire.ts';

/** A fixed number of tokens of an image, which tests can add up. */
const image_tokens = 85;
const dimensions_default = 8;

/** One input: the text that its vector depends on, and its tokens. */
interface Input {
  text: string;
  text_tokens: number;
  image_tokens: number;
}

function inputOf(value: JsonValue | undefined): Input {
  if (typeof value === 'string') return { text: value, text_tokens: countTokens(value), image_tokens: 0 };
  if (Array.isArray(value)) return { text: JSON.stringify(value), text_tokens: value.length, image_tokens: 0 };
  const parts = objectsOf(isObject(value) ? (value['parts'] ?? value['content']) : undefined);
  const texts = parts.map((part) => textOf(part['text'])).join('');
  const images = parts.filter((part) => part['text'] === undefined).length;
  return {
    text: JSON.stringify(value),
    text_tokens: countTokens(texts),
    image_tokens: images * image_tokens,
  };
}

/** A vector of length one that depends on every character. The same text has the same vector on every wire. */
export function sandboxVector(text: string, dimensions: number = dimensions_default): number[] {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
  state = state >>> 0 || 1;
  const numbers = Array.from({ length: dimensions }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 0x80000000 - 1;
  });
  const length = Math.sqrt(numbers.reduce((sum, number) => sum + number * number, 0));
  return numbers.map((number) => Math.fround(number / length));
}

function base64Of(vector: number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [at, number] of vector.entries()) bytes.writeFloatLE(number, at * 4);
  return bytes.toString('base64');
}

/** The parts of a wire of embeddings that differ. Credentials and errors are those of `errorsOf`. */
interface VectorWire {
  path: RegExp;
  errorsOf: SandboxWire;
  /** The reason why the real service refuses a request; undefined if it accepts it. */
  problem(body: JsonObject): string | undefined;
  inputs(body: JsonObject): JsonValue[];
  dimensions?(body: JsonObject): JsonValue | undefined;
  encode(answer: { vectors: number[][]; inputs: Input[]; tokens: number; body: JsonObject; id: string }): JsonObject;
}

function readPrompt(inputs: Input[], conversation: string): Prompt {
  return {
    user_text: '',
    images: 0,
    files: 0,
    tool_results: [],
    prefill: '',
    tools: [],
    tool_choice: 'none',
    parallel: false,
    schema: undefined,
    reasoning: false,
    tokens_max: 0,
    stop: [],
    conversation,
    input_tokens: inputs.reduce((sum, { text_tokens, image_tokens: image }) => sum + text_tokens + image, 0),
    cache_prefixes: [],
  };
}

function wireOf({ path, errorsOf: manners, problem, inputs, dimensions, encode }: VectorWire): SandboxWire {
  const { credentialOf, credentialRefused, modelUnknown, promptTooLong, errorBody, errorEvent, answerHeaders } =
    manners;
  const lengthOf = (body: JsonObject): number => {
    const requested = dimensions?.(body);
    return typeof requested === 'number' ? requested : dimensions_default;
  };
  return {
    path,
    makes_vectors: true,
    ...(path.source.includes('([^/') ? { targetOf: (address) => targetOf(path, address) } : {}),
    credentialOf,
    credentialRefused,
    modelUnknown,
    promptTooLong,
    errorBody,
    errorEvent,
    answerHeaders,
    check(body) {
      const fault = problem(body);
      if (fault !== undefined) throw new Refusal(400, fault);
      const length = lengthOf(body);
      if (length > limits.dimensions_max) {
        throw new Refusal(
          400,
          `The sandbox makes vectors of at most ${limits.dimensions_max} numbers: request fewer dimensions.`,
        );
      }
      if (length * inputs(body).length > limits.numbers_max) {
        const most = `${limits.numbers_max} numbers in one answer`;
        throw new Refusal(400, `The sandbox makes at most ${most}: send fewer inputs, or request fewer dimensions.`);
      }
    },
    readPrompt(body) {
      const user = textOf(body['user']);
      const read = inputs(body).map(inputOf);
      return readPrompt(read, user === '' ? JSON.stringify(read.map(({ text }) => text)) : user);
    },
    encodeBody({ body, prompt, faults, id }: Envelope) {
      const read = inputs(body).map(inputOf);
      const vectors = read.map(({ text }) => sandboxVector(text, lengthOf(body)));
      const answer = encode({ vectors, inputs: read, tokens: prompt.input_tokens, body, id });
      if (faults.no_usage) {
        for (const name of ['usage', 'usageMetadata', 'meta', 'inputTextTokenCount']) delete answer[name];
      }
      return answer;
    },
    encodeStream: () => [],
  };
}

/** The sandbox's model name, which is the last part of the model name of an address. */
function targetOf(path: RegExp, address: string) {
  const named = decodeURIComponent(path.exec(address)?.[1] ?? '');
  return {
    model:
      /(?:titan-embed-[a-z0-9-]*|cohere\.embed-v\d|text-embedding|embedding-maas)[.](.*)$/.exec(named)?.[1] ?? named,
    stream: false,
  };
}

const listOf = (value: JsonValue | undefined): JsonValue[] => {
  if (!Array.isArray(value)) return value === undefined ? [] : [value];
  return typeof value[0] === 'number' ? [value] : value;
};

/** The form of OpenAI, Voyage and Jina. The items are not in the order of the inputs, as the wire allows. */
function listBody(vectors: number[][], format: JsonValue | undefined, model: JsonValue | undefined, usage: JsonObject) {
  const data = vectors.map((vector, index) => ({
    object: 'embedding',
    index,
    embedding: format === 'base64' ? base64Of(vector) : vector,
  }));
  return { object: 'list', data: data.reverse(), model: textOf(model), usage };
}

const openai = wireOf({
  path: /^\/v1\/embeddings$/,
  errorsOf: openAiChat,
  problem: openaiProblem,
  inputs: (body) => listOf(body['input']),
  dimensions: (body) => body['dimensions'],
  encode: ({ vectors, tokens, body }) =>
    listBody(vectors, body['encoding_format'], body['model'], { prompt_tokens: tokens, total_tokens: tokens }),
});

const voyage = wireOf({
  path: /^\/voyage\/v1\/(?:multimodal)?embeddings$/,
  errorsOf: openAiChat,
  problem: voyageProblem,
  inputs: (body) => listOf(body['input'] ?? body['inputs']),
  dimensions: (body) => body['output_dimension'],
  encode: ({ vectors, tokens, body }) =>
    listBody(vectors, body['encoding_format'] ?? body['output_encoding'], body['model'], { total_tokens: tokens }),
});

const jina = wireOf({
  path: /^\/jina\/v1\/embeddings$/,
  errorsOf: openAiChat,
  problem: jinaProblem,
  inputs: (body) =>
    listOf(body['input']).map((input) => {
      if (!isObject(input)) return input;
      return typeof input['text'] === 'string' ? input['text'] : { content: [{ image: textOf(input['image']) }] };
    }),
  dimensions: (body) => body['dimensions'],
  encode: ({ vectors, tokens, body }) =>
    listBody(vectors, body['embedding_type'], body['model'], { prompt_tokens: tokens, total_tokens: tokens }),
});

const cohere = wireOf({
  path: /^\/v2\/embed$/,
  errorsOf: cohereChat,
  problem: cohereProblem,
  inputs: (body) => listOf(body['texts'] ?? body['inputs']),
  dimensions: (body) => body['output_dimension'],
  encode: ({ vectors, inputs, id }) => ({
    id,
    response_type: 'embeddings_by_type',
    embeddings: { float: vectors },
    meta: {
      api_version: { version: '2' },
      billed_units: {
        input_tokens: inputs.reduce((sum, { text_tokens }) => sum + text_tokens, 0),
        image_tokens: inputs.reduce((sum, input) => sum + input.image_tokens, 0),
      },
    },
  }),
});

/** A content of Google's wire. If it is one text, the input is that text, so that it has the same vector on every wire. */
function contentInput(content: JsonValue | undefined): JsonValue {
  const parts = objectsOf(isObject(content) ? content['parts'] : undefined);
  return parts.length === 1 && typeof parts[0]?.['text'] === 'string' ? parts[0]['text'] : { parts };
}

/** Tokens of a prompt by modality, in the form of Google's answers. */
function modalitiesOf(inputs: Input[], tokens: number): JsonObject[] {
  const image = inputs.reduce((sum, input) => sum + input.image_tokens, 0);
  return [
    ...(tokens > image ? [{ modality: 'TEXT', tokenCount: tokens - image }] : []),
    ...(image > 0 ? [{ modality: 'IMAGE', tokenCount: image }] : []),
  ];
}

const gemini = wireOf({
  path: /^\/v1beta\/models\/(?:gemini-3-flash-)?([^/:]+):batchEmbedContents$/,
  errorsOf: geminiGenerateContent,
  problem: geminiProblem,
  inputs: (body) => objectsOf(body['requests']).map(({ content }) => contentInput(content)),
  dimensions: (body) => objectsOf(body['requests'])[0]?.['outputDimensionality'],
  encode: ({ vectors, inputs, tokens }) => ({
    embeddings: vectors.map((values) => ({ values })),
    usageMetadata: { promptTokenCount: tokens, promptTokenDetails: modalitiesOf(inputs, tokens) },
  }),
});

const vertexContent = wireOf({
  path: /^\/vertex\/v1\/models\/([^/:]+):embedContent$/,
  errorsOf: openAiChat,
  problem: vertexContentProblem,
  inputs: ({ content }) => [contentInput(content)],
  dimensions: ({ embedContentConfig: config }) => (isObject(config) ? config['outputDimensionality'] : undefined),
  encode: ({ vectors, inputs, tokens }) => ({
    embedding: { values: vectors[0] ?? [] },
    usageMetadata: { promptTokenCount: tokens, promptTokensDetails: modalitiesOf(inputs, tokens) },
    truncated: false,
  }),
});

const vertex = wireOf({
  path: /^\/vertex\/v1\/models\/([^/:]+):predict$/,
  errorsOf: openAiChat,
  problem: vertexProblem,
  inputs: (body) => objectsOf(body['instances']).map(({ content }) => textOf(content)),
  dimensions: ({ parameters }) => (isObject(parameters) ? parameters['outputDimensionality'] : undefined),
  encode: ({ vectors, inputs }) => ({
    predictions: vectors.map((values, at) => ({
      embeddings: { values, statistics: { truncated: false, token_count: inputs[at]?.text_tokens ?? 0 } },
    })),
  }),
});

const titan = wireOf({
  path: /^\/bedrock-vectors\/model\/([^/]+)\/invoke$/,
  errorsOf: openAiChat,
  problem: titanProblem,
  inputs: (body) => listOf(body['inputText']),
  dimensions: (body) => body['dimensions'],
  encode: ({ vectors, tokens }) => ({ embedding: vectors[0] ?? [], inputTextTokenCount: tokens }),
});

/** The wires of embeddings. */
export const vectorWires: readonly SandboxWire[] = [openai, voyage, jina, cohere, gemini, vertex, vertexContent, titan];
