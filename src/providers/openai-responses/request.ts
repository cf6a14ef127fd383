import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { DialectEndpoint, EncodedRequest, EncodeOptions, Report } from '../dialect.ts';
import type { Quirks } from '../quirks.ts';
import { gatewayFields, gatewayOnlyFields } from '../shared/gateway-fields.ts';
import { asArray, asObject, asText } from '../shared/json-shape.ts';
import { effortOf, nearestOf } from '../shared/reasoning-effort.ts';
import { NO_FIELD, reportInto } from '../shared/reports.ts';
import { fitToolName } from '../shared/tool-ids.ts';
import { hashUser } from '../shared/user-hash.ts';
import { encodeInput } from './input.ts';
import type { Encoding } from './parts.ts';
import { encodeFormat, encodeTools, toolsOfInput, withoutUnpriced } from './tools.ts';
import type { DecoderState } from './turn-context.ts';
import { restOf, WIRE } from './wire.ts';

/** The fields of a request that this dialect reads. The wire has no field for the others. */
const READ: ReadonlySet<string> = new Set([
  'messages',
  'model',
  'stream',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'logprobs',
  'top_logprobs',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'reasoning_effort',
  'include_reasoning',
  'verbosity',
  'modalities',
  'web_search_options',
  'service_tier',
  'user',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'x_search_filter',
]);

/**
 * Fields that neither an operator's `extra_body` nor a client's options may set: a stored `prompt` has uncounted tokens, and `tools`
 * may be images and sandboxes without a price, or searches without a bound.
 */
export const reserved: ReadonlySet<string> = new Set([
  ...gatewayFields,
  'input',
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'prompt',
  'tools',
]);

/** Fields that are sent unchanged. */
const SAME = [
  'temperature',
  'top_p',
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
] as const;

/** The least output bound that the wire accepts (https://platform.openai.com/docs/api-reference/responses/create). */
export const OUTPUT_TOKENS_MIN = 16;

/** Builds the request of the Responses API. Nothing is stored upstream (`store` is false), so reasoning is sent encrypted. */
export function encodeRequest(
  request: ChatRequest,
  endpoint: DialectEndpoint,
  { strip_state: stripState }: EncodeOptions,
): EncodedRequest {
  const report: Report[] = [];
  const renamed: Record<string, string> = Object.create(null);
  const { quirks } = endpoint;
  const encoding: Encoding = {
    quirks,
    strip_state: stripState,
    reasoning_ids: new Set(),
    toolName(name) {
      const sent = fitToolName(name);
      if (sent !== name) renamed[sent] = name;
      return sent;
    },
    addReport: reportInto(report),
  };
  if (request.modalities?.some((modality) => modality !== 'text')) {
    throw new GatewayError(400, 'modalities: this model answers in text only.');
  }
  const fields = withoutRefused(request, endpoint, encoding);
  const { stream_options: streamOptions, tool_choice: toolChoice, ...fieldsOfWire } = restOf(request.ext);
  const rest = withoutReserved(fieldsOfWire, (name) => {
    encoding.addReport('dropped', name, 'the gateway sets it');
  });
  const extra = withoutReserved(quirks.extra_body ?? {}, (name) => {
    encoding.addReport('dropped', `extra_body.${name}`, 'the gateway sets it');
  });
  const input = encodeInput(request.messages, encoding, request.ext?.wire === WIRE);
  const items = withoutUnpriced(input.items, encoding);
  const tools = encodeTools(fields, endpoint, encoding);
  const body: JsonObject = {
    ...extra,
    ...rest,
    model: endpoint.upstream_model,
    ...(input.instructions === undefined ? {} : { instructions: input.instructions }),
    input: items,
    store: false,
    ...includes(fields, rest, encoding),
    ...outputBound(fields, encoding),
    ...sameFields(fields),
    ...logprobs(fields),
    ...tools,
    // The client's own tool choice, if there still is one.
    ...(tools['tool_choice'] === undefined || toolChoice === undefined ? {} : { tool_choice: toolChoice }),
    ...toolBound([...asArray(tools['tools']), ...toolsOfInput(items)], request, encoding),
    ...textOptions(fields, rest, encoding),
    ...reasoningOptions(fields, endpoint, rest, encoding),
    ...endUser(request, quirks),
    ...ownFields(request, streamOptions, quirks),
    ...(fields.stream == null ? {} : { stream: fields.stream }),
  };

  const state: Omit<DecoderState, 'generation_id'> = { tool_names: renamed, call_ids: input.call_ids };
  if (quirks.reasoning_format !== undefined) state.reasoning_format = quirks.reasoning_format;
  return {
    method: 'POST',
    path: quirks.query === undefined ? '/responses' : `/responses?${quirks.query}`,
    headers: {
      'content-type': 'application/json',
      accept: request.stream === true ? 'text/event-stream' : 'application/json',
    },
    body,
    report,
    state: { ...state },
  };
}

/** The request without fields that the upstream refuses. Reports those and the fields that the wire does not have. */
function withoutRefused(request: ChatRequest, { provider, quirks }: DialectEndpoint, encoding: Encoding): ChatRequest {
  const fields = { ...request };
  for (const field in request) {
    if (request[field] == null || gatewayOnlyFields.has(field)) continue;
    const isRefused = quirks.refused_parameters?.includes(field) === true;
    if (!isRefused && (READ.has(field) || (field === 'metadata' && request.ext?.wire === WIRE))) continue;
    if (isRefused) delete fields[field];
    encoding.addReport('dropped', field, isRefused ? `${provider} does not accept this parameter` : NO_FIELD);
  }
  return fields;
}

function withoutReserved(fields: JsonObject, drop: (name: string) => void): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(fields)) {
    if (reserved.has(name)) drop(name);
    else kept[name] = value;
  }
  return kept;
}

