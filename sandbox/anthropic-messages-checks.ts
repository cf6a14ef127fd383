import type { IncomingHttpHeaders } from 'node:http';
import type { JsonObject, JsonValue } from './json.ts';
import { MODEL_CONTEXT_TOKENS, MODEL_OUTPUT_TOKENS } from './models.ts';
import { isObject, objectsOf, Refusal, textOf } from './prompt.ts';
import { thinkingSignature } from './signature.ts';

// Fields: https://docs.anthropic.com/en/api/messages; the sandbox adds `sandbox`.
const fields = new Set(
  (
    'model messages max_tokens cache_control container context_management fallbacks inference_geo mcp_servers metadata output_config ' +
    'service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p sandbox'
  ).split(' '),
);
// biome-ignore format: a list reads better in rows
const block_types = [
  'text', 'image', 'document', 'search_result', 'thinking', 'redacted_thinking', 'tool_use', 'tool_result',
  'server_tool_use', 'web_search_tool_result', 'web_fetch_tool_result', 'code_execution_tool_result', 'container_upload',
];
const image_types = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
const breakpoints_max = 4;
const budget_tokens_min = 1024;

function invalid(message: string): Refusal {
  return new Refusal(400, message, 'invalid_request_error');
}

/** The blocks of a message; a plain text is one block. */
export function blocksOf(content: JsonValue | undefined): JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content);
}

function checkFields(body: JsonObject): void {
  if (textOf(body['model']) === '') throw invalid('model: Field required');
  if (body['max_tokens'] === undefined) throw invalid('max_tokens: Field required');
  for (const field of Object.keys(body)) {
    if (!fields.has(field)) throw invalid(`${field}: Extra inputs are not permitted`);
  }
  const bound = body['max_tokens'];
  if (typeof bound !== 'number' || !Number.isInteger(bound))
    throw invalid('max_tokens: Input should be a valid integer');
  if (bound < 0) throw invalid('max_tokens: Input should be greater than or equal to 0');
  if (bound > MODEL_OUTPUT_TOKENS) {
    throw invalid(
      `max_tokens: ${bound} > ${MODEL_OUTPUT_TOKENS}, which is the maximum allowed number of output tokens for ${textOf(body['model'])}`,
    );
  }
  for (const field of ['temperature', 'top_p']) {
    const value = body[field];
    if (value === undefined) continue;
    if (typeof value !== 'number' || value < 0 || value > 1) throw invalid(`${field}: range: 0..1`);
  }
  const stop = body['stop_sequences'];
  if (stop !== undefined && !Array.isArray(stop)) throw invalid('stop_sequences: Input should be a valid list');
  if (Array.isArray(stop) && stop.some((one) => textOf(one).trim() === '')) {
    throw invalid('stop_sequences: each stop sequence must contain non-whitespace');
  }
}

function checkBlock(block: JsonObject, where: string): void {
  const type = textOf(block['type']);
  if (!block_types.includes(type)) {
    throw invalid(`${where}: Input tag '${type}' found using 'type' does not match any of the expected tags`);
  }
  if (type === 'text' && textOf(block['text']) === '') throw invalid('messages: text content blocks must be non-empty');
  if (type === 'text' && block['cache_control'] === undefined && textOf(block['text']).trim() === '') {
    throw invalid('messages: text content blocks must contain non-whitespace text');
  }
  if (type === 'tool_use' && !isObject(block['input']))
    throw invalid(`${where}.tool_use.input: Input should be a valid dictionary`);
  if (
    (type === 'tool_use' || type === 'tool_result') &&
    !/^[a-zA-Z0-9_-]+$/.test(textOf(block[type === 'tool_use' ? 'id' : 'tool_use_id']))
  ) {
    throw invalid(`${where}.${type}.id: String should match pattern '^[a-zA-Z0-9_-]+$'`);
  }
  if (type === 'thinking' && block['signature'] !== thinkingSignature(textOf(block['thinking']))) {
    throw invalid(`${where}: Invalid \`signature\` in \`thinking\` block`);
  }
  const source = block['source'];
  if (
    type === 'image' &&
    isObject(source) &&
    source['type'] === 'base64' &&
    !image_types.includes(textOf(source['media_type']))
  ) {
    throw invalid(
      `${where}.image.source.base64.media_type: Input should be ${image_types.map((one) => `'${one}'`).join(', ')}`,
    );
  }
}

