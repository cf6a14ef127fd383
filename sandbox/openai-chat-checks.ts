import type { JsonObject, JsonValue } from './json.ts';
import { MODEL_CONTEXT_TOKENS, MODEL_OUTPUT_TOKENS } from './models.ts';
import { isObject, objectsOf, Refusal, textOf } from './prompt.ts';

/** https://platform.openai.com/docs/api-reference/chat/create */
const choices_max = 128;

const roles = ['system', 'developer', 'user', 'assistant', 'tool'];

// Bounds: https://platform.openai.com/docs/api-reference/chat/create
const ranges: [string, number, number][] = [
  ['temperature', 0, 2],
  ['top_p', 0, 1],
  ['frequency_penalty', -2, 2],
  ['presence_penalty', -2, 2],
];

function checkNumbers(body: JsonObject): void {
  for (const [field, least, most] of ranges) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'number') {
      throw new Refusal(
        400,
        `Invalid type for '${field}': expected a decimal, but got ${JSON.stringify(value)} instead.`,
        'invalid_type',
        field,
      );
    }
    if (value >= least && value <= most) continue;
    const above = value > most;
    const problem = above ? 'above maximum' : 'below minimum';
    const wanted = above ? `<= ${most}` : `>= ${least}`;
    throw new Refusal(
      400,
      `Invalid '${field}': decimal ${problem} value. Expected a value ${wanted}, but got ${value} instead.`,
      above ? 'decimal_above_max_value' : 'decimal_below_min_value',
      field,
    );
  }
  for (const field of ['max_tokens', 'max_completion_tokens']) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 1) {
      throw new Refusal(
        400,
        `Invalid '${field}': integer below minimum value. Expected a value >= 1, but got ${JSON.stringify(value)} instead.`,
        'integer_below_min_value',
        field,
      );
    }
    if (value > MODEL_OUTPUT_TOKENS) {
      throw new Refusal(
        400,
        `${field} is too large: ${value}. This model supports at most ${MODEL_OUTPUT_TOKENS} completion tokens.`,
        'invalid_value',
        field,
      );
    }
  }
  const { n } = body;
  if (n !== undefined && n !== null && !(Number.isInteger(n) && Number(n) >= 1 && Number(n) <= choices_max)) {
    throw new Refusal(400, `Invalid 'n': expected an integer from 1 to ${choices_max}.`, 'invalid_value', 'n');
  }
}

function checkContent(message: JsonObject, at: number): void {
  const content = message['content'];
  const calls = objectsOf(message['tool_calls']);
  const missing = content === undefined || content === null;
  if (missing && (message['role'] !== 'assistant' || (calls.length === 0 && !message['refusal']))) {
    throw new Refusal(
      400,
      `Invalid value for 'content': expected a string, got null.`,
      'invalid_type',
      `messages.[${at}].content`,
    );
  }
  if (!Array.isArray(content)) return;
  const allowed =
    message['role'] === 'user'
      ? ['text', 'image_url', 'input_audio', 'file', 'video_url']
      : message['role'] === 'assistant'
        ? ['text', 'refusal']
        : ['text'];
  for (const [part_at, part] of (content as JsonValue[]).entries()) {
    if (isObject(part) && allowed.includes(textOf(part['type']))) continue;
    throw new Refusal(
      400,
      `Invalid value: '${isObject(part) ? textOf(part['type']) : typeof part}'. Supported values are: ${allowed.map((type) => `'${type}'`).join(', ')}.`,
      'invalid_value',
      `messages[${at}].content[${part_at}].type`,
    );
  }
}

/** Requires that results follow their calls directly, and that every result has a call. */
function checkToolTurns(messages: JsonObject[]): void {
  let open = new Set<string>();
  let called_at = -1;
  for (const [at, message] of [...messages, {} as JsonObject].entries()) {
    if (message['role'] === 'tool') {
      const id = textOf(message['tool_call_id']);
      if (called_at < 0) {
        throw new Refusal(
          400,
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          null,
          `messages.[${at}].role`,
        );
      }
      if (!open.delete(id)) {
        throw new Refusal(
          400,
          `Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`,
          null,
          `messages.[${at}].tool_call_id`,
        );
      }
      continue;
    }
    if (open.size > 0) {
      throw new Refusal(
        400,
        `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`,
        null,
        `messages.[${called_at}].role`,
      );
    }
    const calls = objectsOf(message['tool_calls']);
    called_at = calls.length > 0 ? at : -1;
    open = new Set(calls.map((call) => textOf(call['id'])));
  }
}

