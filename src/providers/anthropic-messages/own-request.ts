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

/** What no client may set, beside the gateway's own fields: what concerns the account that is asked, and what is kept there. */
export const DENIED: ReadonlySet<string> = new Set([
  ...gatewayFields,
  'anthropic_version',
  'anthropic_beta',
  'thread',
  'fallback_credit_token',
  'billing_policy',
]);

/** Tokens at other prices than those that are known (https://platform.claude.com/docs/en/about-claude/pricing), but for these values. */
const DEARER: ReadonlyMap<string, string> = new Map([
  ['speed', 'standard'],
  ['inference_geo', 'global'],
]);

/** With it a budget may be larger than the output bound (documentation page "Extended thinking", "Interleaved thinking"). */
const INTERLEAVED = 'interleaved-thinking-2025-05-14';

/** The body of a request by a client that speaks this wire, and what the decoder must know of it. */
export interface OwnRequest {
  body: JsonObject;
  call_ids: string[];
}

/**
 * Builds the request of a client of the Messages API for an upstream of it: what the client wrote, as it wrote it. The gateway
 * changes what it must: the model, the output bound, the user's name, what it has no price for, and what the endpoint is known
 * not to take.
 */
export function encodeOwnRequest(
  request: ChatRequest,
  endpoint: DialectEndpoint,
  maxTokens: number,
  encoding: Encoding,
): OwnRequest {
  const conversation = encodeOwnConversation(request.messages, encoding);
  const {
    thinking: told,
    output_config: outputConfig,
    output_format: outputFormat,
    tool_choice: toolChoice,
    ...others
  } = restOf(request.ext);
  const rest: JsonObject = {};
  for (const [field, value] of Object.entries(others)) {
    const harmless = DEARER.get(field);
    if (DENIED.has(field)) encoding.report('dropped', field, 'the gateway decides it');
    else if (harmless !== undefined && value !== harmless) encoding.report('dropped', field, 'its price is not known');
    else rest[field] = value;
  }
  let thinking = thinkingOf(request, told as WireThinkingConfig | undefined, maxTokens, endpoint, encoding);
  if (
    thinking?.type === 'enabled' &&
    (encoding.strip_state || encoding.lost_reasoning || request.messages.some(lostBefore)) &&
    lacksThinking(conversation.messages.map(listed))
  ) {
    thinking = undefined;
    encoding.report('changed', 'thinking', 'thinking disabled: signatures missing');
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

/** Whether a turn's reasoning was left out on the way here: what did not verify, or another account's. */
function lostBefore({ reasoning_details: reasoningDetails }: Message): boolean {
  return reasoningDetails?.length === 0;
}

function listed({ role, content }: OwnMessage): { role: string; content: readonly WireBlock[] } {
  return { role, content: typeof content === 'string' ? [] : content };
}

/**
 * How to think: as the client said, or as the name of the model that it chose says. A budget must stay below the output
 * bound where that is the endpoint's and no longer the client's.
 */
function thinkingOf(
  request: ChatRequest,
  told: WireThinkingConfig | undefined,
  maxTokens: number,
  { max_completion_tokens: maxCompletionTokens }: DialectEndpoint,
  encoding: Encoding,
): WireThinkingConfig | undefined {
  const { reasoning, ext } = request;
  if (told === undefined) {
    return reasoning?.enabled === true ? planThinking(request, maxTokens, encoding).thinking : undefined;
  }
  // What the endpoint does not take at all has been taken out of the request.
  if (reasoning == null && (told.type === 'enabled' || told.type === 'adaptive')) return undefined;
  if (told.type !== 'enabled' || told.budget_tokens < maxTokens) return told;
  if (maxTokens !== maxCompletionTokens || ext?.betas?.includes(INTERLEAVED)) return told;
  if (maxTokens <= limits.thinking_budget_tokens_min) return told;
  encoding.report('clamped', 'thinking.budget_tokens', `below the ${maxTokens} tokens that the endpoint produces`);
  return { ...told, budget_tokens: maxTokens - 1 };
}

/** The client's output configuration without what was taken out of the request since. */
function configOf(request: ChatRequest, told: JsonObject | undefined): JsonObject | undefined {
  if (told === undefined) return undefined;
  const { effort, format, ...others } = told;
  const config: JsonObject = { ...others };
  if (effort != null && (request.reasoning?.effort != null || request.verbosity != null)) config['effort'] = effort;
  if (format != null && request.response_format != null) config['format'] = format;
  return Object.keys(config).length === 0 ? undefined : config;
}
