import { limits } from '../../limits.ts';
import type { ChatRequest, Message } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { DialectEndpoint } from '../dialect.ts';
import { gatewayFields } from '../shared/gateway-fields.ts';
import { asObject } from '../shared/json-shape.ts';
import { lacksThinking } from './messages.ts';
import { encodeOwnConversation, type OwnMessage } from './own-conversation.ts';
import { planThinking } from './thinking.ts';
import { cacheHint, type Encoding } from './to-wire.ts';
import { encodeOwnTools } from './tools.ts';
import { restOf, type WireBlock, type WireThinkingConfig } from './wire.ts';

/** Fields that no client may set, in addition to the gateway's own: they concern the gateway's account and data stored there. */
export const DENIED: ReadonlySet<string> = new Set([
  ...gatewayFields,
  'anthropic_version',
  'anthropic_beta',
  'thread',
  'fallback_credit_token',
  'billing_policy',
]);

/** Fields with other token prices than the known ones (https://platform.claude.com/docs/en/about-claude/pricing), and their values at known prices. */
const KNOWN_PRICE_VALUES: ReadonlyMap<string, string> = new Map([
  ['speed', 'standard'],
  ['inference_geo', 'global'],
]);

/** Allows budgets above the output bound (documentation page "Extended thinking", "Interleaved thinking"). */
const INTERLEAVED = 'interleaved-thinking-2025-05-14';

/** The body of a request by a client of this wire, and the facts that the decoder needs. */
export interface OwnRequest {
  body: JsonObject;
  call_ids: string[];
}

/**
 * Builds the request of a client of the Messages API for an upstream of it: the fields as the client wrote them. The gateway changes only
 * the model, the output bound, the user's name, fields without a known price, and fields that the endpoint is known to refuse.
 */
export function encodeOwnRequest(
  request: ChatRequest,
  endpoint: DialectEndpoint,
  maxTokens: number,
  encoding: Encoding,
): OwnRequest {
  const conversation = encodeOwnConversation(request.messages, encoding);
  const {
    thinking: requestedThinking,
    output_config: outputConfig,
    output_format: outputFormat,
    tool_choice: toolChoice,
    ...others
  } = restOf(request.ext);
  const rest: JsonObject = {};
  for (const [field, value] of Object.entries(others)) {
    const allowedValue = KNOWN_PRICE_VALUES.get(field);
    if (DENIED.has(field)) encoding.addReport('dropped', field, 'the gateway sets it');
    else if (allowedValue !== undefined && value !== allowedValue)
      encoding.addReport('dropped', field, 'its price is not known');
    else rest[field] = value;
  }
  let thinking = thinkingOf(
    request,
    requestedThinking as WireThinkingConfig | undefined,
    maxTokens,
    endpoint,
    encoding,
  );
  if (
    thinking?.type === 'enabled' &&
    (encoding.strip_state || encoding.lost_reasoning || request.messages.some(hasLostReasoning)) &&
    lacksThinking(conversation.messages.map(withBlocks))
  ) {
    thinking = undefined;
    encoding.addReport('changed', 'thinking', 'thinking disabled: signatures missing');
  }
  const { temperature, top_p: topP, top_k: topK, stop, tools } = request;
  const config = configOf(request, asObject(outputConfig));
  const body: JsonObject = {
    ...rest,
    model: endpoint.upstream_model,
    max_tokens: maxTokens,
    messages: conversation.messages,
    ...(conversation.system.length > 0 ? { system: conversation.system } : {}),
    ...(tools == null ? {} : { tools: encodeOwnTools(tools, encoding) }),
    ...(request.tool_choice == null || toolChoice === undefined ? {} : { tool_choice: toolChoice }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(config === undefined ? {} : { output_config: config }),
    ...(outputFormat === undefined || request.response_format == null ? {} : { output_format: outputFormat }),
    ...(temperature == null ? {} : { temperature }),
    ...(topP == null ? {} : { top_p: topP }),
    ...(topK == null ? {} : { top_k: topK }),
    ...(stop == null ? {} : { stop_sequences: [stop].flat() }),
    ...cacheHint(request.cache_control, true),
  };
  return { body, call_ids: conversation.call_ids };
}

/** Whether a turn's reasoning was removed earlier, because it did not verify or belongs to another account. */
function hasLostReasoning({ reasoning_details: reasoningDetails }: Message): boolean {
  return reasoningDetails?.length === 0;
}

function withBlocks({ role, content }: OwnMessage): { role: string; content: readonly WireBlock[] } {
  return { role, content: typeof content === 'string' ? [] : content };
}

/**
 * The thinking configuration: as the client set it, or as the requested model's name implies. A budget must be below the output
 * bound if that bound is the endpoint's and not the client's.
 */
function thinkingOf(
  request: ChatRequest,
  requested: WireThinkingConfig | undefined,
  maxTokens: number,
  { max_completion_tokens: maxCompletionTokens }: DialectEndpoint,
  encoding: Encoding,
): WireThinkingConfig | undefined {
  const { reasoning, ext } = request;
  if (requested === undefined) {
    return reasoning?.enabled === true ? planThinking(request, maxTokens, encoding).thinking : undefined;
  }
  // Reasoning was removed from a request for an endpoint that does not support it.
  if (reasoning == null && (requested.type === 'enabled' || requested.type === 'adaptive')) return undefined;
  if (requested.type !== 'enabled' || requested.budget_tokens < maxTokens) return requested;
  if (maxTokens !== maxCompletionTokens || ext?.betas?.includes(INTERLEAVED)) return requested;
  if (maxTokens <= limits.thinking_budget_tokens_min) return requested;
  encoding.addReport('clamped', 'thinking.budget_tokens', `below the ${maxTokens} tokens that the endpoint produces`);
  return { ...requested, budget_tokens: maxTokens - 1 };
}

/** The client's output configuration without fields that were removed from the request. */
function configOf(request: ChatRequest, requested: JsonObject | undefined): JsonObject | undefined {
  if (requested === undefined) return undefined;
  const { effort, format, ...others } = requested;
  const config: JsonObject = { ...others };
  if (effort != null && (request.reasoning?.effort != null || request.verbosity != null)) config['effort'] = effort;
  if (format != null && request.response_format != null) config['format'] = format;
  return Object.keys(config).length === 0 ? undefined : config;
}
