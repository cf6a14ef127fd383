import type { Static } from 'typebox';
import { GatewayError, invalidField } from '../../errors.ts';
import type { Envelope } from '../../inference/reasoning/envelope.ts';
import { limits } from '../../limits.ts';
import { withServerTools } from '../../plugins/requested-tools.ts';
import { decodeConversation, decodeTool, decodeToolChoice } from '../../providers/anthropic-messages/from-wire.ts';
import { WIRE } from '../../providers/anthropic-messages/wire.ts';
import { gatewayOnlyFields } from '../../providers/shared/gateway-fields.ts';
import { asObject } from '../../providers/shared/json-shape.ts';
import type { ChatRequest, FunctionTool, InnerTool, Message, ReasoningOptions } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { CountTokensBody, MessagesBody } from '../../schemas/messages.ts';
import { openEnvelopes } from '../shared/opened-envelopes.ts';
import { messagesClient } from './client.ts';
import { OWN_BLOCK } from './own-runs.ts';
import { isStrict } from './strict-schema.ts';
import { innerCallId } from './tool-ids.ts';

export type MessagesRequestBody = Static<typeof MessagesBody>;

/** The input of the translation besides the body. */
export interface ParseContext {
  envelope: Envelope;
  /** Values of the beta headers. */
  betas: readonly string[];
}

/** Fields with a place in the inner language. All others belong to the wire, and are sent only to it. */
const PLACED: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'system',
  'max_tokens',
  'stop_sequences',
  'temperature',
  'top_p',
  'top_k',
  'stream',
  'tools',
  'cache_control',
  'service_tier',
  'user',
  'metadata',
  'fallbacks',
]);

/** Throws a `GatewayError` 400 for more blocks of thinking than are decoded at once. */
function checkThinking(messages: readonly JsonObject[]): void {
  let blocks = 0;
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue;
    for (const block of content) {
      const type = asObject(block)?.['type'];
      if (type === 'thinking' || type === 'redacted_thinking') blocks += 1;
    }
  }
  if (blocks <= limits.input_reasoning_max) return;
  throw invalidField('messages', `must have at most ${limits.input_reasoning_max} blocks of thinking in all`);
}

/**
 * Translates a request of the Messages API into the inner language. Throws a `GatewayError` 400 that names the field. Fields that the inner
 * language expresses differently (thinking, form of the answer, tool choice) are also kept in their original form, for upstreams of the same
 * wire.
 */
export function messagesRequest(
  body: MessagesRequestBody | Static<typeof CountTokensBody>,
  { envelope, betas }: ParseContext,
): ChatRequest {
  const fields = body as MessagesRequestBody & Record<string, unknown>;
  refuse(fields);
  checkThinking(fields.messages as unknown as JsonObject[]);
  const rest: JsonObject = {};
  const request: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(fields)) {
    if (value == null || PLACED.has(field)) continue;
    if (gatewayOnlyFields.has(field)) request[field] = value;
    else rest[field] = value as JsonValue;
  }
  const { model, max_tokens, temperature, top_p, top_k, stop_sequences, stream, cache_control } = fields;
  const messages = decodeConversation({
    system: (fields.system ?? null) as JsonValue,
    messages: withoutOwnBlocks(fields.messages as unknown as JsonObject[]),
  }).map((message) => withInnerIds(openEnvelopes(message, envelope)));
  const translated = {
    model,
    messages,
    max_tokens,
    temperature,
    top_p,
    top_k,
    stop: stop_sequences,
    stream,
    cache_control,
    service_tier: fields.service_tier === 'standard_only' ? 'default' : fields.service_tier,
    user: fields.user ?? fields.metadata?.user_id,
    models: fields['models'] ?? modelsOf(fields.fallbacks),
    tools: fields.tools?.flatMap((tool) => toolOf(tool as unknown as JsonObject)),
    ...decodeToolChoice(fields.tool_choice as unknown as JsonValue),
    ...thoughts(fields),
  };
  for (const [field, value] of Object.entries(translated)) if (value != null) request[field] = value;
  // Clouds that resell Claude accept betas in the body, as `anthropic_beta`.
  const allBetas = [...new Set([...betas, ...listOf(rest['betas']), ...listOf(rest['anthropic_beta'])])];
  delete rest['betas'];
  delete rest['anthropic_beta'];
  request['ext'] = {
    wire: WIRE,
    client: messagesClient,
    rest,
    ...(allBetas.length === 0 ? {} : { betas: allBetas }),
  };
  return withServerTools(request as unknown as ChatRequest);
}

