import { contentsOf } from '../../schemas/contents.ts';
import type { InnerPart, Message, ReasoningDetail, ToolCall } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { ANY_VENDOR_FORMAT, OPENAI_FORMAT } from '../openai-responses/wire.ts';
import type { Quirks } from '../quirks.ts';
import { isForeign } from '../shared/foreign-message.ts';
import { fitCallId, fitToolName } from '../shared/tool-ids.ts';
import { addReport, type Encoding } from './encoding.ts';
import { pairToolMessages } from './pairing.ts';
import { encodePart } from './parts.ts';
import { isObject, textOf } from './wire.ts';

/** Members of a message that this wire does not accept, or that are written in another form. */
const REMOVED_MEMBERS = new Set([
  'ext',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'annotations',
  'images',
  'function_call',
  // The model of an answer, which clients of the public service send back.
  'model',
]);

const MEDIA: ReadonlySet<string> = new Set(['image_url', 'file', 'input_audio', 'video_url']);

/** Every tool call id in the conversation, once. */
export function callIds(messages: readonly Message[]): string[] {
  const ids = new Set<string>();
  for (const { tool_calls: toolCalls } of messages) for (const call of toolCalls ?? []) ids.add(call.id);
  return [...ids];
}

/** The messages for this upstream. Messages that need no change are the client's own objects. */
export function encodeMessages(encoding: Encoding): JsonObject[] {
  const { request, quirks } = encoding;
  const paired = contentsOf(request).has_calls
    ? pairToolMessages(request.messages, (field, reason) => addReport(encoding, 'changed', field, reason))
    : request.messages;
  // Repairs move messages; reports name the position in the client's list.
  const positions =
    paired === request.messages ? undefined : new Map(request.messages.map((message, i) => [message, i]));
  const out: JsonObject[] = [];
  /** Media of tool results, which this wire's tool messages cannot hold: they follow the run of results. */
  let media: JsonValue[] = [];
  for (let i = 0; i < paired.length; i += 1) {
    const message = paired[i]!;
    const position = positions === undefined ? i : (positions.get(message) ?? -1);
    const isText = typeof message.content === 'string' && message.role !== 'assistant';
    if (!isText && isForeign(message, 'openai-chat')) {
      addReport(encoding, 'dropped', `messages[${position}]`, 'it belongs to another API');
      continue;
    }
    if (media.length > 0 && message.role !== 'tool') {
      out.push({ role: 'user', content: media });
      media = [];
    }
    if (quirks.assistant_between && message.role === 'user' && out.at(-1)?.['role'] === 'tool') {
      // Mistral: "Unexpected role 'user' after role 'tool'".
      out.push({ role: 'assistant', content: 'OK.' });
    }
    out.push(encodeMessage(encoding, message, position, media));
  }
  if (media.length > 0) {
    if (quirks.assistant_between) out.push({ role: 'assistant', content: 'OK.' });
    out.push({ role: 'user', content: media });
  }
  const last = out.at(-1);
  if (quirks.prefill_prefix && last?.['role'] === 'assistant' && last['tool_calls'] === undefined) {
    out[out.length - 1] = { ...last, prefix: true };
  }
  return out;
}

/** A message as it is sent: the client's own object until something differs. */
class SentMessage {
  message: JsonObject;
  readonly #source: JsonObject;

  constructor(source: JsonObject) {
    this.message = source;
    this.#source = source;
  }

