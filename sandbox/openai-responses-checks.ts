import type { JsonObject, JsonValue } from './json.ts';
import { MODEL_CONTEXT_TOKENS, MODEL_OUTPUT_TOKENS } from './models.ts';
import { isObject, objectsOf, Refusal, textOf } from './prompt.ts';
import { thinkingSignature } from './signature.ts';

// Fields: https://platform.openai.com/docs/api-reference/responses/create; the sandbox adds `sandbox`.
const fields = new Set(
  (
    'background context_management conversation include input instructions max_output_tokens max_tool_calls metadata model moderation ' +
    'parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning ' +
    'safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user sandbox'
  ).split(' '),
);
// biome-ignore format: a list reads better in rows
const includes = [
  'file_search_call.results', 'web_search_call.results', 'web_search_call.action.sources', 'message.input_image.image_url',
  'computer_call_output.output.image_url', 'code_interpreter_call.outputs', 'reasoning.encrypted_content',
  'message.output_text.logprobs',
];
/** Items that the sandbox accepts. It ignores items of tools that only the real provider runs. */
const id_prefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
};
const input_content = ['input_text', 'input_image', 'input_file'];
const output_content = ['output_text', 'refusal'];
const call_id_chars_max = 64;
const output_tokens_min = 16;
const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'];

function invalid(message: string, field: string | null, code: string | null = null): Refusal {
  return new Refusal(400, message, code, field);
}

function notSupported(value: JsonValue | undefined, values: readonly string[], field: string): Refusal {
  const known = values.map((one) => `'${one}'`).join(', ');
  return invalid(`Invalid value: '${textOf(value)}'. Supported values are: ${known}.`, field, 'invalid_value');
}

/** Reasoning in a form that is opaque to clients. It is checked when a client returns it. */
export function encryptReasoning(text: string): string {
  return `gAAAA${Buffer.from(text).toString('base64url')}.${thinkingSignature(text)}`;
}

function isEncryptedHere(value: JsonValue | undefined): boolean {
  const [head = '', signature] = textOf(value).split('.');
  return signature === thinkingSignature(Buffer.from(head.slice('gAAAA'.length), 'base64url').toString());
}

function checkNumbers(body: JsonObject): void {
  const ranges: [string, number, number][] = [
    ['temperature', 0, 2],
    ['top_p', 0, 1],
    ['top_logprobs', 0, 20],
    ['max_output_tokens', output_tokens_min, MODEL_OUTPUT_TOKENS],
  ];
  for (const [field, least, most] of ranges) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    const kind = field === 'temperature' || field === 'top_p' ? 'decimal' : 'integer';
    if (typeof value !== 'number' || (kind === 'integer' && !Number.isInteger(value))) {
      throw invalid(`Invalid type for '${field}': expected ${kind}.`, field, 'invalid_type');
    }
    if (value >= least && value <= most) continue;
    const [problem, wanted, code] =
      value > most ? ['above maximum', `<= ${most}`, 'above_max'] : ['below minimum', `>= ${least}`, 'below_min'];
    throw invalid(
      `Invalid '${field}': ${kind} ${problem} value. Expected a value ${wanted}, but got ${value} instead.`,
      field,
      `${kind}_${code}_value`,
    );
  }
}

function checkContent(item: JsonObject, place: string): void {
  const { content, role } = item;
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) throw invalid(`Missing required parameter: '${place}.content'.`, `${place}.content`);
  const allowed = role === 'assistant' ? output_content : input_content;
  for (const [at, part] of (content as JsonValue[]).entries()) {
    if (!isObject(part) || !allowed.includes(textOf(part['type']))) {
      throw notSupported(isObject(part) ? part['type'] : null, allowed, `${place}.content[${at}]`);
    }
    const data = textOf(part['file_data']);
    if (data !== '' && (textOf(part['filename']) === '' || !data.startsWith('data:'))) {
      throw invalid(`Invalid '${place}.content[${at}].file_data'.`, `${place}.content[${at}]`, 'invalid_value');
    }
  }
}

