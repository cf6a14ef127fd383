import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { DialectEndpoint, EncodedRequest, EncodeOptions, Report } from '../dialect.ts';
import { reportInto, reportUnread } from '../shared/reports.ts';
import { hashUser } from '../shared/user-hash.ts';
import { allowedBetas } from './betas.ts';
import { limitBreakpoints } from './caching.ts';
import { checkPrefill, encodeConversation, lacksThinking } from './messages.ts';
import { createToolNames, unchangedNames } from './names.ts';
import { encodeOwnRequest } from './own-request.ts';
import { planThinking, type ThinkingPlan } from './thinking.ts';
import { cacheHint, type Encoding } from './to-wire.ts';
import { planTools } from './tools.ts';
import type { DecoderState } from './turn.ts';
import { WIRE, type WireRequest } from './wire.ts';

/** The fields of a request that this dialect reads. The wire has no field for the others. */
const READ: ReadonlySet<string> = new Set([
  'messages',
  'model',
  'stream',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'top_k',
  'stop',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'reasoning_effort',
  'include_reasoning',
  'verbosity',
  'modalities',
  'service_tier',
  'user',
  'safety_identifier',
  'cache_control',
]);

/** Builds the request of the Messages API (https://platform.claude.com/docs/en/api/messages). */
export function encodeRequest(
  request: ChatRequest,
  endpoint: DialectEndpoint,
  { strip_state: stripState, media }: EncodeOptions,
): EncodedRequest {
  const report: Report[] = [];
  const { quirks } = endpoint;
  const own = request.ext?.wire === WIRE;
  const encoding: Encoding = {
    quirks,
    names: own ? unchangedNames : createToolNames(),
    own,
    strip_state: stripState,
    media,
    addReport: reportInto(report),
  };
  reportUnread(request, READ, encoding.addReport);
  if (request.modalities?.some((modality) => modality !== 'text')) {
    throw new GatewayError(400, 'modalities: this model answers in text only.');
  }
  const maxTokens = outputBound(request, endpoint, encoding);
  const { body, state } = own
    ? ownBody(request, endpoint, maxTokens, encoding)
    : translatedBody(request, endpoint, maxTokens, encoding);
  const common = {
    ...endUser(request),
    ...serviceTier(request, encoding),
    ...(request.stream === true ? { stream: true } : {}),
    ...(request.stream === false && own ? { stream: false } : {}),
  };
  const betas = allowedBetas(request.ext, encoding);
  const { path, headers, body: sentBody } = addressed({ ...body, ...common }, endpoint);
  if (betas !== '') headers['anthropic-beta'] = betas;
  return { method: 'POST', path, headers, body: sentBody, report, state: { ...state } };
}

interface BuiltBody {
  body: JsonObject;
  state: Omit<DecoderState, 'generation_id'>;
}

function ownBody(request: ChatRequest, endpoint: DialectEndpoint, maxTokens: number, encoding: Encoding): BuiltBody {
  const { body, call_ids: callIds } = encodeOwnRequest(request, endpoint, maxTokens, encoding);
  return { body, state: { call_ids: callIds } };
}

/** The body for a client of another API, in a form that this wire accepts. */
function translatedBody(
  request: ChatRequest,
  { quirks, upstream_model: upstreamModel }: DialectEndpoint,
  maxTokens: number,
  encoding: Encoding,
): BuiltBody {
  const conversation = encodeConversation(request.messages, encoding);
  const plan = planThinking(request, maxTokens, encoding);
  if (plan.thinking?.type === 'enabled' && lacksThinking(conversation.messages)) {
    delete plan.thinking;
    encoding.addReport('changed', 'reasoning', 'thinking disabled: signatures missing');
  }
  const isThinking = plan.thinking?.type === 'enabled' || plan.thinking?.type === 'adaptive';
  const tools = planTools(request, conversation.called, plan.thinking?.type === 'enabled', encoding);
  checkPrefill(conversation.messages, { isThinking, refused: quirks.no_prefill === true });

  const body: WireRequest = {
    model: upstreamModel,
    max_tokens: maxTokens,
    messages: conversation.messages,
    ...(conversation.system.length > 0 ? { system: conversation.system } : {}),
    ...(tools.tools.length > 0 ? { tools: tools.tools } : {}),
    ...(tools.tool_choice === undefined ? {} : { tool_choice: tools.tool_choice }),
    ...(plan.thinking === undefined ? {} : { thinking: plan.thinking }),
    ...outputConfig(plan, tools.format),
    ...sampling(request, isThinking, encoding),
    ...stopSequences(request, encoding),
    ...cacheHint(request.cache_control),
  };
  if (tools.hint !== undefined) body.system = [...(body.system ?? []), { type: 'text', text: tools.hint }];
  limitBreakpoints(body, encoding);

  const state: BuiltBody['state'] = { tool_names: encoding.names.renamed(), call_ids: conversation.call_ids };
  if (tools.shim !== undefined) state.shim = tools.shim;
  return { body, state };
}

