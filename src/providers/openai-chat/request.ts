import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, FunctionTool, InnerTool } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import type { DialectEndpoint, EncodedRequest, EncodeOptions } from '../dialect.ts';
import { allowedMode, allowedTools } from '../shared/allowed-tools.ts';
import { gatewayFields, gatewayOnlyFields } from '../shared/gateway-fields.ts';
import { fitToolName } from '../shared/tool-ids.ts';
import { withProperties } from '../shared/tool-schema.ts';
import { hashUser } from '../shared/user-hash.ts';
import { addReport, type Encoding } from './encoding.ts';
import { callIds, encodeMessages } from './messages.ts';
import { encodeReasoning } from './reasoning-request.ts';
import {
  alternateRoles,
  continueFinalMessage,
  keepFormatAlone,
  mendLostReasoning,
  thinkInStreams,
  thinkOrForceTool,
} from './repairs.ts';
import { isObject } from './wire.ts';

/** Fields that are not copied from the client's request but written separately. */
const OWN_FIELDS: readonly string[] = [
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'reasoning_effort',
  'include_reasoning',
];

/** https://platform.openai.com/docs/api-reference/chat/create */
const STOP_SEQUENCES_MAX = 4;

const PATH = '/chat/completions';
const STREAM_HEADERS = { 'content-type': 'application/json', accept: 'text/event-stream' };
const WHOLE_HEADERS = { 'content-type': 'application/json', accept: 'application/json' };

const NOT_COPIED: ReadonlySet<string> = new Set([...OWN_FIELDS, ...gatewayOnlyFields]);

/** Builds the upstream request. Parts that need no change are shared with the client's request, which is never changed. */
export function encodeRequest(request: ChatRequest, endpoint: DialectEndpoint, options: EncodeOptions): EncodedRequest {
  const { quirks } = endpoint;
  const encoding: Encoding = { request, endpoint, quirks, options, report: [], renamed: undefined };
  const tools = request.tools?.length ? encodeTools(encoding, request.tools) : [];
  const messages = encodeMessages(encoding);
  const body: JsonObject = {
    model: endpoint.upstream_model,
    messages: quirks.alternating_roles ? alternateRoles(encoding, messages) : messages,
  };
  encodeFields(encoding, body);
  const bound = request.max_completion_tokens ?? request.max_tokens;
  if (bound != null) {
    const field = request.max_completion_tokens == null ? 'max_tokens' : 'max_completion_tokens';
    body[quirks.output_bound_field ?? field] = bound;
  }
  if (tools.length > 0) {
    body['tools'] = tools;
    encodeToolChoice(encoding, body);
  }
  if (request.reasoning != null || request.reasoning_effort != null) encodeReasoning(encoding, body);
  if (quirks.lost_reasoning !== undefined) mendLostReasoning(encoding, body);
  if (quirks.reasoning_field === 'enable_thinking') thinkInStreams(encoding, body);
  if (quirks.thinking_or_forced_tool) thinkOrForceTool(encoding, body);
  if (quirks.continue_final_message) continueFinalMessage(body);
  const isStreamed = encodeStream(encoding, body);
  if (quirks.extra_body !== undefined) addExtraFields(encoding, body, quirks.extra_body);

  const state: EncodedRequest['state'] = {};
  if (encoding.renamed !== undefined) {
    const names = [...encoding.renamed].map(([original, sent]) => [sent, original]);
    state['tool_names'] = lookupTable(Object.fromEntries(names));
  }
  if (tools.length > 0)
    state['tools'] = tools.flatMap(({ function: definition }) =>
      isObject(definition) ? String(definition['name']) : [],
    );
  const callIdList = contentsOf(request).has_calls ? callIds(request.messages) : [];
  if (callIdList.length > 0) state['call_ids'] = callIdList;
  if (request.n !== undefined && request.n > 1) state['choices'] = request.n;
  if (quirks.think_tags) state['think_tags'] = true;
  if (quirks.think_in_reasoning) state['think_in_reasoning'] = true;
  if (quirks.cached_tokens_header) state['cached_tokens_header'] = quirks.cached_tokens_header.toLowerCase();
  return {
    method: 'POST',
    path: quirks.path === undefined && quirks.query === undefined ? PATH : pathOf(endpoint),
    headers: isStreamed ? STREAM_HEADERS : WHOLE_HEADERS,
    body,
    report: encoding.report,
    state,
  };
}

