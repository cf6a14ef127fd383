import type { Static } from 'typebox';
import { GatewayError, invalidField } from '../../errors.ts';
import { withServerTools } from '../../plugins/requested-tools.ts';
import type { ChatCompletionBody, RequestedCall } from '../../schemas/chat.ts';
import {
  CHAT_WIRE,
  type ChatRequest,
  type FunctionTool,
  type InnerPart,
  type Message,
  type ToolCall,
  type ToolChoice,
} from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { completionsClient } from '../completions/client.ts';
import { chatClient } from './client.ts';

export type ChatBody = Static<typeof ChatCompletionBody>;

/** Fields that are not sent upstream: they belong to the gateway, or repeat other fields. */
const CONSUMED = new Set(['prompt', 'functions', 'function_call', 'stream_options', 'n', 'ext']);

/** Removes extensions, which only decoders may make. */
function withoutExtension<T extends object>(value: T): T {
  if (!('ext' in value)) return value;
  const { ext: _, ...rest } = value as T & { ext: unknown };
  return rest as T;
}

function part(input: Record<string, unknown>, field: string): InnerPart {
  let made = withoutExtension(input);
  if (made['type'] === 'input_video') made = { ...made, type: 'video_url' };
  else if (made['type'] === 'document_url') made = document(made);
  else if (typeof made['image_url'] === 'string') made = { ...made, image_url: { url: made['image_url'] } };
  // OpenAI's field for a cache breakpoint; `cache_control` is the one that every dialect reads.
  if (made['prompt_cache_breakpoint'] != null && made['cache_control'] == null) {
    made = { ...made, cache_control: { type: 'ephemeral' } };
  }
  const { file } = made as { file?: { file_data?: unknown; file_id?: unknown } };
  if (made['type'] === 'file' && !file?.file_data && !file?.file_id) {
    throw invalidField(`${field}.file.file_data`, 'is required, or file_id');
  }
  return made as unknown as InnerPart;
}

/** A file part of Mistral's API: a `file` part, and its original for upstreams of the same wire. */
function document(input: Record<string, unknown>): Record<string, unknown> {
  const { document_url: fileData, document_name: filename } = input;
  const file = { file_data: fileData, ...(filename == null ? {} : { filename }) };
  return { type: 'file', file, ext: { wire: CHAT_WIRE, rest: input } };
}

/** The text of Mistral's thinking parts, in which its clients send reasoning back. */
function thoughts(parts: readonly Record<string, unknown>[]): string {
  return parts
    .map(({ thinking }) =>
      Array.isArray(thinking) ? thinking.map((piece: { text?: string | null }) => piece.text ?? '').join('') : thinking,
    )
    .join('');
}

/** Whether a detail only records a tool that the public service ran. Models do not read it. */
function isToolRecord({ type }: { type: string }): boolean {
  return type === 'reasoning.server_tool_call';
}

function legacyCallId(index: number): string {
  return `call_legacy_${index}`;
}

/** Fields that only assistant messages have. In other messages they are not validated. */
const ASSISTANT_FIELDS = new Set([
  'tool_calls',
  'function_call',
  'refusal',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'images',
  'audio',
  'annotations',
]);

/** Lists for which the inner language has no null. */
const LISTS = new Set(['tool_calls', 'reasoning_details', 'images', 'annotations']);

function isForeign(field: string, role: unknown, value: unknown): boolean {
  return (
    field === 'ext' ||
    (value === null && LISTS.has(field)) ||
    (role !== 'assistant' && ASSISTANT_FIELDS.has(field)) ||
    (role !== 'tool' && field === 'tool_call_id')
  );
}

/** The message without fields of other roles, and without null lists; the same object if it has none. */
function ownFields(input: Record<string, unknown>): Record<string, unknown> {
  const { role } = input;
  for (const field in input) {
    if (!isForeign(field, role, input[field])) continue;
    return Object.fromEntries(Object.entries(input).filter(([name, value]) => !isForeign(name, role, value)));
  }
  return input;
}

/** Ids of legacy calls by the names of their functions. */
interface LegacyCalls {
  ids: Map<string, string> | undefined;
}

