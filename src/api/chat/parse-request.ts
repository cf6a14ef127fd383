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

/** Fields that stand for nothing upstream: they are ours, or another spelling of what the request says anyway. */
const CONSUMED = new Set(['prompt', 'functions', 'function_call', 'stream_options', 'n', 'ext']);

/** A client cannot send what only decoders may make. */
function withoutExtension<T extends object>(value: T): T {
  if (!('ext' in value)) return value;
  const { ext: _, ...rest } = value as T & { ext: unknown };
  return rest as T;
}

function part(given: Record<string, unknown>, field: string): InnerPart {
  let made = withoutExtension(given);
  if (made['type'] === 'input_video') made = { ...made, type: 'video_url' };
  else if (made['type'] === 'document_url') made = document(made);
  else if (typeof made['image_url'] === 'string') made = { ...made, image_url: { url: made['image_url'] } };
  // OpenAI's word for a cache breakpoint: `cache_control` is the one that every wire reads.
  if (made['prompt_cache_breakpoint'] != null && made['cache_control'] == null) {
    made = { ...made, cache_control: { type: 'ephemeral' } };
  }
  const { file } = made as { file?: { file_data?: unknown; file_id?: unknown } };
  if (made['type'] === 'file' && !file?.file_data && !file?.file_id) {
    throw invalidField(`${field}.file.file_data`, 'is required, or file_id');
  }
  return made as unknown as InnerPart;
}

/** Mistral's file by URL: a file for every wire, and as it came for upstreams of this one. */
function document(given: Record<string, unknown>): Record<string, unknown> {
  const { document_url: file_data, document_name: filename } = given;
  const file = { file_data, ...(filename == null ? {} : { filename }) };
  return { type: 'file', file, ext: { wire: CHAT_WIRE, rest: given } };
}

/** The text of Mistral's thinking parts, in which its clients send an answer's reasoning back. */
function thoughts(parts: readonly Record<string, unknown>[]): string {
  return parts
    .map(({ thinking }) =>
      Array.isArray(thinking) ? thinking.map((piece: { text?: string | null }) => piece.text ?? '').join('') : thinking,
    )
    .join('');
}

/** Changes what must be changed and shares the rest: most messages pass as they are. */
function mapChanged<T extends object, U>(items: readonly T[], change: (item: T, index: number) => U): U[] {
  return items.map(change);
}

/** What the public service notes of a tool that it ran itself: no model reads it. */
function isToolRecord({ type }: { type: string }): boolean {
  return type === 'reasoning.server_tool_call';
}

function legacyCallId(index: number): string {
  return `call_legacy_${index}`;
}

