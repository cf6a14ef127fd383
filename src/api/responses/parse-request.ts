import { invalidField } from '../../errors.ts';
import type { Envelope } from '../../inference/reasoning/envelope.ts';
import { withServerTools } from '../../plugins/requested-tools.ts';
import { decodeInput } from '../../providers/openai-responses/from-wire.ts';
import { WIRE } from '../../providers/openai-responses/wire.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { ResponsesRequestBody } from '../../schemas/responses.ts';
import { responsesClient } from './client.ts';
import { formatOf, reasoningOf } from './fields.ts';
import { checkInput } from './input-rules.ts';
import { OWN_ITEM } from './own-runs.ts';
import { requestTools } from './tools.ts';
import { checkXSearch } from './x-search.ts';

export type { ResponsesRequestBody } from '../../schemas/responses.ts';

export interface ResponsesParseContext {
  /** Opens the envelopes in which reasoning of other wires passes through clients of this API. */
  envelope: Envelope;
  /** Whether this gateway stores responses: other code then reads `store` and `previous_response_id`. Default: no. */
  stored?: boolean;
}

/** Fields with the same name in chat. */
const SAME = [
  'model',
  'models',
  'route',
  'provider',
  'plugins',
  'stream',
  'parallel_tool_calls',
  'temperature',
  'top_p',
  'top_k',
  'frequency_penalty',
  'presence_penalty',
  'service_tier',
  'metadata',
  'session_id',
  'trace',
  'cache_control',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'modalities',
  'image_config',
  'x_search_filter',
  'max_tool_calls',
  'stop_server_tools_when',
  'debug',
] as const;

/** Fields that become other fields, or request what is the default. */
const READ: ReadonlySet<string> = new Set<string>([
  ...SAME,
  'input',
  'instructions',
  'max_output_tokens',
  'tools',
  'tool_choice',
  'text',
  'reasoning',
  'include',
  'top_logprobs',
  'user',
  'safety_identifier',
  'store',
  'previous_response_id',
  'background',
  'conversation',
  'prompt',
  'ext',
]);

/** The value of `include` for log probabilities, which the inner language has a field for. */
const LOGPROBS = 'message.output_text.logprobs';

/**
 * Translates a request of the Responses API into the inner language. Fields that only this API has become the remainder, for upstreams of the
 * same wire. Throws a `GatewayError` 400 that names the field.
 */
export function responsesRequest(body: ResponsesRequestBody, { envelope, stored }: ResponsesParseContext): ChatRequest {
  refuse(body, stored === true);
  checkXSearch(body.x_search_filter);
  const fields = body as unknown as JsonObject;
  if (Array.isArray(body.input)) checkInput(body.input as unknown as JsonObject[]);
  const request: Record<string, unknown> = {};
  for (const name of SAME) if (fields[name] != null) request[name] = fields[name];
  const { include, text, reasoning, top_logprobs } = body;
  if (body.max_output_tokens != null) request['max_completion_tokens'] = body.max_output_tokens;
  if (include?.includes(LOGPROBS) || (top_logprobs ?? 0) > 0) request['logprobs'] = true;
  if (request['logprobs'] === true && top_logprobs != null) request['top_logprobs'] = top_logprobs;
  // `safety_identifier` is the newer name of `user`. Upstreams get neither in its original form.
  const user = body.user ?? body.safety_identifier;
  if (user != null) request['user'] = user;
  if (text?.verbosity != null) request['verbosity'] = text.verbosity;
  const format = formatOf(text?.format);
  if (format !== undefined) request['response_format'] = format;
  const options = reasoningOf(reasoning);
  if (options !== undefined) request['reasoning'] = options;
  request['messages'] = decodeInput(
    { instructions: fields['instructions'] as JsonValue, input: withoutOwnItems(fields['input']) as JsonValue },
    { unwrap: envelope.unwrap },
  );
  Object.assign(request, requestTools(body));
  const plugins = pluginsOf(body);
  if (plugins !== undefined) request['plugins'] = plugins;
  request['ext'] = { wire: WIRE, client: responsesClient, rest: remainderOf(fields) };
  return withServerTools(request as unknown as ChatRequest);
}

/** The input without items of the gateway's own tools, which providers do not know. The text that resulted from them stays. */
function withoutOwnItems(input: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(input)) return input;
  const isOwn = (item: JsonValue) => String((item as JsonObject | null)?.['id'] ?? '').startsWith(OWN_ITEM);
  return input.some(isOwn) ? input.filter((item) => !isOwn(item)) : input;
}

/** Throws for features of this API that need storage, if the gateway stores nothing. */
function refuse(body: ResponsesRequestBody, isStored: boolean): void {
  const { store, previous_response_id, background, conversation, prompt } = body;
  const unlessStored =
    'this gateway does not store responses (the operator can enable it with responses.store in gateway.yaml)';
  if (store === true && !isStored) throw invalidField('store', `must be false: ${unlessStored}`);
  if (previous_response_id != null && !isStored) {
    throw invalidField('previous_response_id', `must be null: ${unlessStored}; send the conversation in input`);
  }
  if (background === true) throw invalidField('background', 'must be false: background responses are not supported');
  if (conversation != null) {
    throw invalidField('conversation', 'must be null: conversations are not stored; send the conversation in input');
  }
  if (prompt != null) {
    throw invalidField('prompt', 'must be null: prompts are not stored; send their text in instructions or input');
  }
}

/** `truncation: auto` becomes the plugin that chat has for it. */
function pluginsOf({ plugins, truncation }: ResponsesRequestBody): ChatRequest['plugins'] {
  if (truncation !== 'auto' || plugins?.some(({ id }) => id === 'context-compression')) return undefined;
  return [...((plugins ?? []) as NonNullable<ChatRequest['plugins']>), { id: 'context-compression' }];
}

/** The fields that the inner language has no place for, for upstreams of the same wire. */
function remainderOf(fields: JsonObject): JsonObject {
  const rest: JsonObject = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value != null && !READ.has(name)) rest[name] = value;
  }
  const include = (fields['include'] as string[] | null | undefined)?.filter((value) => value !== LOGPROBS);
  if (include !== undefined && include.length > 0) rest['include'] = include;
  const text = without(fields['text'], ['format', 'verbosity']);
  if (text !== undefined) rest['text'] = text;
  // Other wires know tools of namespaces by other names.
  if (isNamespaced(fields)) rest['tool_choice'] = fields['tool_choice']!;
  const reasoning = without(fields['reasoning'], ['effort', 'summary', 'max_tokens', 'enabled', 'exclude']);
  if (reasoning !== undefined) rest['reasoning'] = reasoning;
  return rest;
}

function isNamespaced({ tools, tool_choice }: JsonObject): boolean {
  const isSpace = (tool: JsonValue) => (tool as JsonObject)['type'] === 'namespace';
  return typeof tool_choice === 'object' && tool_choice !== null && Array.isArray(tools) && tools.some(isSpace);
}

function without(value: JsonValue | undefined, known: readonly string[]): JsonObject | undefined {
  const kept: JsonObject = {};
  for (const [name, member] of Object.entries((value ?? {}) as JsonObject)) {
    if (member != null && !known.includes(name)) kept[name] = member;
  }
  return Object.keys(kept).length === 0 ? undefined : kept;
}
