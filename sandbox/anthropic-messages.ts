import { hash } from 'node:crypto';
import { blocksOf, checkAnthropicMessages, checkTokenCount, promptTooLong } from './anthropic-messages-checks.ts';
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

/** Fixed numbers of tokens of an image and of a message's frame, which tests can add up. */
const image_tokens = 85;
const message_tokens = 4;

function blockText(block: JsonObject): string {
  if (block['type'] === 'text') return textOf(block['text']);
  if (block['type'] !== 'tool_result') return '';
  return blocksOf(block['content']).map(blockText).join('');
}

function blockTokens(block: JsonObject): number {
  switch (block['type']) {
    case 'image':
    case 'document':
      return image_tokens;
    case 'thinking':
      return countTokens(textOf(block['thinking']));
    case 'tool_use':
      return countTokens(textOf(block['name'])) + countTokens(JSON.stringify(block['input']));
    case 'tool_result':
      return blocksOf(block['content']).reduce((sum, inner) => sum + blockTokens(inner), 0);
    default:
      return countTokens(blockText(block));
  }
}

/** The prompt in the order in which the provider caches it: tools, system, messages. */
function cacheUnits(body: JsonObject): { block: JsonObject; tokens: number }[] {
  const tools = objectsOf(body['tools']).map((block) => ({ block, tokens: countTokens(JSON.stringify(block)) }));
  const system = blocksOf(body['system']).map((block) => ({ block, tokens: blockTokens(block) }));
  const turns = objectsOf(body['messages']).flatMap((message) =>
    blocksOf(message['content']).map((block, at) => ({
      block,
      tokens: blockTokens(block) + (at === 0 ? message_tokens : 0),
    })),
  );
  return [...tools, ...system, ...turns];
}

function cachePrefixes(body: JsonObject, units: { block: JsonObject; tokens: number }[]): CachePrefix[] {
  const prefixes: CachePrefix[] = [];
  let tokens = 0;
  let identity = textOf(body['model']);
  for (const [at, unit] of units.entries()) {
    const automatic = at === units.length - 1 ? body['cache_control'] : undefined;
    const { cache_control: own, ...content } = unit.block;
    const mark = own ?? automatic;
    tokens += unit.tokens;
    identity = hash('sha1', `${identity}\n${JSON.stringify(content)}`);
    if (isObject(mark)) prefixes.push({ identity, tokens, hour: mark['ttl'] === '1h' });
  }
  return prefixes;
}

function toolChoice(choice: JsonValue | undefined): Prompt['tool_choice'] {
  if (!isObject(choice)) return 'auto';
  if (choice['type'] === 'tool') return { name: textOf(choice['name']) };
  return choice['type'] === 'any' ? 'required' : choice['type'] === 'none' ? 'none' : 'auto';
}

function wantedSchema(body: JsonObject): JsonObject | undefined {
  const format = isObject(body['output_config']) ? body['output_config']['format'] : undefined;
  if (!isObject(format) || format['type'] !== 'json_schema') return undefined;
  return isObject(format['schema']) ? format['schema'] : {};
}

function readPrompt(body: JsonObject): Prompt {
  const messages = objectsOf(body['messages']);
  const units = cacheUnits(body);
  const last = messages.at(-1);
  const last_blocks = blocksOf(last?.['content']);
  const spoken = messages.findLast(
    (message) =>
      message['role'] === 'user' && blocksOf(message['content']).some((block) => block['type'] !== 'tool_result'),
  );
  const user_blocks = blocksOf(spoken?.['content']).filter((block) => block['type'] !== 'tool_result');
  const user_id = isObject(body['metadata']) ? textOf(body['metadata']['user_id']) : '';
  const choice = body['tool_choice'];
  const thinking = body['thinking'];
  const bound = body['max_tokens'];
  return {
    user_text: user_blocks.map(blockText).join(''),
    images: user_blocks.filter((block) => block['type'] === 'image').length,
    files: user_blocks.filter((block) => block['type'] === 'document').length,
    tool_results: last_blocks.filter((block) => block['type'] === 'tool_result').map(blockText),
    prefill: last?.['role'] === 'assistant' ? last_blocks.map(blockText).join('') : '',
    tools: objectsOf(body['tools'])
      .filter((tool) => isObject(tool['input_schema']))
      .map((tool) => ({ name: textOf(tool['name']), parameters: tool['input_schema'] as JsonObject })),
    tool_choice: toolChoice(choice),
    parallel: !(isObject(choice) && choice['disable_parallel_tool_use'] === true),
    schema: wantedSchema(body),
    reasoning: isObject(thinking) && (thinking['type'] === 'enabled' || thinking['type'] === 'adaptive'),
    tokens_max: typeof bound === 'number' ? bound : 0,
    stop: Array.isArray(body['stop_sequences']) ? body['stop_sequences'].map((one) => textOf(one)) : [],
    conversation: user_id || messages.map((message) => blocksOf(message['content']).map(blockText).join('')).join('\n'),
    input_tokens: units.reduce((sum, unit) => sum + unit.tokens, 0),
    cache_prefixes: cachePrefixes(body, units),
  };
}

function usageOf({ answer, prompt, cache }: Envelope, output_tokens: number): JsonObject {
  const { read_tokens, write_5m_tokens, write_1h_tokens } = cache;
  return {
    input_tokens: prompt.input_tokens - read_tokens - write_5m_tokens - write_1h_tokens,
    cache_creation_input_tokens: write_5m_tokens + write_1h_tokens,
    cache_read_input_tokens: read_tokens,
    cache_creation: { ephemeral_5m_input_tokens: write_5m_tokens, ephemeral_1h_input_tokens: write_1h_tokens },
    output_tokens,
    service_tier: 'standard',
    ...(answer.reasoning_tokens > 0 ? { output_tokens_details: { thinking_tokens: answer.reasoning_tokens } } : {}),
  };
}