/** The additional output to include; clients of this API may request more. */
function includes(fields: ChatRequest, rest: JsonObject, { quirks, strip_state: stripState }: Encoding): JsonObject {
  const included = new Set(asArray(rest['include']));
  // Models that do not think refuse this with the message for foreign state, so a retry omits it.
  if (!quirks.no_encrypted_reasoning && !stripState) included.add('reasoning.encrypted_content');
  else included.delete('reasoning.encrypted_content');
  if (fields.logprobs === true) included.add('message.output_text.logprobs');
  return included.size === 0 ? {} : { include: [...included] };
}

function outputBound(fields: ChatRequest, encoding: Encoding): JsonObject {
  const requested = fields.max_completion_tokens ?? fields.max_tokens;
  if (requested == null) return {};
  if (requested >= OUTPUT_TOKENS_MIN) return { max_output_tokens: requested };
  const field = fields.max_completion_tokens == null ? 'max_tokens' : 'max_completion_tokens';
  encoding.addReport('clamped', field, `this upstream accepts no bound below ${OUTPUT_TOKENS_MIN}`);
  return { max_output_tokens: OUTPUT_TOKENS_MIN };
}

function sameFields(fields: ChatRequest): JsonObject {
  const same: JsonObject = {};
  for (const name of SAME) if (fields[name] != null) same[name] = fields[name] as JsonValue;
  return same;
}

function logprobs({ logprobs: isRequested, top_logprobs: topLogprobs }: ChatRequest): JsonObject {
  return isRequested === true && topLogprobs != null ? { top_logprobs: topLogprobs } : {};
}

function textOptions(fields: ChatRequest, rest: JsonObject, encoding: Encoding): JsonObject {
  const format = encodeFormat(fields.response_format, encoding);
  const text = {
    ...asObject(rest['text']),
    ...(format === undefined ? {} : { format }),
    ...(fields.verbosity == null ? {} : { verbosity: verbosityOf(fields.verbosity, encoding) }),
  };
  return Object.keys(text).length === 0 ? {} : { text };
}

/** The wire has three levels; the public API has more above them. */
function verbosityOf(verbosity: string, encoding: Encoding): string {
  if (verbosity !== 'xhigh' && verbosity !== 'max') return verbosity;
  encoding.addReport('clamped', 'verbosity', 'the highest value of this upstream is high');
  return 'high';
}

/** The reasoning options. `exclude` is not sent: the gateway hides the reasoning itself and keeps the encrypted part. */
function reasoningOptions(
  fields: ChatRequest,
  endpoint: DialectEndpoint,
  rest: JsonObject,
  encoding: Encoding,
): JsonObject {
  const { quirks } = endpoint;
  const source = fields.reasoning == null ? 'reasoning_effort' : 'reasoning';
  const reasoning: JsonObject = { ...asObject(rest['reasoning']) };
  const effort = effortOf(fields, endpoint.max_completion_tokens);
  if (effort !== undefined && quirks.reasoning_field === 'none') {
    encoding.addReport('dropped', source, `${endpoint.provider} has no such option for this model`);
  } else if (effort !== undefined) {
    const sent = nearestOf(quirks.reasoning_efforts, effort);
    if (sent !== effort) {
      encoding.addReport('clamped', source, `the model accepts ${quirks.reasoning_efforts?.join(', ')}; sent ${sent}`);
    }
    reasoning['effort'] = sent;
  }
  const isHidden = fields.reasoning?.exclude === true || fields.include_reasoning === false;
  const summary = fields.reasoning?.summary ?? (isHidden ? undefined : quirks.reasoning_summary);
  if (summary != null) reasoning['summary'] = summary;
  return Object.keys(reasoning).length === 0 ? {} : { reasoning };
}

/** The client's end user, in the newer field or the older one; only as a hash. */
function endUser(request: ChatRequest, { refused_parameters: refusedParameters }: Quirks): JsonObject {
  const user = request.user || request['safety_identifier'];
  if (typeof user !== 'string' || user === '') return {};
  return { [refusedParameters?.includes('safety_identifier') ? 'user' : 'safety_identifier']: hashUser(user) };
}

/**
 * The bound on calls of tools that the provider runs: money is held for this many searches. Other tools have the client's own
 * bound.
 */
function toolBound(
  tools: readonly JsonValue[],
  request: ChatRequest,
  { quirks, addReport: report }: Encoding,
): JsonObject {
  const requested = request['max_tool_calls'];
  const types = tools.map((tool) => asText(asObject(tool)?.['type']));
  const isSearching = types.some((type) => type.startsWith('web_search'));
  const isRunning = isSearching || types.some((type) => type !== 'function' && type !== 'custom');
  if (!isSearching && !(isRunning && typeof requested === 'number')) return {};
  if (quirks.refused_parameters?.includes('max_tool_calls')) return {};
  const max = limits.web_searches_assumed;
  if (typeof requested !== 'number') return { max_tool_calls: max };
  if (requested <= max) return { max_tool_calls: requested };
  report('clamped', 'max_tool_calls', `the spend limit pays for at most ${max} calls`);
  return { max_tool_calls: max };
}

/** Fields that only clients of this API have. */
function ownFields(
  { ext, metadata, stream }: ChatRequest,
  streamOptions: JsonValue | undefined,
  { refused_parameters: refused }: Quirks,
): JsonObject {
  if (ext?.wire !== WIRE) return {};
  const isStreamed = stream === true && streamOptions != null && !refused?.includes('stream_options');
  return {
    ...(metadata == null || refused?.includes('metadata') ? {} : { metadata }),
    ...(isStreamed ? { stream_options: streamOptions } : {}),
  };
}
