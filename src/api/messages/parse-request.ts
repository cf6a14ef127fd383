import type { Static } from 'typebox';
import { GatewayError, invalidField } from '../../errors.ts';
import type { Envelope } from '../../inference/reasoning/envelope.ts';
import { withServerTools } from '../../plugins/requested-tools.ts';
import { decodeConversation, decodeTool, decodeToolChoice } from '../../providers/anthropic-messages/from-wire.ts';
import { WIRE } from '../../providers/anthropic-messages/wire.ts';
import { spokenToGateway } from '../../providers/shared/gateway-fields.ts';
import type { ChatRequest, FunctionTool, InnerTool, Message, ReasoningOptions } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { CountTokensBody, MessagesBody } from '../../schemas/messages.ts';
import { openEnvelopes } from '../shared/opened-envelopes.ts';
import { messagesClient } from './client.ts';
import { OWN_BLOCK } from './own-runs.ts';
import { isStrict } from './strict-schema.ts';
import { innerCallId } from './tool-ids.ts';

export type MessagesRequestBody = Static<typeof MessagesBody>;

/** What the door is told beside the body. */
export interface DoorContext {
  envelope: Envelope;
  /** Values of the beta headers. */
  betas: readonly string[];
}

/** Fields with a place in the inner language. All others are the wire's own, and return to it alone. */
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

/**
 * A request of the Messages API in the one inner language. Throws `GatewayError` 400 that names the field. What the inner
 * language says in other words (how to think, what form the answer has, which tool to choose) is also kept as it was said,
 * for upstreams of this very wire.
 */
export function messagesRequest(
  body: MessagesRequestBody | Static<typeof CountTokensBody>,
  { envelope, betas }: DoorContext,
): ChatRequest {
  const given = body as MessagesRequestBody & Record<string, unknown>;
  refuse(given);
  const rest: JsonObject = {};
  const request: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(given)) {
    if (value == null || PLACED.has(field)) continue;
    if (spokenToGateway.has(field)) request[field] = value;
    else rest[field] = value as JsonValue;
  }
  const { model, max_tokens, temperature, top_p, top_k, stop_sequences, stream, cache_control } = given;
  const messages = decodeConversation({
    system: (given.system ?? null) as JsonValue,
    messages: withoutOwnBlocks(given.messages as unknown as JsonObject[]),
  }).map((message) => withInnerIds(openEnvelopes(message, envelope)));
  const told = {
    model,
    messages,
    max_tokens,
    temperature,
    top_p,
    top_k,
    stop: stop_sequences,
    stream,
    cache_control,
    service_tier: given.service_tier === 'standard_only' ? 'default' : given.service_tier,
    user: given.user ?? given.metadata?.user_id,
    models: given['models'] ?? modelsOf(given.fallbacks),
    tools: given.tools?.flatMap((tool) => toolOf(tool as unknown as JsonObject)),
    ...decodeToolChoice(given.tool_choice as unknown as JsonValue),
    ...thoughts(given),
  };
  for (const [field, value] of Object.entries(told)) if (value != null) request[field] = value;
  // Clouds that resell Claude take them in the body, by the second of these names.
  const wanted = [...new Set([...betas, ...listOf(rest['betas']), ...listOf(rest['anthropic_beta'])])];
  delete rest['betas'];
  delete rest['anthropic_beta'];
  request['ext'] = {
    wire: WIRE,
    client: messagesClient,
    rest,
    ...(wanted.length === 0 ? {} : { betas: wanted }),
  };
  return withServerTools(request as unknown as ChatRequest);
}

/** The conversation without what the gateway told of its own tools: no provider knows it, and the text that came of it stays. */
function withoutOwnBlocks(messages: JsonObject[]): JsonObject[] {
  const isOwn = (block: JsonValue) => {
    const { id, tool_use_id } = (block ?? {}) as JsonObject;
    return String(id ?? tool_use_id ?? '').startsWith(OWN_BLOCK);
  };
  return messages.flatMap((message) => {
    const { content } = message;
    if (!Array.isArray(content) || !content.some(isOwn)) return [message];
    const kept = content.filter((block) => !isOwn(block));
    // A message without content is refused upstream.
    return kept.length === 0 ? [] : [{ ...message, content: kept }];
  });
}