const stop_reasons: Record<Answer['finish'], string> = {
  stop: 'end_turn',
  stop_sequence: 'stop_sequence',
  refusal: 'refusal',
  length: 'max_tokens',
  calls: 'tool_use',
};

/** An empty object if the output bound cut the arguments, since they are not valid JSON then. */
function inputOf(pieces: string[]): JsonValue {
  try {
    return JSON.parse(pieces.join(''));
  } catch {
    return {};
  }
}

function contentBlock(block: Block): JsonObject {
  const text = block.pieces.join('');
  if (block.kind === 'call')
    return { type: 'tool_use', id: `toolu_${block.id}`, name: block.name, input: inputOf(block.pieces) };
  if (block.kind === 'reasoning') return { type: 'thinking', thinking: text, signature: thinkingSignature(text) };
  return { type: 'text', text };
}

function messageOf(
  { id, body }: Envelope,
  content: JsonObject[],
  stop: JsonObject,
  usage: JsonObject | undefined,
): JsonObject {
  const model = textOf(body['model']);
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model,
    content,
    ...stop,
    ...(usage === undefined ? {} : { usage }),
  };
}

function stopOf({ answer, faults }: Envelope): JsonObject {
  return {
    stop_reason: faults.finish || stop_reasons[answer.finish],
    stop_sequence: answer.stop_sequence,
    stop_details: null,
  };
}

function encodeBody(envelope: Envelope): JsonObject {
  const { answer, faults } = envelope;
  const usage = faults.no_usage ? undefined : usageOf(envelope, answer.output_tokens);
  return messageOf(envelope, answer.blocks.map(contentBlock), stopOf(envelope), usage);
}

function event(payload: JsonObject): string {
  return `event: ${payload['type']}\ndata: ${JSON.stringify(payload)}\n\n`;
}

function* encodeBlock(block: Block, index: number): Generator<string> {
  const fields = {
    text: ['text_delta', 'text'],
    refusal: ['text_delta', 'text'],
    reasoning: ['thinking_delta', 'thinking'],
    call: ['input_json_delta', 'partial_json'],
  };
  const openings: Record<Block['kind'], JsonObject> = {
    text: { type: 'text', text: '' },
    refusal: { type: 'text', text: '' },
    reasoning: { type: 'thinking', thinking: '', signature: '' },
    call: { ...contentBlock({ ...block, pieces: [] }), input: {} },
  };
  yield event({ type: 'content_block_start', index, content_block: openings[block.kind] });
  if (index === 0) yield event({ type: 'ping' });
  const [type, field] = fields[block.kind];
  const head = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${field}":`;
  for (const piece of block.pieces) yield `${head}${JSON.stringify(piece)}}}\n\n`;
  if (block.kind === 'reasoning') {
    const signature = thinkingSignature(block.pieces.join(''));
    yield event({ type: 'content_block_delta', index, delta: { type: 'signature_delta', signature } });
  }
  yield event({ type: 'content_block_stop', index });
}

function* encodeStream(envelope: Envelope): Generator<string> {
  const { answer, faults } = envelope;
  // The count in the first event is a placeholder; the last event has the final one.
  const first_usage = faults.no_usage ? undefined : usageOf(envelope, 1);
  const unfinished = { stop_reason: null, stop_sequence: null, stop_details: null };
  yield event({ type: 'message_start', message: messageOf(envelope, [], unfinished, first_usage) });
  for (const [index, block] of answer.blocks.entries()) yield* encodeBlock(block, index);
  const usage = faults.no_usage ? {} : { usage: usageOf(envelope, answer.output_tokens) };
  yield event({ type: 'message_delta', delta: stopOf(envelope), ...usage });
  if (!faults.no_done) yield event({ type: 'message_stop' });
}

// https://docs.anthropic.com/en/api/errors
const error_types: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

function errorBody(refusal: Refusal, id: string): JsonObject {
  const type = error_types[refusal.status] ?? (refusal.status >= 500 ? 'api_error' : 'invalid_request_error');
  return { type: 'error', error: { type, message: refusal.message }, request_id: `req_${id}` };
}

/** The wire of `POST /v1/messages`. https://docs.anthropic.com/en/api/messages */
export const anthropicMessages: SandboxWire = {
  path: /^\/v1\/messages$/,
  credentialOf: (headers) =>
    (headers['x-api-key'] as string | undefined) ?? headers.authorization?.replace(/^Bearer /, ''),
  credentialRefused: () => new Refusal(401, 'invalid x-api-key'),
  modelUnknown: (model) => new Refusal(404, `model: ${model}`),
  check: checkAnthropicMessages,
  promptTooLong,
  readPrompt,
  encodeBody,
  encodeStream,
  errorBody,
  errorEvent: (refusal, id) => event(errorBody(refusal, id)),
  answerHeaders: (id) => ({ 'request-id': `req_${id}` }),
};

/** The wire of `POST /v1/messages/count_tokens`. https://docs.anthropic.com/en/api/messages-count-tokens */
export const anthropicTokenCount: SandboxWire = {
  ...anthropicMessages,
  path: /^\/v1\/messages\/count_tokens$/,
  counts_only: true,
  check: checkTokenCount,
  encodeBody: ({ prompt }) => ({ input_tokens: prompt.input_tokens }),
};