function checkToolTurns(messages: JsonObject[]): void {
  let called: string[] = [];
  for (const [at, message] of messages.entries()) {
    const blocks = blocksOf(message['content']);
    const results = blocks
      .filter((block) => block['type'] === 'tool_result')
      .map((block) => textOf(block['tool_use_id']));
    const stray = results.find((id) => !called.includes(id));
    if (stray !== undefined) {
      throw invalid(
        `messages.${at}.content: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    }
    if (new Set(results).size < results.length) {
      throw invalid(`messages.${at}.content: each tool_use must have a single result.`);
    }
    const unanswered = called.filter((id) => !results.includes(id));
    if (unanswered.length > 0) {
      throw invalid(
        `messages.${at - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${unanswered.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      );
    }
    const first_other = blocks.findIndex((block) => block['type'] !== 'tool_result');
    if (first_other >= 0 && blocks.slice(first_other).some((block) => block['type'] === 'tool_result')) {
      throw invalid(`messages.${at}: \`tool_result\` blocks must come before other content of the message.`);
    }
    called = blocks.filter((block) => block['type'] === 'tool_use').map((block) => textOf(block['id']));
    if (called.length > 0 && message['role'] !== 'assistant')
      throw invalid(`messages.${at}: \`tool_use\` blocks can only be in \`assistant\` messages`);
  }
}

function checkMessages(body: JsonObject): void {
  const content = body['messages'];
  if (!Array.isArray(content)) throw invalid('messages: Field required');
  if (content.length === 0) throw invalid('messages: at least one message is required');
  const messages = objectsOf(content);
  for (const [at, message] of messages.entries()) {
    if (message['role'] !== 'user' && message['role'] !== 'assistant') {
      throw invalid(`messages.${at}.role: Input should be 'user' or 'assistant'`);
    }
    if (at === 0 && message['role'] !== 'user') throw invalid('messages: first message must use the "user" role');
    const blocks = blocksOf(message['content']);
    const is_prefill = at === messages.length - 1 && message['role'] === 'assistant';
    if (blocks.length === 0 && !is_prefill) {
      throw invalid(
        `messages.${at}: all messages must have non-empty content except for the optional final assistant message`,
      );
    }
    for (const [block_at, block] of blocks.entries()) checkBlock(block, `messages.${at}.content.${block_at}`);
    if (is_prefill && /\s$/.test(textOf(blocks.at(-1)?.['text']))) {
      throw invalid('messages: final assistant content cannot end with trailing whitespace');
    }
  }
  checkToolTurns(messages);
  for (const block of typeof body['system'] === 'string' ? [] : objectsOf(body['system'])) {
    if (textOf(block['text']) === '') throw invalid('system: text content blocks must be non-empty');
  }
}

function checkTools(body: JsonObject): void {
  const tools = objectsOf(body['tools']);
  const names = new Set<string>();
  for (const [at, tool] of tools.entries()) {
    const name = textOf(tool['name']);
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
      throw invalid(`tools.${at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
    }
    if (names.has(name)) throw invalid('tools: Tool names must be unique.');
    names.add(name);
    const is_custom = tool['type'] === undefined || tool['type'] === 'custom';
    if (!is_custom) continue;
    if (!isObject(tool['input_schema'])) throw invalid(`tools.${at}.custom.input_schema: Field required`);
    if (tool['input_schema']['type'] !== 'object') {
      throw invalid(`tools.${at}.custom.input_schema.type: Input should be 'object'`);
    }
  }
  const choice = body['tool_choice'];
  if (!isObject(choice)) return;
  if (tools.length === 0) throw invalid('tool_choice: may only be specified while providing tools');
  if (choice['type'] === 'tool' && !names.has(textOf(choice['name']))) {
    throw invalid(`tool_choice.tool.name: Tool '${textOf(choice['name'])}' not found in provided tools`);
  }
  const thinks = isObject(body['thinking']) && body['thinking']['type'] === 'enabled';
  if (thinks && (choice['type'] === 'any' || choice['type'] === 'tool')) {
    throw invalid('Thinking may not be enabled when tool_choice forces tool use.');
  }
}

// https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking
function checkThinking(body: JsonObject): void {
  const thinking = body['thinking'];
  if (!isObject(thinking) || thinking['type'] === 'disabled') return;
  if (thinking['type'] === 'enabled') {
    const budget = thinking['budget_tokens'];
    if (typeof budget !== 'number') throw invalid('thinking.enabled.budget_tokens: Field required');
    if (budget < budget_tokens_min) {
      throw invalid(`thinking.enabled.budget_tokens: Input should be greater than or equal to ${budget_tokens_min}`);
    }
    if (budget >= (body['max_tokens'] as number))
      throw invalid('`max_tokens` must be greater than `thinking.budget_tokens`.');
  } else if (thinking['type'] !== 'adaptive') {
    throw invalid(
      "thinking: Input tag found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'",
    );
  }
  if (body['temperature'] !== undefined && body['temperature'] !== 1) {
    throw invalid('`temperature` may only be set to 1 when thinking is enabled.');
  }
  if (body['top_k'] !== undefined) throw invalid('`top_k` must be unset when thinking is enabled.');
  const last = objectsOf(body['messages']).at(-1);
  const turns = objectsOf(body['messages']);
  if (last?.['role'] === 'assistant') throw invalid('messages: prefill is not supported when thinking is enabled.');
  const with_calls = turns.findLast((message) => message['role'] === 'assistant');
  const blocks = blocksOf(with_calls?.['content']);
  const answers_call = blocksOf(last?.['content']).some((block) => block['type'] === 'tool_result');
  const first = textOf(blocks[0]?.['type']);
  if (thinking['type'] === 'enabled' && answers_call && first !== 'thinking' && first !== 'redacted_thinking') {
    throw invalid(
      `messages.${turns.length - 2}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
    );
  }
}

/** Refuses what Anthropic refuses, including unknown fields. */
export function checkAnthropicMessages(body: JsonObject, headers: IncomingHttpHeaders): void {
  if (headers['anthropic-version'] === undefined) throw invalid('anthropic-version: header is required');
  checkFields(body);
  checkMessages(body);
  checkTools(body);
  checkThinking(body);
  const turns = objectsOf(body['messages']).flatMap((message) => blocksOf(message['content']));
  const marked = [...objectsOf(body['system']), ...objectsOf(body['tools']), ...turns].filter((one) =>
    isObject(one['cache_control']),
  );
  if (marked.length > breakpoints_max) {
    throw invalid(`A maximum of ${breakpoints_max} blocks with cache_control may be provided. Found ${marked.length}.`);
  }
}

/** Fields of a request for an answer that a request for a token count cannot have. */
const uncounted = [
  'max_tokens',
  'stream',
  'metadata',
  'stop_sequences',
  'temperature',
  'top_k',
  'top_p',
  'service_tier',
];

/** Throws the refusal of a request for a token count that the real service refuses. */
export function checkTokenCount(body: JsonObject, headers: IncomingHttpHeaders): void {
  for (const field of uncounted) {
    if (body[field] !== undefined) throw invalid(`${field}: Extra inputs are not permitted`);
  }
  checkAnthropicMessages({ ...body, max_tokens: MODEL_OUTPUT_TOKENS }, headers);
}

/** The refusal of a prompt that does not fit the model. */
export function promptTooLong(input_tokens: number): Refusal {
  return invalid(`prompt is too long: ${input_tokens} tokens > ${MODEL_CONTEXT_TOKENS} maximum`);
}