/** The messages without blocks of the gateway's own tools, which providers do not know. The text that resulted from them stays. */
function withoutOwnBlocks(messages: JsonObject[]): JsonObject[] {
  const isOwn = (block: JsonValue) => {
    const { id, tool_use_id } = (block ?? {}) as JsonObject;
    return String(id ?? tool_use_id ?? '').startsWith(OWN_BLOCK);
  };
  return messages.flatMap((message) => {
    const { content } = message;
    if (!Array.isArray(content) || !content.some(isOwn)) return [message];
    const kept = content.filter((block) => !isOwn(block));
    // Upstreams refuse a message without content.
    return kept.length === 0 ? [] : [{ ...message, content: kept }];
  });
}

/** Restores the original ids of calls from those shown to clients of this API. */
function withInnerIds(message: Message): Message {
  const { tool_call_id, tool_calls } = message;
  if (tool_call_id !== undefined) return { ...message, tool_call_id: innerCallId(tool_call_id) };
  if (tool_calls === undefined) return message;
  return { ...message, tool_calls: tool_calls.map((call) => ({ ...call, id: innerCallId(call.id) })) };
}

/** Throws for fields that change the price or the region of an answer, which must not be ignored silently. */
function refuse(fields: Record<string, unknown>): void {
  if (fields['thread'] != null) {
    // Anthropic's SDK requests a thread whenever it runs tools, and continues without one if it gets this message.
    throw new GatewayError(400, 'thread must be left out: conversations are not kept at providers', {
      metadata: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
    });
  }
  const geo = fields['inference_geo'];
  if (geo != null && geo !== 'global') {
    throw invalidField('inference_geo', 'must be global: choose where a model runs with provider.only');
  }
}

/** A tool of the client, of the provider, or of the gateway. */
function toolOf(tool: JsonObject): InnerTool[] {
  const { type, ext: _, ...options } = tool;
  if (typeof type === 'string' && type.includes(':')) return [{ ...options, type } as InnerTool];
  const decoded = decodeTool(tool);
  if (decoded === undefined) return [];
  if (!isFunction(decoded) || decoded.function.strict !== true || isStrict(decoded.function.parameters))
    return [decoded];
  // Other wires refuse such a schema: for them `strict` is dropped.
  const { strict, ...loose } = decoded.function;
  const { ext } = decoded;
  return [{ ...decoded, function: loose, ext: { wire: WIRE, rest: { ...ext?.rest, strict } } }];
}

function isFunction(tool: InnerTool): tool is FunctionTool {
  return tool.type === 'function';
}

/** Fallback models, which the gateway tries itself: an upstream would bypass the rules that apply to them. */
function modelsOf(fallbacks: MessagesRequestBody['fallbacks']): string[] | undefined {
  return Array.isArray(fallbacks) ? fallbacks.map(({ model }) => model) : undefined;
}

/** Thinking, effort and the form of the answer, in terms of the inner language. */
function thoughts({
  thinking,
  output_config,
  output_format,
}: MessagesRequestBody): Pick<ChatRequest, 'reasoning' | 'verbosity' | 'response_format'> {
  const options: Pick<ChatRequest, 'reasoning' | 'verbosity' | 'response_format'> = {};
  const effort = output_config?.effort ?? undefined;
  const reasoning: ReasoningOptions = {};
  if (thinking?.type === 'disabled') {
    reasoning.effort = 'none';
    if (effort !== undefined) options.verbosity = effort;
  } else if (thinking?.type === 'enabled') {
    reasoning.max_tokens = thinking.budget_tokens;
    if (effort !== undefined) options.verbosity = effort;
  } else {
    if (thinking?.type === 'adaptive') reasoning.enabled = true;
    if (effort !== undefined) reasoning.effort = effort;
  }
  if (thinking != null && 'display' in thinking) {
    if (thinking.display === 'omitted') reasoning.exclude = true;
    // Other wires send reasoning only if a summary is requested.
    if (thinking.display === 'summarized') reasoning.summary = 'auto';
  }
  if (Object.keys(reasoning).length > 0) options.reasoning = reasoning;
  const format = output_config?.format ?? output_format ?? undefined;
  if (format !== undefined) {
    const schema = format.schema as JsonObject;
    options.response_format = {
      type: 'json_schema',
      json_schema: { name: 'answer', ...(isStrict(schema) ? { strict: true } : {}), schema },
    };
  }
  return options;
}

function listOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}