/** Ids of calls as they were before this API's clients were shown them. */
function withInnerIds(message: Message): Message {
  const { tool_call_id, tool_calls } = message;
  if (tool_call_id !== undefined) return { ...message, tool_call_id: innerCallId(tool_call_id) };
  if (tool_calls === undefined) return message;
  return { ...message, tool_calls: tool_calls.map((call) => ({ ...call, id: innerCallId(call.id) })) };
}

/** What would change what an answer is worth, or where it may be made, cannot be left out quietly. */
function refuse(given: Record<string, unknown>): void {
  if (given['thread'] != null) {
    // Anthropic's SDK asks for a thread wherever it runs tools, and goes on without one where it is told so in these words.
    throw new GatewayError(400, 'thread must be left out: conversations are not kept at providers', {
      metadata: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
    });
  }
  const geo = given['inference_geo'];
  if (geo != null && geo !== 'global') {
    throw invalidField('inference_geo', 'must be global: choose where a model runs with provider.only');
  }
}

/** The client's own tools, those that the provider knows, and the gateway's. */
function toolOf(tool: JsonObject): InnerTool[] {
  const { type, ext: _, ...options } = tool;
  if (typeof type === 'string' && type.includes(':')) return [{ ...options, type } as InnerTool];
  const told = decodeTool(tool);
  if (told === undefined) return [];
  if (!isFunction(told) || told.function.strict !== true || isStrict(told.function.parameters)) return [told];
  // Other wires would refuse it: for them it is a wish.
  const { strict, ...wish } = told.function;
  const { ext } = told;
  return [{ ...told, function: wish, ext: { wire: WIRE, rest: { ...ext?.rest, strict } } }];
}

function isFunction(tool: InnerTool): tool is FunctionTool {
  return tool.type === 'function';
}

/** Other models to try are the gateway's business: an upstream would get around the rules for them. */
function modelsOf(fallbacks: MessagesRequestBody['fallbacks']): string[] | undefined {
  return Array.isArray(fallbacks) ? fallbacks.map(({ model }) => model) : undefined;
}

/** How to think, how hard to work and what form the answer has, in the inner language's words. */
function thoughts({
  thinking,
  output_config,
  output_format,
}: MessagesRequestBody): Pick<ChatRequest, 'reasoning' | 'verbosity' | 'response_format'> {
  const told: Pick<ChatRequest, 'reasoning' | 'verbosity' | 'response_format'> = {};
  const effort = output_config?.effort ?? undefined;
  const reasoning: ReasoningOptions = {};
  if (thinking?.type === 'disabled') {
    reasoning.effort = 'none';
    if (effort !== undefined) told.verbosity = effort;
  } else if (thinking?.type === 'enabled') {
    reasoning.max_tokens = thinking.budget_tokens;
    if (effort !== undefined) told.verbosity = effort;
  } else {
    if (thinking?.type === 'adaptive') reasoning.enabled = true;
    if (effort !== undefined) reasoning.effort = effort;
  }
  if (thinking != null && 'display' in thinking) {
    if (thinking.display === 'omitted') reasoning.exclude = true;
    // Other wires tell thoughts only where their summary is asked for.
    if (thinking.display === 'summarized') reasoning.summary = 'auto';
  }
  if (Object.keys(reasoning).length > 0) told.reasoning = reasoning;
  const format = output_config?.format ?? output_format ?? undefined;
  if (format !== undefined) {
    const schema = format.schema as JsonObject;
    told.response_format = {
      type: 'json_schema',
      json_schema: { name: 'answer', ...(isStrict(schema) ? { strict: true } : {}), schema },
    };
  }
  return told;
}

function listOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}