function encodeFields(encoding: Encoding, body: JsonObject): void {
  const { request, quirks, endpoint } = encoding;
  const { refused_parameters: refused, stop_sequences_max: stopsMax = STOP_SEQUENCES_MAX } = quirks;
  for (const name in request) {
    const value = request[name] as JsonValue | undefined;
    // `null` means not set; not every upstream accepts it.
    if (value === undefined || value === null || NOT_COPIED.has(name)) continue;
    if (name === 'stop' && Array.isArray(value) && value.length === 0) continue;
    if (refused?.includes(name)) {
      addReport(encoding, 'dropped', name, `${endpoint.provider} does not accept this parameter`);
    } else if (gatewayFields.has(name) && name !== 'store' && name !== 'n') {
      // Storing upstream is the client's decision, as in the public API.
      addReport(encoding, 'dropped', name, 'the gateway sets it');
    } else if (name === 'temperature' && Number(value) > (quirks.temperature_max ?? Number.POSITIVE_INFINITY)) {
      body['temperature'] = quirks.temperature_max;
      addReport(encoding, 'clamped', name, `${endpoint.provider} accepts at most ${quirks.temperature_max}`);
    } else if (name === 'stop' && Array.isArray(value) && value.length > stopsMax) {
      body['stop'] = value.slice(0, stopsMax);
      addReport(encoding, 'clamped', name, `${endpoint.provider} accepts at most ${stopsMax} sequences`);
    } else if (name === 'user') {
      body['user'] = hashUser(String(value));
    } else if (name === 'seed' && quirks.random_seed) {
      body['random_seed'] = value;
    } else if (quirks.logprobs_count && (name === 'logprobs' || name === 'top_logprobs')) {
      if (request.logprobs === true) body['logprobs'] = request.top_logprobs ?? 1;
    } else if (name === 'metadata' && request['store'] !== true) {
      // https://platform.openai.com/docs/api-reference/chat/create: metadata belongs to stored completions.
      addReport(encoding, 'dropped', name, 'only stored completions have metadata');
    } else if (name === 'x_search_filter') {
      addReport(encoding, 'dropped', name, 'this wire does not search X');
    } else if (name === 'cache_control' && !quirks.cache_control) {
      addReport(encoding, 'dropped', name, `${endpoint.provider} has no cache breakpoints`);
    } else {
      body[name] = value;
    }
  }
}

/** Sets the stream fields. Returns whether a stream is requested. */
function encodeStream(encoding: Encoding, body: JsonObject): boolean {
  const { request, quirks } = encoding;
  const isWhole = quirks.format_alone === true && keepFormatAlone(encoding, body);
  if (request.stream == null) return false;
  body['stream'] = request.stream && !isWhole;
  if (!request.stream || isWhole) return false;
  if (quirks.no_stream_usage) return true;
  const streamOptions = request['stream_options'];
  body['stream_options'] = { ...(isObject(streamOptions) ? streamOptions : {}), include_usage: true };
  return true;
}

function encodeTools(encoding: Encoding, declared: readonly InnerTool[]): JsonObject[] {
  const { request, quirks, endpoint } = encoding;
  const tools: JsonObject[] = [];
  if (quirks.refused_parameters?.includes('tools')) {
    addReport(encoding, 'dropped', 'tools', `${endpoint.provider} does not accept this parameter`);
    return tools;
  }
  const allowed = quirks.allowed_tools ? undefined : allowedTools(request.tool_choice);
  declared.forEach((tool, i) => {
    if (allowed !== undefined && tool.type === 'function' && !allowed.has((tool as FunctionTool).function.name)) return;
    const encoded = encodeTool(encoding, tool, `tools[${i}]`);
    if (encoded !== undefined) tools.push(encoded);
  });
  return tools;
}

