import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { checkBedrockConverse, promptTooLong, schemaOf } from './bedrock-converse-checks.ts';
import type { JsonObject, JsonValue } from './json.ts';
import {
  type Answer,
  type Block,
  type CachePrefix,
  isObject,
  objectsOf,
  type Prompt,
  Refusal,
  textOf,
} from './prompt.ts';
import { thinkingSignature } from './signature.ts';
import { countTokens } from './tokens.ts';
import type { Envelope, SandboxWire } from './wire.ts';

/** The prefix of the sandbox's model names. The maker and generation in a name decide what a request can contain. */
export const bedrockModelPrefix = 'anthropic.claude-sonnet-4-5.';

/** Fixed numbers of tokens of an image and of a message's frame, which tests can add up. */
const image_tokens = 85;
const message_tokens = 4;

function blockText(block: JsonObject): string {
  if (isObject(block['toolResult'])) return objectsOf(block['toolResult']['content']).map(blockText).join('');
  return block['json'] === undefined ? textOf(block['text']) : JSON.stringify(block['json']);
}

function blockTokens(block: JsonObject): number {
  const { toolUse, toolResult, reasoningContent } = block;
  if (['image', 'document', 'video', 'audio'].some((kind) => block[kind] !== undefined)) return image_tokens;
  if (isObject(toolUse)) return countTokens(textOf(toolUse['name'])) + countTokens(JSON.stringify(toolUse['input']));
  if (isObject(toolResult)) return objectsOf(toolResult['content']).reduce((sum, one) => sum + blockTokens(one), 0);
  if (isObject(reasoningContent)) {
    const reasoning = reasoningContent['reasoningText'];
    return isObject(reasoning) ? countTokens(textOf(reasoning['text'])) : 0;
  }
  return countTokens(blockText(block));
}

/** The prompt in the order in which the service caches it: tools, system, messages. */
function unitsOf(body: JsonObject): { block: JsonObject; tokens: number }[] {
  const config = isObject(body['toolConfig']) ? body['toolConfig'] : {};
  const isPoint = (block: JsonObject) => block['cachePoint'] !== undefined;
  const tokensOf = (block: JsonObject, frame: number) => (isPoint(block) ? 0 : blockTokens(block) + frame);
  return [
    ...objectsOf(config['tools']).map((block) => ({
      block,
      tokens: isPoint(block) ? 0 : countTokens(JSON.stringify(block)),
    })),
    ...objectsOf(body['system']).map((block) => ({ block, tokens: tokensOf(block, 0) })),
    ...objectsOf(body['messages']).flatMap(({ content }) =>
      objectsOf(content).map((block, at) => ({ block, tokens: tokensOf(block, at === 0 ? message_tokens : 0) })),
    ),
  ];
}

function cachePrefixes(model: string, units: { block: JsonObject; tokens: number }[]): CachePrefix[] {
  const prefixes: CachePrefix[] = [];
  let tokens = 0;
  let identity = model;
  for (const unit of units) {
    tokens += unit.tokens;
    const point = unit.block['cachePoint'];
    if (isObject(point)) prefixes.push({ identity, tokens, hour: point['ttl'] === '1h' });
    else identity = hash('sha1', `${identity}\n${JSON.stringify(unit.block)}`);
  }
  return prefixes;
}

function toolChoice(choice: JsonValue | undefined): Prompt['tool_choice'] {
  if (!isObject(choice)) return 'auto';
  if (isObject(choice['tool'])) return { name: textOf(choice['tool']['name']) };
  return choice['any'] === undefined ? 'auto' : 'required';
}