  set(name: string, value: JsonValue | undefined): void {
    if (this.message === this.#source) this.message = { ...this.#source };
    if (value === undefined) delete this.message[name];
    else this.message[name] = value;
  }
}

function encodeMessage(encoding: Encoding, message: Message, i: number, media: JsonValue[]): JsonObject {
  const source = message as unknown as JsonObject;
  const sent = new SentMessage(source);
  for (const name in source) {
    // Clients send answers back with all their zero values; strict servers refuse `null` for most members.
    if (REMOVED_MEMBERS.has(name) || (source[name] === null && name !== 'content')) sent.set(name, undefined);
    else if (name === 'cache_control' && !encoding.quirks.cache_control) sent.set(name, undefined);
  }
  const { system_role: systemRole } = encoding.quirks;
  const isInstruction = message.role === 'system' || message.role === 'developer';
  if (isInstruction && systemRole !== undefined && systemRole !== message.role) sent.set('role', systemRole);
  let content = Array.isArray(message.content)
    ? encodeParts(encoding, message, message.content, i, media)
    : (message.content as JsonValue | Message['content']);
  if (encoding.quirks.names_in_text && message.name && message.role !== 'tool') {
    content = named(content, message.name);
    sent.set('name', undefined);
  }
  // Only an assistant message may have no content.
  if (content == null && message.role !== 'assistant') content = '';
  if (content !== message.content) sent.set('content', content as JsonValue);
  if (message.tool_call_id !== undefined) {
    const id = sentCallId(message.tool_call_id, encoding.quirks);
    if (id !== message.tool_call_id) sent.set('tool_call_id', id);
  }
  if (message.role === 'assistant') encodeAssistant(encoding, message, i, sent);
  return sent.message;
}

/** Puts the speaker's name in front of the first text, or first if there is none. */
function named(content: JsonValue | Message['content'], name: string): JsonValue | Message['content'] {
  if (typeof content === 'string') return `${name}: ${content}`;
  if (!Array.isArray(content)) return content;
  const parts = content as JsonValue[];
  const at = parts.findIndex(isTextPart);
  const first = parts[at];
  if (!isTextPart(first)) return parts.length === 0 ? parts : [{ type: 'text', text: `${name}:` }, ...parts];
  return parts.with(at, { ...first, text: `${name}: ${first.text}` });
}

function encodeAssistant(encoding: Encoding, message: Message, i: number, sent: SentMessage): void {
  const { quirks } = encoding;
  const calls = message.tool_calls;
  if (calls != null) {
    const encoded = encodeCalls(encoding, calls, message.reasoning_details);
    if (encoded.length === 0) sent.set('tool_calls', undefined);
    else if (encoded !== calls) sent.set('tool_calls', encoded as JsonValue[]);
  }
  if (message.audio != null) {
    // https://platform.openai.com/docs/guides/audio: former audio is sent back by its id.
    sent.set('audio', message.audio.id === undefined ? undefined : { id: message.audio.id });
  }
  if (message.images?.length)
    addReport(encoding, 'dropped', `messages[${i}].images`, 'images of former answers are not sent back');
  if (message.ext?.natives?.length) {
    addReport(encoding, 'dropped', `messages[${i}].ext`, 'native objects of a former turn are not sent back');
  }
  replayReasoning(encoding, message, sent);
  const isEmpty = message.content == null && !calls?.length && !message.refusal && !message.audio?.id;
  // A turn of reasoning only leaves a message without content, which servers refuse.
  if (isEmpty && quirks.replay_reasoning !== 'thinking_part') sent.set('content', '');
}

/** Sends reasoning of a former turn back in the upstream's field, or leaves it out. */
function replayReasoning(encoding: Encoding, message: Message, sent: SentMessage): void {
  const details = reasoningOf(message);
  if (details === undefined) return;
  const { quirks, options } = encoding;
  const field = quirks.replay_reasoning;
  const isState = (detail: ReasoningDetail): boolean =>
    detail.type === 'reasoning.encrypted' || (detail.type === 'reasoning.text' && detail.signature != null);
  if (field === 'reasoning_details') {
    const kept = onceEach(options.strip_state ? details.filter((detail) => !isState(detail)) : details);
    // Details without a stated format are most often OpenAI's.
    const named = kept.map((one) => (one.format === ANY_VENDOR_FORMAT ? { ...one, format: OPENAI_FORMAT } : one));
    if (named.length > 0) sent.set('reasoning_details', named as unknown as JsonValue[]);
    return;
  }
  const plain = details.filter(
    (detail) => detail.type === 'reasoning.text' && (detail.format ?? 'unknown') === 'unknown',
  );
  const isDropped = field === undefined ? details.length > 0 : plain.length < details.length;
  if (isDropped && !quirks.google_signatures) {
    addReport(
      encoding,
      'dropped',
      'messages[].reasoning',
      'the upstream does not accept this reasoning of former turns',
    );
  }
  if (field === undefined || plain.length === 0) return;
  const text = plain.map((detail) => (detail.type === 'reasoning.text' ? (detail.text ?? '') : '')).join('\n\n');
  if (field === 'thinking_part') {
    if (text === '') return;
    const thinking: JsonValue = { type: 'thinking', thinking: [{ type: 'text', text }] };
    const content = typeof message.content === 'string' ? message.content : textOfParts(message.content);
    sent.set('content', content === '' ? [thinking] : [thinking, { type: 'text', text: content }]);
  } else {
    sent.set(field, text);
  }
}

/** The reasoning of a turn. `reasoning_details` take precedence, even if empty; else the string under either of its names. */
function reasoningOf(message: Message): ReasoningDetail[] | undefined {
  if (message.reasoning_details != null) return message.reasoning_details;
  const alias = (message as unknown as JsonObject)['reasoning_content'];
  const text = message.reasoning ?? (typeof alias === 'string' ? alias : undefined);
  return text === undefined ? undefined : [{ type: 'reasoning.text', text, format: 'unknown' }];
}

/** Drops repeated ids of encrypted details: upstreams refuse them with "Duplicate item found". */
function onceEach(details: readonly ReasoningDetail[]): ReasoningDetail[] {
  const ids = new Set<string>();
  return details.filter(({ type, id }) => {
    if (type !== 'reasoning.encrypted' || id == null) return true;
    const isFirst = !ids.has(id);
    ids.add(id);
    return isFirst;
  });
}

function encodeParts(
  encoding: Encoding,
  message: Message,
  content: InnerPart[],
  i: number,
  media: JsonValue[],
): JsonValue | Message['content'] {
  const parts: JsonValue[] = [];
  let isChanged = false;
  for (let j = 0; j < content.length; j += 1) {
    const field = `messages[${i}].content[${j}]`;
    // On this wire only user messages, and tool results, which follow as user messages, have parts other than text.
    const isRefused = message.role !== 'user' && message.role !== 'tool' && MEDIA.has(content[j]!.type);
    if (isRefused)
      addReport(encoding, 'dropped', field, `the API allows only text in messages of the role ${message.role}`);
    const encoded = isRefused ? undefined : encodePart(encoding, content[j]!, field);
    if (encoded !== (content[j] as unknown)) isChanged = true;
    if (encoded !== undefined) parts.push(encoded);
  }
  // An empty list, which servers refuse, means an empty text.
  if (parts.length === 0 && message.role !== 'assistant') return '';
  if (message.role === 'tool')
    return plainText(encoding, splitResult(encoding, message, i, { parts, isChanged }, media));
  if (message.role === 'system' || message.role === 'developer')
    return plainText(encoding, isChanged ? parts : content);
  if (message.role === 'assistant' && !encoding.quirks.cache_control) {
    // Compatible servers accept an assistant's text only as a string.
    if (parts.length > 0 && parts.every(isTextPart)) return parts.map((part) => textOf(part['text']) ?? '').join('');
    if (parts.length === 0) return message.tool_calls?.length ? null : '';
  }
  if (parts.length === 0) return '';
  return isChanged ? parts : content;
}

/** Joins texts into one string for servers that accept no list here. */
function plainText({ quirks }: Encoding, content: JsonValue | Message['content']): JsonValue | Message['content'] {
  if (!quirks.plain_text || quirks.cache_control || !Array.isArray(content)) return content;
  const parts = content as JsonValue[];
  return parts.every(isTextPart) ? parts.map(({ text }) => text).join('\n') : content;
}

function splitResult(
  encoding: Encoding,
  message: Message,
  i: number,
  { parts, isChanged }: { parts: JsonValue[]; isChanged: boolean },
  media: JsonValue[],
): JsonValue | Message['content'] {
  const others = parts.filter((part) => !isTextPart(part));
  if (others.length === 0) return isChanged ? parts : message.content;
  const label = `Tool result of ${message.tool_call_id ?? 'the call'}:`;
  media.push({ type: 'text', text: label }, ...others);
  addReport(encoding, 'changed', `messages[${i}].content`, 'media of a tool result follow in a user message');
  const texts = parts.filter(isTextPart);
  return texts.length > 0 ? texts : 'The result follows in the next user message.';
}

function isTextPart(part: JsonValue | undefined): part is JsonObject & { text: string } {
  return isObject(part) && part['type'] === 'text';
}

function textOfParts(content: InnerPart[] | null | undefined): string {
  return (content ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** The list itself if no call needs a change. */
function encodeCalls(encoding: Encoding, calls: ToolCall[], details: ReasoningDetail[] | undefined): unknown[] {
  const encoded = calls.map((call) => encodeCall(encoding, call, details));
  return encoded.some((call, i) => call !== calls[i]) ? encoded : calls;
}

function encodeCall(encoding: Encoding, call: ToolCall, details: ReasoningDetail[] | undefined): unknown {
  const { quirks, options } = encoding;
  const id = sentCallId(call.id, quirks);
  const name = encoding.renamed?.get(call.function.name) ?? fitToolName(call.function.name);
  const signature =
    quirks.google_signatures && !options.strip_state
      ? details?.find((detail) => detail.type === 'reasoning.encrypted' && detail.id === call.id)
      : undefined;
  // Servers that render calls with a template parse the arguments, and fail on an empty text.
  const text = call.function.arguments === '' ? '{}' : call.function.arguments;
  const source = call as unknown as JsonObject;
  const isSame =
    id === call.id &&
    name === call.function.name &&
    text === call.function.arguments &&
    signature === undefined &&
    source['ext'] === undefined &&
    source['index'] === undefined;
  if (isSame) return call;
  const remainder = call.ext?.wire === 'openai-chat' ? call.ext.rest : undefined;
  if (remainder?.['type'] === 'custom') {
    return { id, type: 'custom', custom: { name, input: customInput(call.function.arguments) } };
  }
  const { ext: _ext, index: _index, ...kept } = source;
  const sent: JsonObject = { ...kept, id, function: { ...call.function, name, arguments: text } };
  if (remainder?.['extra_content'] !== undefined) sent['extra_content'] = remainder['extra_content'];
  if (signature?.type === 'reasoning.encrypted') {
    sent['extra_content'] = { google: { thought_signature: signature.data } };
  }
  return sent;
}

const MISTRAL_ID = /^[A-Za-z0-9]{9}$/;
// Models on Bedrock use longer ids with colons; OpenAI allows 64 characters.
const ANY_ID = /^.{1,64}$/s;

function sentCallId(id: string, quirks: Quirks): string {
  return quirks.tool_call_id === 'mistral9' ? fitCallId(id, MISTRAL_ID, 9) : fitCallId(id, ANY_ID, 29);
}

/** The text of a custom tool's call, which the inner language stores as `{"input": …}`. */
function customInput(text: string): string {
  try {
    const input: unknown = JSON.parse(text);
    return isObject(input) && typeof input['input'] === 'string' ? input['input'] : text;
  } catch {
    return text;
  }
}