function checkItem(item: JsonObject, type: string, place: string): void {
  const prefix = id_prefixes[type];
  const id = textOf(item['id']);
  if (prefix !== undefined && id !== '' && !id.startsWith(prefix)) {
    throw invalid(
      `Invalid '${place}.id': '${id}'. Expected an ID that begins with '${prefix}'.`,
      `${place}.id`,
      'invalid_value',
    );
  }
  if (type === 'message') {
    const roles = ['assistant', 'system', 'developer', 'user'];
    if (!roles.includes(textOf(item['role']))) throw notSupported(item['role'], roles, place);
    checkContent(item, place);
  }
  if (type === 'reasoning') checkReasoning(item, place);
  if (type === 'function_call' && !/^[a-zA-Z0-9_-]{1,64}$/.test(textOf(item['name']))) {
    throw invalid(`Invalid '${place}.name': string does not match pattern.`, `${place}.name`, 'invalid_value');
  }
  if (type === 'function_call' && typeof item['arguments'] !== 'string') {
    throw invalid(`Missing required parameter: '${place}.arguments'.`, place, 'missing_required_parameter');
  }
  if (textOf(item['call_id']).length > call_id_chars_max) {
    throw invalid(
      `Invalid '${place}.call_id': string too long. Expected a string with maximum length ${call_id_chars_max}.`,
      `${place}.call_id`,
      'string_above_max_length',
    );
  }
}

function checkReasoning(item: JsonObject, place: string): void {
  const id = textOf(item['id']);
  if (!Array.isArray(item['summary'])) {
    throw invalid(`Missing required parameter: '${place}.summary'.`, `${place}.summary`, 'missing_required_parameter');
  }
  if (item['encrypted_content'] === undefined || item['encrypted_content'] === null) {
    throw new Refusal(
      404,
      `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
      null,
      'input',
    );
  }
  if (isEncryptedHere(item['encrypted_content'])) return;
  throw invalid(
    `The encrypted content for item ${id} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
    null,
    'invalid_encrypted_content',
  );
}

/** Requires a result for every call, a call for every result, and an item after reasoning. */
function checkOrder(items: readonly { item: JsonObject; type: string }[]): void {
  const calls = new Set<string>();
  const unanswered = new Set<string>();
  const ids = new Set<string>();
  for (const [at, { item, type }] of items.entries()) {
    const id = textOf(item['id']);
    const call_id = textOf(item['call_id']);
    if (id !== '' && ids.has(id)) throw invalid(`Duplicate item found with id ${id}. Remove duplicate items.`, 'input');
    ids.add(id);
    if (type === 'function_call' || type === 'custom_tool_call') {
      calls.add(call_id);
      unanswered.add(call_id);
    }
    if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      if (!calls.has(call_id))
        throw invalid(`No tool call found for function call output with call_id ${call_id}.`, 'input');
      unanswered.delete(call_id);
    }
    const next = items[at + 1];
    const follows = next !== undefined && !next.type.endsWith('_output') && next.item['role'] !== 'user';
    if (type === 'reasoning' && !follows) {
      throw invalid(`Item '${id}' of type 'reasoning' was provided without its required following item.`, 'input');
    }
  }
  for (const call_id of unanswered) throw invalid(`No tool output found for function call ${call_id}.`, 'input');
}

function checkInput(input: JsonValue | undefined): void {
  if (typeof input === 'string') return;
  if (!Array.isArray(input))
    throw invalid("Missing required parameter: 'input'.", 'input', 'missing_required_parameter');
  const items = (input as JsonValue[]).map((value, at) => {
    if (!isObject(value)) throw invalid(`Invalid type for 'input[${at}]'.`, `input[${at}]`, 'invalid_type');
    const type = textOf(value['type']) || (value['role'] === undefined ? '' : 'message');
    if (type === '') throw invalid(`Missing required parameter: 'input[${at}].type'.`, `input[${at}].type`);
    checkItem(value, type, `input[${at}]`);
    return { item: value, type };
  });
  checkOrder(items);
}