function readPrompt(body: JsonObject): Prompt {
  const messages = objectsOf(body['messages']);
  const units = unitsOf(body);
  const isResult = (block: JsonObject) => block['toolResult'] !== undefined;
  const last = messages.at(-1);
  const last_blocks = objectsOf(last?.['content']);
  const spoken = messages.findLast(
    ({ role, content }) => role === 'user' && objectsOf(content).some((block) => !isResult(block)),
  );
  const user_blocks = objectsOf(spoken?.['content']).filter((block) => !isResult(block));
  const config = isObject(body['inferenceConfig']) ? body['inferenceConfig'] : {};
  const tools = isObject(body['toolConfig']) ? body['toolConfig'] : {};
  const extra = isObject(body['additionalModelRequestFields']) ? body['additionalModelRequestFields'] : {};
  const thinking = extra['thinking'];
  const metadata = isObject(body['requestMetadata']) ? body['requestMetadata'] : {};
  const bound = config['maxTokens'];
  const conversation = messages.map(({ content }) => objectsOf(content).map(blockText).join('')).join('\n');
  return {
    user_text: user_blocks.map(blockText).join(''),
    images: user_blocks.filter((block) => block['image'] !== undefined).length,
    files: user_blocks.filter((block) => block['document'] !== undefined).length,
    tool_results: last_blocks.filter(isResult).map(blockText),
    prefill: last?.['role'] === 'assistant' ? last_blocks.map(blockText).join('') : '',
    tools: objectsOf(tools['tools']).flatMap(({ toolSpec: spec }) => {
      const schema = isObject(spec) && isObject(spec['inputSchema']) ? spec['inputSchema']['json'] : undefined;
      return isObject(spec) && isObject(schema) ? [{ name: textOf(spec['name']), parameters: schema }] : [];
    }),
    tool_choice: toolChoice(tools['toolChoice']),
    parallel: true,
    schema: schemaOf(body),
    reasoning: isObject(thinking) && (thinking['type'] === 'enabled' || thinking['type'] === 'adaptive'),
    tokens_max: typeof bound === 'number' ? bound : Number.POSITIVE_INFINITY,
    stop: Array.isArray(config['stopSequences']) ? config['stopSequences'].map((one) => textOf(one)) : [],
    conversation: textOf(metadata['user']) || conversation,
    input_tokens: units.reduce((sum, unit) => sum + unit.tokens, 0),
    cache_prefixes: cachePrefixes(textOf(body['model']), units),
  };
}

function usageOf({ answer, prompt, cache }: Envelope): JsonObject {
  const { read_tokens, write_5m_tokens, write_1h_tokens } = cache;
  const written = write_5m_tokens + write_1h_tokens;
  const details = [
    ...(write_5m_tokens > 0 ? [{ ttl: '5m', inputTokens: write_5m_tokens }] : []),
    ...(write_1h_tokens > 0 ? [{ ttl: '1h', inputTokens: write_1h_tokens }] : []),
  ];
  return {
    inputTokens: prompt.input_tokens - read_tokens - written,
    outputTokens: answer.output_tokens,
    totalTokens: prompt.input_tokens + answer.output_tokens,
    cacheReadInputTokenCount: read_tokens,
    cacheReadInputTokens: read_tokens,
    cacheWriteInputTokenCount: written,
    cacheWriteInputTokens: written,
    ...(details.length > 0 ? { cacheDetails: details } : {}),
    serverToolUsage: {},
  };
}

const stop_reasons: Record<Answer['finish'], string> = {
  stop: 'end_turn',
  stop_sequence: 'stop_sequence',
  refusal: 'content_filtered',
  length: 'max_tokens',
  calls: 'tool_use',
};

function contentBlock(block: Block): JsonObject {
  const text = block.pieces.join('');
  if (block.kind === 'reasoning') {
    return { reasoningContent: { reasoningText: { text, signature: thinkingSignature(text) } } };
  }
  if (block.kind !== 'call') return { text };
  return { toolUse: { toolUseId: `tooluse_${block.id}`, name: block.name, input: inputOf(text) } };
}

/** An empty object if the output bound cut the arguments, since they are not valid JSON then. */
function inputOf(text: string): JsonValue {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function encodeBody(envelope: Envelope): JsonObject {
  const { answer, faults } = envelope;
  return {
    output: { message: { role: 'assistant', content: answer.blocks.map(contentBlock) } },
    stopReason: faults.finish || stop_reasons[answer.finish],
    ...(faults.no_usage ? {} : { usage: usageOf(envelope) }),
    metrics: { latencyMs: 1 },
  };
}

function header(name: string, value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), length, bytes]);
}

