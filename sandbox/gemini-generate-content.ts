import { checkGemini, partsOf, promptTooLong, signatureOf } from './gemini-generate-content-checks.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { type Answer, type Block, isObject, objectsOf, type Prompt, Refusal, textOf } from './prompt.ts';
import { countTokens } from './tokens.ts';
import type { Envelope, SandboxWire } from './wire.ts';

/** The prefix of the sandbox's model names, which makes them models of the third generation. */
export const geminiModelPrefix = 'gemini-3-flash-';

/** Fixed numbers of tokens of an image or document and of a turn's frame, which tests can add up. */
const media_tokens = 85;
const turn_tokens = 4;

function resultText(part: JsonObject): string {
  const result = part['functionResponse'];
  const response = isObject(result) ? result['response'] : undefined;
  if (!isObject(response)) return '';
  return textOf(response['output']) || textOf(response['error']) || JSON.stringify(response);
}

function partText(part: JsonObject): string {
  return part['functionResponse'] === undefined ? textOf(part['text']) : resultText(part);
}

function partTokens(part: JsonObject): number {
  if (part['inlineData'] !== undefined || part['fileData'] !== undefined) return media_tokens;
  if (part['functionCall'] !== undefined) return countTokens(JSON.stringify(part['functionCall']));
  return countTokens(partText(part));
}

function mimeOf(part: JsonObject): string {
  const held = part['inlineData'] ?? part['fileData'];
  return isObject(held) ? textOf(held['mimeType']) : '';
}

function choiceOf(body: JsonObject): Prompt['tool_choice'] {
  const config = isObject(body['toolConfig']) ? body['toolConfig']['functionCallingConfig'] : undefined;
  if (!isObject(config)) return 'auto';
  const allowed = config['allowedFunctionNames'];
  if (Array.isArray(allowed) && allowed.length === 1) return { name: textOf(allowed[0]) };
  return config['mode'] === 'ANY' ? 'required' : config['mode'] === 'NONE' ? 'none' : 'auto';
}

function readPrompt(body: JsonObject): Prompt {
  const contents = objectsOf(body['contents']);
  const config = isObject(body['generationConfig']) ? body['generationConfig'] : {};
  const isResult = (part: JsonObject) => part['functionResponse'] !== undefined;
  const spoken = contents.findLast(
    (content) => content['role'] === 'user' && partsOf(content).some((part) => !isResult(part)),
  );
  const user_parts = partsOf(spoken).filter((part) => !isResult(part));
  const last = contents.at(-1);
  const declarations = objectsOf(body['tools']).flatMap((tool) => objectsOf(tool['functionDeclarations']));
  const thinking = config['thinkingConfig'];
  const bound = config['maxOutputTokens'];
  const schema = config['responseJsonSchema'];
  const stop = config['stopSequences'];
  const system = partsOf(body['systemInstruction']);
  return {
    user_text: user_parts.map(partText).join(''),
    images: user_parts.filter((part) => mimeOf(part).startsWith('image/')).length,
    files: user_parts.filter((part) => mimeOf(part) !== '' && !mimeOf(part).startsWith('image/')).length,
    tool_results: partsOf(last).filter(isResult).map(partText),
    prefill: last?.['role'] === 'model' ? partsOf(last).map(partText).join('') : '',
    tools: declarations.map((one) => ({
      name: textOf(one['name']),
      parameters: isObject(one['parametersJsonSchema']) ? one['parametersJsonSchema'] : {},
    })),
    tool_choice: choiceOf(body),
    parallel: true,
    schema: config['responseMimeType'] === 'application/json' ? (isObject(schema) ? schema : {}) : undefined,
    reasoning: isObject(thinking) && thinking['includeThoughts'] === true,
    tokens_max: typeof bound === 'number' ? bound : Number.MAX_SAFE_INTEGER,
    stop: Array.isArray(stop) ? stop.map((one) => textOf(one)) : [],
    conversation: contents.map((content) => partsOf(content).map(partText).join('')).join('\n'),
    input_tokens:
      [...system, ...contents.flatMap(partsOf)].reduce((sum, part) => sum + partTokens(part), 0) +
      contents.length * turn_tokens +
      declarations.reduce((sum, one) => sum + countTokens(JSON.stringify(one)), 0),
    cache_prefixes: [],
  };
}

const reasons: Record<Answer['finish'], string> = {
  stop: 'STOP',
  stop_sequence: 'STOP',
  refusal: 'SAFETY',
  length: 'MAX_TOKENS',
  calls: 'STOP',
};

function usageOf({ answer, prompt, cache }: Envelope, shown_tokens: number, is_last: boolean): JsonObject {
  const thoughts = answer.reasoning_tokens;
  const candidates = is_last ? answer.output_tokens - thoughts : Math.max(0, shown_tokens - thoughts);
  return {
    promptTokenCount: prompt.input_tokens,
    // Zeros are omitted, as in protocol buffers.
    ...(cache.read_tokens > 0 ? { cachedContentTokenCount: cache.read_tokens } : {}),
    ...(candidates > 0 ? { candidatesTokenCount: candidates } : {}),
    ...(thoughts > 0 ? { thoughtsTokenCount: thoughts } : {}),
    totalTokenCount: prompt.input_tokens + candidates + thoughts,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: prompt.input_tokens }],
    serviceTier: 'standard',
  };
}