/** Translates a message. A legacy `function_call` becomes a tool call; a `function` message refers to the last call of its function. */
function message(input: Record<string, unknown>, index: number, legacy: LegacyCalls): Message {
  const clean = ownFields(input);
  const content = clean['content'];
  let made = clean as unknown as Message;
  if (Array.isArray(content)) {
    const parts = content as Record<string, unknown>[];
    const refusal = parts.filter((item) => item['type'] === 'refusal');
    const thinking = parts.filter((item) => item['type'] === 'thinking');
    const isKept = ({ type }: Record<string, unknown>) => type !== 'refusal' && type !== 'thinking';
    const kept = parts.flatMap((item, nth) => (isKept(item) ? part(item, `messages[${index}].content[${nth}]`) : []));
    made = { ...made, content: kept };
    if (refusal.length > 0) made.refusal = refusal.map((item) => String(item['refusal'])).join('');
    if (thinking.length > 0 && made.reasoning == null && made.reasoning_details == null) {
      made.reasoning = thoughts(thinking);
    }
  } else if (content === null && made.role !== 'assistant') {
    made = { ...made, content: '' };
  }
  if (made.tool_calls)
    made = { ...made, tool_calls: (made.tool_calls as unknown as RequestedToolCall[]).map(toolCall) };
  if (clean['reasoning_content'] !== undefined && made.reasoning === undefined) {
    const { reasoning_content, ...rest } = made as Message & { reasoning_content?: string | null };
    made = { ...rest, reasoning: reasoning_content ?? null };
  }
  if (made.reasoning_details?.some(isToolRecord)) {
    made = { ...made, reasoning_details: made.reasoning_details.filter((detail) => !isToolRecord(detail)) };
  }
  const call = clean['function_call'] as { name: string; arguments: string } | null | undefined;
  if (call !== undefined) {
    const { function_call: _, ...rest } = made as Message & { function_call?: unknown };
    made = rest;
    if (call !== null) {
      const id = legacyCallId(index);
      legacy.ids ??= new Map();
      legacy.ids.set(call.name, id);
      made.tool_calls = [{ id, type: 'function', function: { name: call.name, arguments: call.arguments } }];
    }
  }
  if ((clean['role'] as string) === 'function') {
    const name = String(clean['name']);
    const id = legacy.ids?.get(name);
    if (id === undefined) {
      throw new GatewayError(400, `messages[${index}].name must be the name of a function that was called before`);
    }
    return { role: 'tool', content: made.content ?? '', tool_call_id: id, name };
  }
  return made;
}

type RequestedToolCall = Static<typeof RequestedCall>;

/** Translates a tool call: a function call with arguments as text. Fields that only this wire knows become its remainder. */
function toolCall(call: RequestedToolCall): ToolCall {
  const { id } = call;
  if ('custom' in call && call.type === 'custom') {
    const { name, input } = call.custom;
    const called = { name, arguments: JSON.stringify({ input }) };
    return { id, type: 'function', function: called, ext: { wire: CHAT_WIRE, rest: { type: 'custom' } } };
  }
  const { function: fn, extra_content } = call as Extract<RequestedToolCall, { function: unknown }> &
    Record<string, unknown>;
  const { arguments: text } = fn;
  const called = typeof text === 'string' ? fn : { ...fn, arguments: text === null ? '' : JSON.stringify(text) };
  const made = { id, type: 'function', function: called } as ToolCall;
  // Google's compatible endpoint puts the signature of a thought here, and requires it back.
  if (extra_content != null) made.ext = { wire: CHAT_WIRE, rest: { extra_content: extra_content as JsonValue } };
  return made;
}

function legacyChoice(input: ChatBody['function_call']): ToolChoice | undefined {
  if (input === undefined || input === null) return undefined;
  return typeof input === 'string' ? input : { type: 'function', function: { name: input.name } };
}

/** Sets the type of a tool, or of a tool choice, to `function` if it has none. */
function typed<T extends object>(input: T): T & { type: string } {
  return 'type' in input && input.type !== undefined ? (input as T & { type: string }) : { ...input, type: 'function' };
}

