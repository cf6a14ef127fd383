import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';
import type { InnerPart, Message, ToolCall } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asText } from '../shared/json-shape.ts';
import { fitCallId } from '../shared/tool-ids.ts';
import { nameCalls, pairResults } from '../shared/tool-results.ts';
import { encodeAssistant } from './assistant.ts';
import { type Encoding, encodePart } from './parts.ts';
import { restOf, type WireItem } from './wire.ts';

/** The conversation as items, and facts for the rest of the encoding. */
export interface Input {
  items: WireItem[];
  /** Set if a client of this API sent instructions separately. */
  instructions: string | undefined;
  /** Ids of all calls on the wire. */
  call_ids: string[];
}

/** Longer ids are refused: "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64". */
const CALL_ID = new RegExp(`^[\\s\\S]{1,${limits.tool_call_id_chars_max}}$`);
const MAPPED_ID_CHARS = 32;

const INPUT_CONTENT: ReadonlySet<string> = new Set(['input_text', 'input_image', 'input_file', 'input_audio']);

/**
 * The conversation on this wire: each call is answered directly after its turn. Results of a client of this API (`isOwn`) stay where they
 * are, answered or not: an error of the upstream is more useful to it than a silent change.
 */
export function encodeInput(messages: readonly Message[], encoding: Encoding, isOwn: boolean): Input {
  const pairs = pairResults(messages);
  const callIds: string[] = [];
  const wireIds = isOwn ? ownIds(messages, callIds) : nameCalls(messages, fitId, callIds);
  const items: WireItem[] = [];
  let instructions: string | undefined;

  messages.forEach((message, i) => {
    const field = `messages[${i}]`;
    if (message.role === 'assistant') {
      append(items, encodeAssistant(message, field, encoding, wireIds));
      if (isOwn) return;
      for (const call of message.tool_calls ?? []) {
        items.push(encodeResult(call, wireIds.get(call)!, pairs.results.get(call), encoding));
      }
    } else if (message.role === 'tool') {
      if (isOwn) items.push(encodeOutput(message, field, ownHead(message), encoding));
      else if (pairs.orphans.has(message)) items.push(encodeOrphan(message, field, pairs.names, encoding));
    } else if (restOf(message.ext)['via'] === 'instructions' && typeof message.content === 'string') {
      instructions = message.content;
    } else {
      append(items, encodeMessage(message, field, encoding));
    }
  });
  return { items, instructions, call_ids: callIds };
}

function fitId(id: string): string {
  return fitCallId(id, CALL_ID, MAPPED_ID_CHARS);
}

/** Ids as a client of this API sent them, except those that are too long for it. */
function ownIds(messages: readonly Message[], callIds: string[]): Map<ToolCall, string> {
  const calls = messages.flatMap(({ tool_calls: toolCalls }) => toolCalls ?? []);
  const ids = new Map(calls.map((call) => [call, fitId(asText(restOf(call.ext)['call_id']) || call.id)]));
  append(callIds, ids.values());
  return ids;
}

function outputType(call: ToolCall): string {
  return restOf(call.ext)['type'] === 'custom_tool_call' ? 'custom_tool_call_output' : 'function_call_output';
}

function encodeResult(
  call: ToolCall,
  callId: string,
  result: { message: Message; field: string } | undefined,
  encoding: Encoding,
): WireItem {
  const head = { type: outputType(call), call_id: callId };
  if (result !== undefined) return encodeOutput(result.message, result.field, head, encoding);
  encoding.addReport('changed', 'messages', `the call of ${call.function.name} had no result: an empty one was added`);
  return { ...head, output: '(no result)' };
}

/** The type and call id that a client of this API stated for its result, which may be of no call. */
function ownHead({ tool_call_id: toolCallId, ext }: Message): WireItem {
  const type = asText(restOf(ext)['type']) || 'function_call_output';
  return { type, ...(toolCallId ? { call_id: fitId(toolCallId) } : {}) };
}

function encodeOutput({ content, ext }: Message, field: string, head: WireItem, encoding: Encoding): WireItem {
  const output = Array.isArray(content)
    ? encodeParts(content, field, encoding).filter(({ type }) => INPUT_CONTENT.has(type))
    : (content ?? '');
  return { ...restOf(ext), ...head, output };
}

/** A result without its call, which the wire would refuse, as text of the user. */
function encodeOrphan(
  message: Message,
  field: string,
  names: ReadonlyMap<string, string>,
  encoding: Encoding,
): WireItem {
  encoding.addReport('changed', field, 'a tool result without its call: sent as text');
  const id = message.tool_call_id ?? '';
  const label = `Tool result (${names.get(id) ?? message.name ?? id}):`;
  const { content } = message;
  if (!Array.isArray(content)) return { type: 'message', role: 'user', content: `${label} ${content ?? ''}` };
  return {
    type: 'message',
    role: 'user',
    content: [{ type: 'input_text', text: label }, ...encodeParts(content, field, encoding)],
  };
}

/** A user or system message; parts that are items of their own (`mcp_approval_response`) follow it. */
function encodeMessage(message: Message, field: string, encoding: Encoding): WireItem[] {
  const { via: _via, ...rest } = restOf(message.ext);
  const isInstruction = message.role === 'system' || message.role === 'developer';
  const role = isInstruction ? (encoding.quirks.system_role ?? message.role) : message.role;
  const content = message.content ?? '';
  const prefix = message.name ? `${message.name}: ` : '';
  if (typeof content === 'string' && message.cache_control == null) {
    return [{ ...rest, type: 'message', role, content: prefix + content }];
  }
  const parts: InnerPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : [...content];
  const last = parts.at(-1);
  if (message.cache_control != null && last !== undefined && last.type !== 'native') {
    parts[parts.length - 1] = { cache_control: message.cache_control, ...last };
  }
  const encoded = encodeParts(parts, field, encoding);
  const inside: JsonObject[] = encoded.filter(({ type }) => INPUT_CONTENT.has(type));
  const outside = encoded.filter(({ type }) => !INPUT_CONTENT.has(type));
  const at = inside.findIndex(({ type }) => type === 'input_text');
  if (prefix !== '' && at !== -1) inside[at] = { ...inside[at], text: prefix + asText(inside[at]!['text']) };
  else if (prefix !== '' && role === 'user' && inside.length > 0) {
    inside.unshift({ type: 'input_text', text: prefix.trimEnd() });
  }
  // A message without other content is left out.
  if (inside.length === 0 && outside.length > 0) return outside;
  return [{ ...rest, type: 'message', role, content: inside }, ...outside];
}

function encodeParts(parts: readonly InnerPart[], field: string, encoding: Encoding): WireItem[] {
  return parts.flatMap((part, i) => encodePart(part, `${field}.content[${i}]`, encoding) ?? []);
}