/**
 * The path, headers and body. On Vertex AI the path names the model and the body the version
 * (https://docs.claude.com/en/api/claude-on-vertex-ai).
 */
function addressed(
  body: JsonObject,
  { quirks, upstream_model: upstreamModel }: DialectEndpoint,
): Pick<EncodedRequest, 'path' | 'headers' | 'body'> {
  if (quirks.google_cloud !== true) {
    const path = quirks.query === undefined ? '/messages' : `/messages?${quirks.query}`;
    return { path, headers: { 'anthropic-version': '2023-06-01' }, body };
  }
  const { model: _, ...others } = body;
  const method = body['stream'] === true ? 'streamRawPredict' : 'rawPredict';
  // Dated names contain an @, which is allowed in a path (RFC 3986, section 3.3).
  const model = encodeURIComponent(upstreamModel).replaceAll('%40', '@');
  return {
    path: `/models/${model}:${method}`,
    headers: {},
    body: { ...others, anthropic_version: 'vertex-2023-10-16' },
  };
}

/** The output bound, which the wire requires: the request's, at most the model's; else the model's own. */
function outputBound(request: ChatRequest, endpoint: DialectEndpoint, encoding: Encoding): number {
  const endpointMax = endpoint.max_completion_tokens;
  const requested = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  if (requested === undefined) return endpointMax ?? limits.output_tokens_default;
  if (endpointMax === undefined || requested <= endpointMax) return requested;
  const field = request.max_completion_tokens == null ? 'max_tokens' : 'max_completion_tokens';
  encoding.addReport('clamped', field, `the endpoint returns at most ${endpointMax} tokens`);
  return endpointMax;
}

function outputConfig(
  plan: ThinkingPlan,
  format: { type: 'json_schema'; schema: JsonObject } | undefined,
): { output_config?: NonNullable<WireRequest['output_config']> } {
  const config = {
    ...(plan.effort === undefined ? {} : { effort: plan.effort }),
    ...(format === undefined ? {} : { format }),
  };
  return Object.keys(config).length === 0 ? {} : { output_config: config };
}

/** The client's end user, in the newer field or the older one. */
function endUser(request: ChatRequest): Pick<WireRequest, 'metadata'> {
  const user = request.user || request['safety_identifier'];
  return typeof user === 'string' && user !== '' ? { metadata: { user_id: hashUser(user) } } : {};
}

/** The sampling parameters that a Claude accepts: models differ, and thinking fixes most of them. */
export function sampling(
  request: ChatRequest,
  isThinking: boolean,
  encoding: Encoding,
): Pick<WireRequest, 'temperature' | 'top_p' | 'top_k'> {
  const { quirks } = encoding;
  const sent: Pick<WireRequest, 'temperature' | 'top_p' | 'top_k'> = {};
  const { temperature, top_p: topP, top_k: topK } = request;
  const drop = (field: string, reason: string) => encoding.addReport('dropped', field, reason);
  const reason = quirks.no_sampling === true ? 'the model has no sampling parameters' : 'not together with reasoning';
  const isFixed = quirks.no_sampling === true || isThinking;
  if (temperature != null) {
    if (isFixed) drop('temperature', reason);
    else sent.temperature = Math.min(temperature, 1);
    if (!isFixed && temperature > 1) encoding.addReport('clamped', 'temperature', 'at most 1');
  }
  if (topP != null) {
    // With thinking, top_p may be between 0.95 and 1.
    if (quirks.no_sampling === true || (isThinking && topP < 0.95)) drop('top_p', reason);
    else if (quirks.one_sampling === true && sent.temperature !== undefined)
      drop('top_p', 'the model accepts temperature or top_p, not both');
    else sent.top_p = topP;
  }
  if (topK != null) {
    if (isFixed) drop('top_k', reason);
    else sent.top_k = Math.floor(topK);
    if (!isFixed && !Number.isInteger(topK)) encoding.addReport('changed', 'top_k', 'whole numbers only');
  }
  return sent;
}

/** The stop sequences without those of white space only, which are refused. */
export function stopSequences(request: ChatRequest, encoding: Encoding): Pick<WireRequest, 'stop_sequences'> {
  const requested = typeof request.stop === 'string' ? [request.stop] : (request.stop ?? []);
  const sequences = requested.filter((sequence) => sequence.trim() !== '');
  if (sequences.length < requested.length)
    encoding.addReport('dropped', 'stop', 'sequences of white space are refused');
  return sequences.length === 0 ? {} : { stop_sequences: sequences };
}

function serviceTier(request: ChatRequest, encoding: Encoding): Pick<WireRequest, 'service_tier'> {
  switch (request.service_tier) {
    case null:
    case undefined:
      return {};
    case 'auto':
      return { service_tier: 'auto' };
    case 'default':
      return { service_tier: 'standard_only' };
    default:
      encoding.addReport('dropped', 'service_tier', `this upstream has no tier ${request.service_tier}`);
      return {};
  }
}