function toolChoice(input: NonNullable<ChatBody['tool_choice']>): ToolChoice {
  if (input === 'any') return 'required';
  return typeof input === 'string' ? input : (typed(input) as ToolChoice);
}

/** `reasoning_effort` and `reasoning.effort` must not contradict each other: a 400, not a guess. */
function checkReasoning(reasoning: NonNullable<ChatBody['reasoning']>, effort: ChatBody['reasoning_effort']): void {
  if (reasoning.effort && typeof reasoning.max_tokens === 'number') {
    throw new GatewayError(400, 'reasoning may have effort or max_tokens, not both');
  }
  if (reasoning.effort && effort && reasoning.effort !== effort) {
    throw invalidField('reasoning_effort', 'must equal reasoning.effort if both are set');
  }
}

/** Refuses features whose results a text choice cannot contain. */
function checkPromptForm({ tools, functions, modalities }: ChatBody): void {
  const named = tools?.length ? 'tools' : functions?.length ? 'functions' : undefined;
  if (named !== undefined) {
    throw new GatewayError(400, `${named}: a prompt is answered with text alone; send messages to use tools`);
  }
  if (modalities?.some((one) => one !== 'text')) {
    throw new GatewayError(400, 'modalities: a prompt is answered with text alone; send messages for others');
  }
}

/** Whether a request uses `functions`, the form before `tools`. */
export function usesFunctions({ functions, tools }: Pick<ChatBody, 'functions' | 'tools'>): boolean {
  return functions != null && tools == null;
}

/** Refuses features that process one answer while it arrives if several answers are requested. */
function refuseWithSeveral({ tools, plugins }: ChatRequest): void {
  const tool = tools?.find(({ type }) => type.startsWith('gateway:'));
  const plugin = plugins?.find(({ id, enabled }) => id === 'response-healing' && enabled !== false);
  const named = tool?.type ?? plugin?.id;
  if (named !== undefined) throw invalidField('n', `must be 1 with ${named}: send one request per answer`);
}

/**
 * Translates a public request into the inner language: legacy forms are rewritten, meaningless nulls and extensions are removed. Throws a
 * `GatewayError` 400 that names the field.
 */
export function chatRequest(body: ChatBody): ChatRequest {
  if (body.messages == null && body.prompt == null) {
    throw new GatewayError(400, 'Input required: specify "prompt" or "messages"');
  }
  if (body.messages != null && body.prompt != null) {
    throw new GatewayError(400, 'prompt and messages exclude each other: specify one of them');
  }
  if (body.prompt != null) checkPromptForm(body);
  if (body.reasoning) checkReasoning(body.reasoning, body.reasoning_effort);
  // Filled rather than copied and emptied: deleting fields makes an object slow to read.
  const request: Record<string, unknown> = {};
  for (const field in body) {
    const value = body[field as keyof ChatBody];
    if (value !== null && !CONSUMED.has(field)) request[field] = value;
  }
  const legacy: LegacyCalls = { ids: undefined };
  const sent = (body.messages ?? [{ role: 'user', content: body.prompt ?? '' }]) as Record<string, unknown>[];
  request['messages'] = sent.map((item, index) => message(item, index, legacy));
  if (usesFunctions(body)) {
    request['tools'] = (body.functions ?? []).map(
      (definition) => ({ type: 'function', function: definition }) as FunctionTool,
    );
    const choice = legacyChoice(body.function_call);
    if (choice !== undefined && request['tool_choice'] === undefined) request['tool_choice'] = choice;
    // The form allows one call per message.
    request['parallel_tool_calls'] ??= false;
  } else if (body.tools) {
    request['tools'] = body.tools.map((tool) => typed(withoutExtension(tool)));
  }
  if (body.tool_choice) request['tool_choice'] = toolChoice(body.tool_choice);
  request['ext'] = {
    wire: CHAT_WIRE,
    client: body.prompt == null ? chatClient : completionsClient,
    rest: {},
  };
  const plain = request as unknown as ChatRequest;
  const made = body.tools == null && body.plugins == null ? plain : withServerTools(plain);
  if (body.n != null && body.n > 1) {
    refuseWithSeveral(made);
    made.n = body.n;
  }
  return made;
}