function checkTools(body: JsonObject): void {
  const tools = body['tools'];
  if (Array.isArray(tools) && tools.length === 0) {
    throw new Refusal(
      400,
      "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      'empty_array',
      'tools',
    );
  }
  const choice = body['tool_choice'];
  if (choice !== undefined && choice !== null && !Array.isArray(tools)) {
    throw new Refusal(
      400,
      "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
      null,
      'tool_choice',
    );
  }
  for (const [at, tool] of objectsOf(tools).entries()) {
    const name = isObject(tool['function']) ? textOf(tool['function']['name']) : '';
    if (tool['type'] === 'function' && /^[a-zA-Z0-9_-]{1,64}$/.test(name)) continue;
    throw new Refusal(
      400,
      `Invalid 'tools[${at}].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
      'invalid_value',
      `tools[${at}].function.name`,
    );
  }
  if (isObject(choice) && choice['type'] !== 'allowed_tools') {
    const wanted = isObject(choice['function']) ? textOf(choice['function']['name']) : '';
    if (objectsOf(tools).some((tool) => isObject(tool['function']) && tool['function']['name'] === wanted)) return;
    throw new Refusal(400, `Tool choice '${wanted}' not found in 'tools' parameter.`, null, 'tool_choice');
  }
}

function checkFormat(body: JsonObject, messages: JsonObject[]): void {
  const format = body['response_format'];
  if (!isObject(format)) return;
  if (format['type'] === 'json_schema' && !(isObject(format['json_schema']) && textOf(format['json_schema']['name']))) {
    throw new Refusal(
      400,
      "Missing required parameter: 'response_format.json_schema.name'.",
      'missing_required_parameter',
      'response_format.json_schema.name',
    );
  }
  if (format['type'] === 'json_object' && !/json/i.test(JSON.stringify(messages))) {
    throw new Refusal(
      400,
      "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
      null,
      'messages',
    );
  }
}

/** Refuses what OpenAI refuses. It ignores unknown parameters, as most services of this wire do. */
export function checkOpenAiChat(body: JsonObject): void {
  if (textOf(body['model']) === '') throw new Refusal(400, 'you must provide a model parameter');
  const messages = body['messages'];
  if (!Array.isArray(messages)) {
    throw new Refusal(400, "Missing required parameter: 'messages'.", 'missing_required_parameter', 'messages');
  }
  if (messages.length === 0) {
    throw new Refusal(
      400,
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      'empty_array',
      'messages',
    );
  }
  for (const [at, message] of (messages as JsonValue[]).entries()) {
    if (!isObject(message) || !roles.includes(textOf(message['role']))) {
      throw new Refusal(
        400,
        `Invalid value: '${isObject(message) ? textOf(message['role']) : ''}'. Supported values are: ${roles.map((role) => `'${role}'`).join(', ')}.`,
        'invalid_value',
        `messages[${at}].role`,
      );
    }
    checkContent(message, at);
  }
  checkToolTurns(messages as JsonObject[]);
  checkNumbers(body);
  checkTools(body);
  checkFormat(body, messages as JsonObject[]);
  const stop = body['stop'];
  if (Array.isArray(stop) && stop.length > 4) {
    throw new Refusal(
      400,
      "Invalid 'stop': array too long. Expected an array with maximum length 4.",
      'array_above_max_length',
      'stop',
    );
  }
  if (body['stream_options'] !== undefined && body['stream_options'] !== null && body['stream'] !== true) {
    throw new Refusal(
      400,
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      null,
      'stream_options',
    );
  }
  if (typeof body['top_logprobs'] === 'number' && body['logprobs'] !== true) {
    throw new Refusal(
      400,
      "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
      null,
      'top_logprobs',
    );
  }
}

/** The refusal of a prompt that does not fit the model. */
export function promptTooLong(input_tokens: number): Refusal {
  return new Refusal(
    400,
    `This model's maximum context length is ${MODEL_CONTEXT_TOKENS} tokens. However, your messages resulted in ${input_tokens} tokens. Please reduce the length of the messages.`,
    'context_length_exceeded',
    'messages',
  );
}