/** Requires that the objects of a strict tool are closed and all their properties required. */
function checkStrict(schema: JsonValue | undefined, place: string): void {
  if (!isObject(schema)) return;
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const isClosed = schema['additionalProperties'] === false;
  if (schema['type'] === 'object' && !(isClosed && Object.keys(properties).every((name) => required.includes(name)))) {
    throw invalid(
      `Invalid schema for ${place}: 'additionalProperties' is required to be supplied and to be false, and 'required' to include every key in properties.`,
      place,
      'invalid_function_parameters',
    );
  }
  for (const value of Object.values(properties)) checkStrict(value, place);
}

function checkTools(body: JsonObject): void {
  const { tools, tool_choice: choice } = body;
  if (Array.isArray(tools) && tools.length === 0)
    throw invalid("Invalid 'tools': empty array.", 'tools', 'empty_array');
  const known = objectsOf(tools);
  for (const [at, tool] of known.entries()) {
    if (tool['type'] !== 'function') continue;
    const place = `tools[${at}]`;
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(textOf(tool['name']))) {
      throw invalid(`Invalid '${place}.name': string does not match pattern.`, `${place}.name`, 'invalid_value');
    }
    // An absent `strict` means strict if the schema allows it. Other schemas are not refused.
    if (tool['strict'] === true) checkStrict(tool['parameters'] ?? {}, `${place}.parameters`);
  }
  if (choice === undefined || choice === null) return;
  if (known.length === 0 && choice !== 'none' && choice !== 'auto') {
    throw invalid("Tool choice is only allowed when 'tools' are specified.", 'tool_choice');
  }
  const named = known.flatMap((tool) => [tool, ...objectsOf(tool['tools'])]);
  if (isObject(choice) && choice['type'] === 'function' && !named.some(({ name }) => name === choice['name'])) {
    throw invalid(`Tool choice '${textOf(choice['name'])}' not found in 'tools' parameter.`, 'tool_choice');
  }
}

function checkOptions(body: JsonObject): void {
  const format = isObject(body['text']) ? body['text']['format'] : undefined;
  if (isObject(format) && format['type'] === 'json_schema') {
    for (const name of ['name', 'schema']) {
      if (format[name] !== undefined) continue;
      throw invalid(`Missing required parameter: 'text.format.${name}'.`, `text.format.${name}`);
    }
    if (format['strict'] === true) checkStrict(format['schema'], 'text.format.schema');
  }
  if (isObject(format) && format['type'] === 'json_object' && !/json/i.test(JSON.stringify(body['input']))) {
    throw invalid(
      "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.",
      'input',
    );
  }
  const effort = isObject(body['reasoning']) ? body['reasoning']['effort'] : undefined;
  if (effort !== undefined && effort !== null && !efforts.includes(textOf(effort))) {
    throw notSupported(effort, efforts, 'reasoning.effort');
  }
  for (const value of Array.isArray(body['include']) ? body['include'] : []) {
    if (!includes.includes(textOf(value))) throw notSupported(value, includes, 'include');
  }
}

/** Refuses what OpenAI refuses, including unknown parameters. */
export function checkOpenAiResponses(body: JsonObject): void {
  if (textOf(body['model']) === '') {
    throw invalid("Missing required parameter: 'model'.", 'model', 'missing_required_parameter');
  }
  for (const field of Object.keys(body)) {
    if (!fields.has(field)) throw invalid(`Unknown parameter: '${field}'.`, field, 'unknown_parameter');
  }
  checkInput(body['input']);
  checkNumbers(body);
  checkTools(body);
  checkOptions(body);
}

/** The refusal of a prompt that does not fit the model. */
export function promptTooLong(input_tokens: number): Refusal {
  return invalid(
    `Your input exceeds the context window of this model: ${input_tokens} tokens of ${MODEL_CONTEXT_TOKENS}. Please adjust your input and try again.`,
    'input',
    'context_length_exceeded',
  );
}
