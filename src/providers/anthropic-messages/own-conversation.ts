import { append } from '../../schemas/append.ts';
import type { InnerPart, Message, ToolCall } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { wireCallId } from './names.ts';
import { cacheHint, type Encoding, encodeAssistant, encodePart } from './to-wire.ts';
import { restOf, type WireBlock } from './wire.ts';

/** A turn as its client wrote it: text stays a string. */
export type OwnMessage = JsonObject & { role: 'user' | 'assistant' | 'system'; content: string | WireBlock[] };

export interface OwnConversation {
  system: string | WireBlock[];
  messages: OwnMessage[];
  /** Ids of all calls on the wire. */
  call_ids: string[];
}

/**
 * The conversation of a client of this wire: nothing is repaired, completed or removed. The upstream refuses what it would refuse without
 * a gateway.
 */
export function encodeOwnConversation(messages: readonly Message[], encoding: Encoding): OwnConversation {
  const conversation: OwnConversation = { system: [], messages: [], call_ids: [] };
  for (const [i, message] of messages.entries()) {
    const field = `messages[${i}]`;
    const content = encodeContent(message, field, encoding);
    if (i === 0 && message.role === 'system' && restOf(message.ext)['role'] === undefined) {
      conversation.system = content;
      continue;
    }
    if (message.role === 'assistant') {
      for (const call of message.tool_calls ?? []) conversation.call_ids.push(wireCallId(call.id));
      const blocks = encodeTurn(message, field, encoding);
      // A turn with another vendor's reasoning only is left out.
      if (blocks.length > 0 || isEmpty(message)) conversation.messages.push({ role: 'assistant', content: blocks });
      continue;
    }
    // The results of a turn and the text after them are one turn on this wire.
    const lastContent = messages[i - 1]?.role === 'tool' ? conversation.messages.at(-1)?.content : undefined;
    const turn = Array.isArray(lastContent) ? lastContent : undefined;
    if (message.role === 'tool') {
      const result = encodeResult(message, content, encoding);
      if (turn !== undefined) turn.push(result);
      else conversation.messages.push({ role: 'user', content: [result] });
    } else if (message.role === 'system') {
      conversation.messages.push({ ...restOf(message.ext), role: 'system', content });
    } else if (turn !== undefined) {
      append(turn, typeof content === 'string' ? [{ type: 'text', text: content } as WireBlock] : content);
    } else {
      conversation.messages.push({ role: 'user', content });
    }
  }
  return conversation;
}

/** Whether the client wrote an empty turn. Thinking that was removed while the request was parsed leaves an empty list. */
function isEmpty({ content, tool_calls: toolCalls, reasoning_details: reasoningDetails, ext }: Message): boolean {
  const natives = ext?.natives?.length ?? 0;
  return !content?.length && !toolCalls?.length && reasoningDetails == null && natives === 0;
}

/** A turn that was written as a string stays a string. */
function encodeTurn(message: Message, field: string, encoding: Encoding): OwnMessage['content'] {
  const {
    content,
    tool_calls: toolCalls,
    reasoning_details: reasoningDetails,
    cache_control: cacheControl,
    ext,
  } = message;
  const isText = typeof content === 'string' && !toolCalls?.length && !reasoningDetails?.length;
  if (isText && ext === undefined && cacheControl == null) return content;
  const ids = new Map<ToolCall, string>((toolCalls ?? []).map((call) => [call, wireCallId(call.id)]));
  return encodeAssistant(message, field, encoding, ids);
}

function encodeContent({ content }: Message, field: string, encoding: Encoding): string | WireBlock[] {
  if (typeof content === 'string') return content;
  return ((content ?? []) as readonly InnerPart[]).flatMap(
    (part, i) => encodePart(part, `${field}.content[${i}]`, encoding) ?? [],
  );
}

function encodeResult(message: Message, content: string | WireBlock[], encoding: Encoding): WireBlock {
  const result: JsonObject & { type: string } = {
    type: 'tool_result',
    tool_use_id: wireCallId(message.tool_call_id ?? ''),
  };
  if (content.length > 0) result['content'] = content;
  return { ...restOf(message.ext), ...result, ...cacheHint(message.cache_control, encoding.own) };
}