function encodeTool(encoding: Encoding, tool: InnerTool, field: string): JsonObject | undefined {
  if (tool.type === 'native') {
    const native = tool as { wire?: string; block?: JsonObject };
    if (native.wire === 'openai-chat') return native.block;
    addReport(encoding, 'dropped', field, 'this tool belongs to another API');
    return undefined;
  }
  if (/^(?:gateway|openrouter):/.test(tool.type)) {
    addReport(encoding, 'dropped', field, 'this tool is not run by the upstream');
    return undefined;
  }
  const { function: functionField } = tool as Partial<FunctionTool>;
  // A kind of tool of this wire that the gateway does not know.
  if (!isObject(functionField)) return withoutMembers(tool as unknown as JsonObject, ['ext']);
  const definition = functionField as FunctionTool['function'];
  const name = fitToolName(definition.name);
  const removed = encoding.quirks.cache_control ? ['ext'] : ['ext', 'cache_control'];
  const kept = withoutMembers(tool as unknown as JsonObject, removed);
  const { parameters: schema } = definition;
  const parameters = encoding.quirks.tool_properties && isObject(schema) ? withProperties(schema) : schema;
  if (name === definition.name && parameters === schema) return kept;
  if (name !== definition.name) {
    encoding.renamed ??= new Map();
    encoding.renamed.set(definition.name, name);
  }
  return { ...kept, function: { ...definition, name, ...(parameters && { parameters }) } };
}

function encodeToolChoice(encoding: Encoding, body: JsonObject): void {
  const { request, quirks, endpoint } = encoding;
  const { tool_choice: choice, parallel_tool_calls: parallel } = request;
  const isRefused = (name: string): boolean => {
    if (!quirks.refused_parameters?.includes(name)) return false;
    addReport(encoding, 'dropped', name, `${endpoint.provider} does not accept this parameter`);
    return true;
  };
  if (choice != null && !isRefused('tool_choice')) {
    const mode = quirks.allowed_tools ? choice : (allowedMode(choice) ?? choice);
    if (mode === 'required' && quirks.tool_choice_any) body['tool_choice'] = 'any';
    else if (typeof mode === 'string') body['tool_choice'] = mode;
    else if (isObject(choice) && isObject(choice['function'])) {
      const name = String(choice['function']['name']);
      const sent = encoding.renamed?.get(name);
      body['tool_choice'] =
        sent === undefined ? choice : { ...choice, function: { ...choice['function'], name: sent } };
    } else if (isOfThisWire(choice as { type: string }, body)) body['tool_choice'] = choice as JsonValue;
    else addReport(encoding, 'dropped', 'tool_choice', 'the tool that is to be called belongs to another API');
  }
  if (parallel != null && !isRefused('parallel_tool_calls')) body['parallel_tool_calls'] = parallel;
}

/** Whether a choice is of tools that are sent: functions, or unknown tools of this wire. */
function isOfThisWire({ type }: { type: string }, { tools }: JsonObject): boolean {
  return type === 'allowed_tools' || (tools as JsonObject[]).some((tool) => (tool['type'] ?? 'function') === type);
}

/** Adds the operator's fields that the request does not have. */
function addExtraFields(encoding: Encoding, body: JsonObject, extraBody: JsonObject): void {
  for (const [name, value] of Object.entries(extraBody)) {
    if (gatewayFields.has(name)) addReport(encoding, 'dropped', `extra_body.${name}`, 'the gateway sets it');
    else if (value !== undefined && !(name in body)) body[name] = value;
  }
}

/** The object without these members; the object itself if it has none of them. */
function withoutMembers(value: JsonObject, names: readonly string[]): JsonObject {
  if (!names.some((name) => value[name] !== undefined)) return value;
  const kept: JsonObject = {};
  for (const name of Object.keys(value)) if (!names.includes(name)) kept[name] = value[name];
  return kept;
}

function pathOf({ quirks, upstream_model: upstreamModel }: DialectEndpoint): string {
  const path = quirks.path?.replace('{model}', () => encodeURIComponent(upstreamModel)) ?? PATH;
  return quirks.query === undefined ? path : `${path}?${quirks.query}`;
}