/** An empty object if the output bound cut the arguments, since they are not valid JSON then. */
function argsOf(pieces: string[]): JsonValue {
  try {
    return JSON.parse(pieces.join(''));
  } catch {
    return {};
  }
}

/** A call, in one part. Only the first call of a step is signed. */
function callPart(block: Block & { kind: 'call' }, is_first: boolean): JsonObject {
  const args = argsOf(block.pieces);
  // Without arguments there is no member, as on the real wire.
  const part: JsonObject = {
    functionCall: { name: block.name, ...(isObject(args) && Object.keys(args).length > 0 ? { args } : {}) },
  };
  return is_first ? { ...part, thoughtSignature: signatureOf({ functionCall: { name: block.name, args } }) } : part;
}

function isFirstCall(block: Block, { blocks }: Answer): boolean {
  return blocks.find(({ kind }) => kind === 'call') === block;
}

/** The parts of an answer, one for each event. Text is divided into its pieces. */
function* partsOfAnswer(answer: Answer): Generator<{ part: JsonObject; tokens: number }> {
  for (const block of answer.blocks) {
    if (block.kind === 'call') {
      yield { part: callPart(block, isFirstCall(block, answer)), tokens: block.pieces.length };
      continue;
    }
    const thought = block.kind === 'reasoning' ? { thought: true } : {};
    for (const text of block.pieces) yield { part: { text, ...thought }, tokens: 1 };
  }
}

function wholeParts(answer: Answer): JsonObject[] {
  return answer.blocks.map((block) => {
    if (block.kind === 'call') return callPart(block, isFirstCall(block, answer));
    const text = block.pieces.join('');
    return block.kind === 'reasoning' ? { text, thought: true } : { text };
  });
}

function responseOf({ id, body }: Envelope, candidate: JsonObject, usage: JsonObject | undefined): JsonObject {
  return {
    candidates: [{ ...candidate, index: 0 }],
    ...(usage === undefined ? {} : { usageMetadata: usage }),
    modelVersion: textOf(body['model']),
    responseId: id,
  };
}

function encodeBody(envelope: Envelope): JsonObject {
  const { answer, faults } = envelope;
  const finishReason = faults.finish || reasons[answer.finish];
  const content = { parts: wholeParts(answer), role: 'model' };
  const usage = faults.no_usage ? undefined : usageOf(envelope, answer.output_tokens, true);
  return responseOf(envelope, { content, finishReason }, usage);
}

function event(payload: JsonObject): string {
  return `data: ${JSON.stringify(payload)}\r\n\r\n`;
}

function* encodeStream(envelope: Envelope): Generator<string> {
  const { answer, faults } = envelope;
  let shown = 0;
  for (const { part, tokens } of partsOfAnswer(answer)) {
    shown += tokens;
    const usage = faults.no_usage ? undefined : usageOf(envelope, shown, false);
    yield event(responseOf(envelope, { content: { parts: [part], role: 'model' } }, usage));
  }
  const usage = faults.no_usage ? undefined : usageOf(envelope, shown, true);
  const finishReason = faults.finish || reasons[answer.finish];
  yield event(responseOf(envelope, { content: { parts: [{ text: '' }], role: 'model' }, finishReason }, usage));
}

// https://cloud.google.com/apis/design/errors#handling_errors
const statuses: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

function errorBody({ status, message }: Refusal): JsonObject {
  return { error: { code: status, message, status: statuses[status] ?? 'UNKNOWN' } };
}

const PATH = /^\/v1(?:beta|beta1)?(?:\/[^:]+)?\/models\/([^/:]+):(generateContent|streamGenerateContent)$/;

/** The wire of `POST /v1beta/models/{model}:generateContent`. https://ai.google.dev/api/generate-content */
export const geminiGenerateContent: SandboxWire = {
  path: PATH,
  targetOf(path) {
    const [, model = '', method] = PATH.exec(path) ?? [];
    return { model: decodeURIComponent(model).replace(geminiModelPrefix, ''), stream: method !== 'generateContent' };
  },
  credentialOf: (headers) =>
    (headers['x-goog-api-key'] as string | undefined) ?? headers.authorization?.replace(/^Bearer /, ''),
  credentialRefused: () => new Refusal(400, 'API key not valid. Please pass a valid API key.'),
  modelUnknown: (model) =>
    new Refusal(404, `models/${model} is not found for API version v1beta, or is not supported for generateContent.`),
  check: checkGemini,
  promptTooLong,
  readPrompt,
  encodeBody,
  encodeStream,
  errorBody,
  errorEvent: (refusal) => event(errorBody(refusal)),
  answerHeaders: () => ({}),
};
