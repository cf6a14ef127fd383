import type { JsonObject, JsonValue } from './json.ts';
import { MODEL_CONTEXT_TOKENS, MODEL_OUTPUT_TOKENS } from './models.ts';
import { isObject, objectsOf, Refusal, textOf } from './prompt.ts';

// Fields: https://docs.cohere.com/reference/chat; the sandbox adds `sandbox`.
const fields = new Set(
  (
    'model messages stream tools strict_tools documents citation_options response_format safety_mode max_tokens stop_sequences ' +
    'temperature seed frequency_penalty presence_penalty k p logprobs tool_choice thinking priority sandbox'
  ).split(' '),
);
const roles = ['system', 'user', 'assistant', 'tool'];
/** The kinds of parts that each role accepts. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  system: ['text'],
  user: ['text', 'image_url'],
  assistant: ['text', 'thinking'],
  tool: ['text', 'document'],
};
const ranges: [string, number, number][] = [
  ['temperature', 0, 1],
  ['p', 0.01, 0.99],
  ['k', 0, 500],
  ['frequency_penalty', 0, 1],
  ['presence_penalty', 0, 1],
];
const stop_sequences_max = 5;

function invalid(message: string): Refusal {
  return new Refusal(400, `invalid request: ${message}`);
}

function checkFields(body: JsonObject): void {
  for (const field of Object.keys(body)) {
    if (!fields.has(field)) throw new Refusal(422, `unknown field: parameter '${field}' is not a valid field`);
  }
  if (textOf(body['model']) === '') throw invalid('a model parameter is required for this endpoint.');
  for (const [field, least, most] of ranges) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'number' || value < least || value > most) {
      throw invalid(`${field} must be between ${least} and ${most} inclusive.`);
    }
  }
  if (body['frequency_penalty'] && body['presence_penalty']) {
    throw invalid('cannot specify both frequency_penalty and presence_penalty.');
  }
  const bound = body['max_tokens'];
  if (bound !== undefined && (typeof bound !== 'number' || !Number.isInteger(bound) || bound < 1)) {
    throw invalid('max_tokens must be a positive integer.');
  }
  if (typeof bound === 'number' && bound > MODEL_OUTPUT_TOKENS) {
    throw new Refusal(
      400,
      `too many tokens: max tokens must be less than or equal to ${MODEL_OUTPUT_TOKENS}, the maximum output for this model - received ${bound}.`,
    );
  }
  const stop = body['stop_sequences'];
  if (stop !== undefined && (!Array.isArray(stop) || stop.length > stop_sequences_max)) {
    throw invalid(`stop_sequences must be a list of up to ${stop_sequences_max} strings.`);
  }
  const { seed } = body;
  if (seed !== undefined && (typeof seed !== 'number' || !Number.isInteger(seed) || seed < 0)) {
    throw invalid('seed must be a non-negative integer.');
  }
  const thinking = body['thinking'];
  if (thinking === undefined) return;
  const kind = isObject(thinking) ? thinking['type'] : undefined;
  if (kind !== 'enabled' && kind !== 'disabled') throw invalid("thinking.type must be 'enabled' or 'disabled'.");
  const budget = isObject(thinking) ? thinking['token_budget'] : undefined;
  if (budget !== undefined && (typeof budget !== 'number' || !Number.isInteger(budget) || budget < 1)) {
    throw invalid('thinking.token_budget must be a positive integer.');
  }
}

function checkContent(message: JsonObject, at: number): void {
  const role = textOf(message['role']);
  const { content } = message;
  const calls = objectsOf(message['tool_calls']);
  if (content === undefined || content === null || content === '') {
    if (role === 'assistant' && calls.length > 0 && content !== '') return;
    throw invalid(`message must not be empty in a turn: 'messages[${at}]'.`);
  }
  const parts: JsonValue = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  if (!Array.isArray(parts) || parts.length === 0) {
    throw invalid(`message must not be empty in a turn: 'messages[${at}]'.`);
  }
  for (const [part_at, part] of parts.entries()) {
    const type = isObject(part) ? textOf(part['type']) : '';
    const where = `'messages[${at}].content[${part_at}]'`;
    if (!isObject(part) || !kinds[role]!.includes(type)) throw invalid(`type '${type}' is not valid: ${where}.`);
    if (type === 'text' && textOf(part['text']) === '') throw invalid(`text must not be empty: ${where}.`);
    if (type === 'document' && !isObject(part['document'])) throw invalid(`document is required: ${where}.`);
    if (type === 'text' && calls.length > 0) {
      throw invalid(
        `text content is not allowed when tool_calls are provided. If you wish to pass a tool plan, either pass thinking content (with thinking enabled) or use 'tool_plan': ${where}.`,
      );
    }
  }
}

/** Requires that results follow their calls directly, and that every result has a call. */
function checkToolTurns(messages: JsonObject[]): void {
  let open = new Set<string>();
  for (const [at, message] of [...messages, {} as JsonObject].entries()) {
    if (message['role'] === 'tool') {
      const id = textOf(message['tool_call_id']);
      if (!open.delete(id)) throw invalid(`tool call id '${id}' not found in previous tool calls: 'messages[${at}]'.`);
      continue;
    }
    if (open.size > 0) throw invalid(`missing tool results for tool calls: ${[...open].join(', ')}.`);
    open = new Set(objectsOf(message['tool_calls']).map((call) => textOf(call['id'])));
    if (open.size > 0 && message['role'] !== 'assistant')
      throw invalid(`tool_calls are of assistants: 'messages[${at}]'.`);
  }
}