/** Fields that only an assistant's message has: elsewhere nothing has checked them. */
const OF_ASSISTANTS = new Set([
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

/** Lists of the inner language, where null stands for none. */
const LISTS = new Set(['tool_calls', 'reasoning_details', 'images', 'annotations']);

function isForeign(field: string, role: unknown, value: unknown): boolean {
  return (
    field === 'ext' ||
    (value === null && LISTS.has(field)) ||
    (role !== 'assistant' && OF_ASSISTANTS.has(field)) ||
    (role !== 'tool' && field === 'tool_call_id')
  );
}

/** The message without what its role does not have, and without lists that are null; the given one where it has nothing else. */
function ownFields(given: Record<string, unknown>): Record<string, unknown> {
  const { role } = given;
  for (const field in given) {
    if (!isForeign(field, role, given[field])) continue;
    return Object.fromEntries(Object.entries(given).filter(([name, value]) => !isForeign(name, role, value)));
  }
  return given;
}

/** Ids of legacy calls by the names of their functions; made when there is one. */
interface LegacyCalls {
  ids: Map<string, string> | undefined;
}

/** An assistant's legacy `function_call` is one tool call; its answer, a `function` message, refers to the last such call. */
function message(given: Record<string, unknown>, index: number, legacy: LegacyCalls): Message {
  const clean = ownFields(given);
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
  if (made.tool_calls) made = { ...made, tool_calls: (made.tool_calls as unknown as GivenCall[]).map(toolCall) };
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

type GivenCall = Static<typeof RequestedCall>;

/** A call as the inner language has it: a function's, with arguments as text. What only this wire knows is its remainder. */
function toolCall(given: GivenCall): ToolCall {
  const { id } = given;
  if ('custom' in given && given.type === 'custom') {
    const { name, input } = given.custom;
    const called = { name, arguments: JSON.stringify({ input }) };
    return { id, type: 'function', function: called, ext: { wire: CHAT_WIRE, rest: { type: 'custom' } } };
  }
  const { function: told, extra_content } = given as Extract<GivenCall, { function: unknown }> &
    Record<string, unknown>;
  const { arguments: text } = told;
  const called = typeof text === 'string' ? told : { ...told, arguments: text === null ? '' : JSON.stringify(text) };
  const made = { id, type: 'function', function: called } as ToolCall;
  // Google's compatible endpoint tells the signature of a thought here, and wants it back.
  if (extra_content != null) made.ext = { wire: CHAT_WIRE, rest: { extra_content: extra_content as JsonValue } };
  return made;
}

function legacyChoice(given: ChatBody['function_call']): ToolChoice | undefined {
  if (given === undefined || given === null) return undefined;
  return typeof given === 'string' ? given : { type: 'function', function: { name: given.name } };
}

/** A tool, or the choice of one, that tells no type is a function. */
function typed<T extends object>(given: T): T & { type: string } {
  return 'type' in given && given.type !== undefined ? (given as T & { type: string }) : { ...given, type: 'function' };
}

function toolChoice(given: NonNullable<ChatBody['tool_choice']>): ToolChoice {
  if (given === 'any') return 'required';
  return typeof given === 'string' ? given : (typed(given) as ToolChoice);
}

/** `reasoning` says the same wherever it stands: two different wishes are an error, not a guess. */
function checkReasoning(body: ChatBody): void {
  const { reasoning, reasoning_effort } = body;
  if (reasoning?.effort && typeof reasoning.max_tokens === 'number') {
    throw new GatewayError(400, 'reasoning may have effort or max_tokens, not both');
  }
  if (reasoning?.effort && reasoning_effort && reasoning.effort !== reasoning_effort) {
    throw invalidField('reasoning_effort', 'must equal reasoning.effort when both are given');
  }
}

/** A choice of this form has text and nothing else: what it could not show is not asked for. */
function checkPromptForm({ tools, functions, modalities }: ChatBody): void {
  const named = tools?.length ? 'tools' : functions?.length ? 'functions' : undefined;
  if (named !== undefined) {
    throw new GatewayError(400, `${named}: a prompt is answered with text alone; send messages to use tools`);
  }
  if (modalities?.some((one) => one !== 'text')) {
    throw new GatewayError(400, 'modalities: a prompt is answered with text alone; send messages for others');
  }
}

/** Whether a request is in the form of before tools. */
export function usesFunctions({ functions, tools }: Pick<ChatBody, 'functions' | 'tools'>): boolean {
  return functions != null && tools == null;
}

/** What works on one answer as it comes cannot be asked for with several of them. */
function refuseWithSeveral({ tools, plugins }: ChatRequest): void {
  const tool = tools?.find(({ type }) => type.startsWith('gateway:'));
  const plugin = plugins?.find(({ id, enabled }) => id === 'response-healing' && enabled !== false);
  const named = tool?.type ?? plugin?.id;
  if (named !== undefined) throw invalidField('n', `must be 1 with ${named}: send one request per answer`);
}

/**
 * The public request in the one inner language: legacy forms rewritten, nulls that mean nothing taken out, extension
 * points emptied. Throws `GatewayError` 400 that names the field.
 */
export function chatRequest(body: ChatBody): ChatRequest {
  if (body.messages == null && body.prompt == null) {
    throw new GatewayError(400, 'Input required: specify "prompt" or "messages"');
  }
  if (body.messages != null && body.prompt != null) {
    throw new GatewayError(400, 'prompt and messages exclude each other: specify one of them');
  }
  if (body.prompt != null) checkPromptForm(body);
  checkReasoning(body);
  // Filled, not emptied: an object that lost a field is slow to read ever after.
  const request: Record<string, unknown> = {};
  for (const field in body) {
    const value = body[field as keyof ChatBody];
    if (value !== null && !CONSUMED.has(field)) request[field] = value;
  }
  const legacy: LegacyCalls = { ids: undefined };
  const given = (body.messages ?? [{ role: 'user', content: body.prompt ?? '' }]) as Record<string, unknown>[];
  request['messages'] = mapChanged(given, (item, index) => message(item, index, legacy));
  if (usesFunctions(body)) {
    request['tools'] = (body.functions ?? []).map(
      (definition) => ({ type: 'function', function: definition }) as FunctionTool,
    );
    const choice = legacyChoice(body.function_call);
    if (choice !== undefined && request['tool_choice'] === undefined) request['tool_choice'] = choice;
    // The form has one call to a message.
    request['parallel_tool_calls'] ??= false;
  } else if (body.tools) {
    request['tools'] = mapChanged(body.tools, (tool) => typed(withoutExtension(tool)));
  }
  if (body.tool_choice) request['tool_choice'] = toolChoice(body.tool_choice);
  request['ext'] = {
    wire: CHAT_WIRE,
    client: body.prompt == null ? chatClient : completionsClient,
    rest: {},
  };
  const made = withServerTools(request as unknown as ChatRequest);
  if (body.n != null && body.n > 1) {
    refuseWithSeveral(made);
    made.n = body.n;
  }
  return made;
}