/** A message of AWS's binary event stream: lengths, headers, payload and two checksums. */
function message(kind: 'event' | 'exception', type: string, payload: JsonObject): string {
  const headers = Buffer.concat([
    header(`:${kind}-type`, type),
    header(':content-type', 'application/json'),
    header(':message-type', kind),
  ]);
  const body = Buffer.from(JSON.stringify(payload));
  const bytes = Buffer.alloc(12 + headers.length + body.length + 4);
  bytes.writeUInt32BE(bytes.length, 0);
  bytes.writeUInt32BE(headers.length, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
  headers.copy(bytes, 12);
  body.copy(bytes, 12 + headers.length);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
  return bytes.toString('latin1');
}

function* encodeBlock(block: Block, contentBlockIndex: number): Generator<string> {
  const delta = (fields: JsonObject) =>
    message('event', 'contentBlockDelta', { contentBlockIndex, delta: fields, p: 'abcd' });
  if (block.kind === 'call') {
    const start = { toolUse: { toolUseId: `tooluse_${block.id}`, name: block.name } };
    yield message('event', 'contentBlockStart', { contentBlockIndex, start, p: 'ab' });
  }
  for (const piece of block.pieces) {
    if (block.kind === 'call') yield delta({ toolUse: { input: piece } });
    else yield delta(block.kind === 'reasoning' ? { reasoningContent: { text: piece } } : { text: piece });
  }
  if (block.kind === 'reasoning') {
    yield delta({ reasoningContent: { signature: thinkingSignature(block.pieces.join('')) } });
  }
}

function* encodeStream(envelope: Envelope): Generator<string> {
  const { answer, faults } = envelope;
  yield message('event', 'messageStart', { role: 'assistant', p: 'abc' });
  for (const [index, block] of answer.blocks.entries()) {
    yield* encodeBlock(block, index);
    if (!faults.no_done) yield message('event', 'contentBlockStop', { contentBlockIndex: index, p: 'abcde' });
  }
  yield message('event', 'messageStop', { stopReason: faults.finish || stop_reasons[answer.finish], p: 'a' });
  if (!faults.no_usage)
    yield message('event', 'metadata', { usage: usageOf(envelope), metrics: { latencyMs: 1 }, p: 'ab' });
}

// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html#API_runtime_Converse_Errors
const exceptions: Record<number, string> = {
  400: 'ValidationException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  424: 'ModelErrorException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
};

function exceptionOf({ status }: Refusal): string {
  return exceptions[status] ?? (status >= 500 ? 'InternalServerException' : 'ValidationException');
}

function inStream(refusal: Refusal): string {
  const name = exceptionOf(refusal);
  return message('exception', name.charAt(0).toLowerCase() + name.slice(1), { message: refusal.message, p: 'abc' });
}

const PATH = /^\/model\/([^/]+)\/(converse|converse-stream)$/;

/** The wire of `POST /model/{id}/converse`. https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html */
export const bedrockConverse: SandboxWire = {
  path: PATH,
  targetOf(path) {
    const [, model = '', method] = PATH.exec(path) ?? [];
    const name = decodeURIComponent(model);
    return { model: name.replace(bedrockModelPrefix, ''), stream: method === 'converse-stream' };
  },
  credentialOf: ({ authorization = '' }) =>
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\//.exec(authorization)?.[1] ?? authorization.replace(/^Bearer /, ''),
  credentialRefused: () => new Refusal(403, 'The security token included in the request is invalid.'),
  modelUnknown: () => new Refusal(400, 'The provided model identifier is invalid.'),
  check: checkBedrockConverse,
  promptTooLong,
  readPrompt,
  encodeBody,
  encodeStream,
  errorBody: ({ message }) => ({ message }),
  errorHeaders: (refusal) => ({ 'x-amzn-errortype': `${exceptionOf(refusal)}:http://internal.amazon.com/coral/` }),
  errorEvent: inStream,
  answerHeaders: (id) => ({ 'x-amzn-requestid': id }),
  binary_type: 'application/vnd.amazon.eventstream',
};