function checkTools(body: JsonObject): void {
  const tools = body['tools'];
  if (tools !== undefined && (!Array.isArray(tools) || tools.length === 0)) throw invalid('tools must not be empty.');
  const choice = body['tool_choice'];
  if (choice !== undefined && choice !== 'REQUIRED' && choice !== 'NONE') {
    throw invalid("tool_choice must be one of 'REQUIRED', 'NONE'.");
  }
  if (choice !== undefined && tools === undefined) throw invalid('tool_choice requires tools.');
  if (body['strict_tools'] !== undefined && tools === undefined) throw invalid('strict_tools requires tools.');
  for (const [at, tool] of objectsOf(tools).entries()) {
    const definition = tool['function'];
    const name = isObject(definition) ? textOf(definition['name']) : '';
    if (tool['type'] !== 'function' || !/^[a-zA-Z0-9_-]+$/.test(name)) {
      throw invalid(`tool name must only contain letters, digits, '_' and '-': 'tools[${at}]'.`);
    }
    const parameters = isObject(definition) ? definition['parameters'] : undefined;
    if (!isObject(parameters)) throw invalid(`parameters are required: 'tools[${at}]'.`);
    const required = parameters['required'];
    if (body['strict_tools'] === true && !(Array.isArray(required) && required.length > 0)) {
      throw invalid(`strict_tools: at least one parameter must be required: 'tools[${at}]'.`);
    }
  }
  const format = body['response_format'];
  if (format === undefined) return;
  const kind = isObject(format) ? format['type'] : undefined;
  if (kind !== 'text' && kind !== 'json_object') throw invalid("response_format.type must be 'text' or 'json_object'.");
  if (tools !== undefined) throw invalid('response_format is not supported with tools.');
  if (body['documents'] !== undefined) throw invalid('response_format is not supported with RAG.');
}

/** Refuses what Cohere refuses, including unknown fields. */
export function checkCohereChat(body: JsonObject): void {
  checkFields(body);
  const messages = body['messages'];
  if (!Array.isArray(messages) || messages.length === 0) throw invalid('messages must be at least 1 message long.');
  for (const [at, message] of (messages as JsonValue[]).entries()) {
    if (!isObject(message) || !roles.includes(textOf(message['role']))) {
      throw invalid(`role must be one of ${roles.join(', ')}: 'messages[${at}]'.`);
    }
    checkContent(message, at);
  }
  checkToolTurns(objectsOf(messages));
  checkTools(body);
}

/** The refusal of a prompt that does not fit the model. */
export function promptTooLong(input_tokens: number): Refusal {
  return new Refusal(
    400,
    `too many tokens: total number of tokens in the prompt cannot exceed ${MODEL_CONTEXT_TOKENS} - received ${input_tokens}. Try using a shorter prompt.`,
  );
}
