import { append } from '../../schemas/append.ts';
import type { InnerPart, Message, ToolCall } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { isForeign } from '../shared/foreign-message.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import { detailsOf, orderOf } from '../shared/slot-order.ts';
import { nameCalls, type Pairs, pairResults } from '../shared/tool-results.ts';
import type { Encoding } from './encoding.ts';
import { encodeResultPart, encodeUserPart } from './parts.ts';
import {
  restOf,
  type WireAssistantMessage,
  type WireMessage,
  type WireText,
  type WireThinking,
  type WireToolMessage,
  type WireUserMessage,
  type WireUserPart,
} from './wire.ts';

/** The conversation on this wire, and the ids of all its calls. */
export interface Conversation {
  messages: WireMessage[];
  call_ids: string[];
}

/** Encodes message by message: the wire accepts any order of roles, but each call must be answered directly after it. */
export function encodeConversation(messages: readonly Message[], encoding: Encoding): Conversation {
  const pairs = pairResults(messages);
  const callIds: string[] = [];
  const wireIds = nameCalls(messages, (id) => id, callIds);
  const out: WireMessage[] = [];
  for (const [i, message] of messages.entries()) {
    const field = `messages[${i}]`;
    if (message.role === 'tool') {
      if (pairs.orphans.has(message)) out.push(encodeOrphan(message, field, pairs, encoding));
    } else if (message.role === 'assistant') {
      const encoded = encodeAssistant(message, field, encoding, wireIds);
      if (encoded !== undefined) out.push(encoded);
      append(out, encodeResults(message.tool_calls ?? [], pairs, wireIds, encoding));
    } else {
      append(out, encodePrompt(message, field, encoding));
    }
  }
  return { messages: out, call_ids: callIds };
}

/** Empty for instructions without content. */
function encodePrompt(message: Message, field: string, encoding: Encoding): WireMessage[] {
  if (isForeign(message, 'cohere-chat')) {
    encoding.addReport('dropped', field, 'it belongs to another API');
    return [];
  }
  const content = contentOf(message, field, encoding);
  // "message must not be empty in a turn" (https://docs.cohere.com/reference/errors).
  if (message.role === 'user') return [{ role: 'user', content: content.length === 0 ? '(empty)' : content }];
  if (typeof content === 'string') return content === '' ? [] : [{ role: 'system', content }];
  const texts = content.filter((part) => part.type === 'text');
  if (texts.length < content.length) encoding.addReport('dropped', field, 'a system prompt can hold text only');
  return texts.length === 0 ? [] : [{ role: 'system', content: texts }];
}

/** The content of a user or system message, with the speaker's name in front of the first text. */
function contentOf({ role, content, name }: Message, field: string, encoding: Encoding): string | WireUserPart[] {
  const label = name ? `${name}: ` : '';
  if (!Array.isArray(content)) return `${label}${content ?? ''}`;
  const parts = content.flatMap((part, i) => encodeUserPart(part, `${field}.content[${i}]`, encoding) ?? []);
  const first = parts.findIndex((part) => part.type === 'text');
  if (name && first === -1 && role === 'user' && parts.length > 0)
    return [{ type: 'text', text: `${name}:` }, ...parts];
  return parts.map((part, i) => (i === first && part.type === 'text' ? { ...part, text: label + part.text } : part));
}

/** Undefined for an empty turn, which the wire refuses. */
function encodeAssistant(
  message: Message,
  field: string,
  encoding: Encoding,
  callIds: ReadonlyMap<ToolCall, string>,
): WireAssistantMessage | undefined {
  const calls = message.tool_calls ?? [];
  const parts = assistantParts(message, field, encoding);
  const texts = parts.filter((part) => part.type === 'text');
  const encoded: WireAssistantMessage = { role: 'assistant' };
  if (calls.length === 0) {
    const isPlain = texts.length === parts.length;
    if (parts.length > 0) encoded.content = isPlain ? texts.map(({ text }) => text).join('') : parts;
  } else {
    // "text content is not allowed when tool_calls are provided. If you wish to pass a tool plan, either pass thinking
    // content (with thinking enabled) or use 'tool_plan'" (https://github.com/vercel/ai/issues/5794).
    const thoughts = parts.filter((part) => part.type === 'thinking');
    if (thoughts.length > 0) encoded.content = thoughts;
    if (texts.length > 0) encoded.tool_plan = texts.map(({ text }) => text).join('');
    encoded.tool_calls = calls.map((call) => ({
      id: callIds.get(call) ?? call.id,
      type: 'function',
      function: { name: encoding.toolName(call.function.name), arguments: call.function.arguments || '{}' },
    }));
  }
  const citations = citationsOf(message);
  if (citations.length > 0) encoded.citations = citations;
  return parts.length === 0 && calls.length === 0 ? undefined : encoded;
}

function assistantParts(message: Message, field: string, encoding: Encoding): (WireText | WireThinking)[] {
  const details = detailsOf(message);
  const content = message.content ?? null;
  const contentParts: readonly InnerPart[] =
    typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
  const counts = {
    reasoning: details.length,
    text: contentParts.length,
    call: 0,
    native: message.ext?.natives?.length ?? 0,
  };
  return orderOf(message, counts).flatMap(({ kind, at }): WireText | WireThinking | [] => {
    if (kind === 'reasoning') {
      const detail = details[at]!;
      // Thinking on this wire has no signature and no format, like that of open models.
      const isOpen = detail.type === 'reasoning.text' && (detail.format ?? 'unknown') === 'unknown';
      if (encoding.takesThinking && isOpen) return detail.text ? { type: 'thinking', thinking: detail.text } : [];
      encoding.addReport(
        'dropped',
        `${field}.reasoning`,
        'the upstream does not accept this reasoning of former turns',
      );
      return [];
    }
    const part = kind === 'text' ? contentParts[at]! : undefined;
    if (part?.type === 'text') return part.text === '' ? [] : { type: 'text', text: part.text };
    if (kind === 'refusal') return { type: 'text', text: message.refusal ?? '' };
    encoding.addReport(
      'dropped',
      `${field}.${part === undefined ? kind : `content[${at}]`}`,
      'assistant messages can hold text only',
    );
    return [];
  });
}

/** The citations that the wire itself attached to a former answer. */
function citationsOf(message: Message): JsonObject[] {
  return (message.ext?.order ?? [])
    .flatMap(({ ext }) => asArray(restOf(ext)['citations']))
    .map(asObject)
    .filter((citation) => citation !== undefined);
}

/** The results of one turn in the order of its calls; their images follow in a user message. */
function encodeResults(
  calls: readonly ToolCall[],
  pairs: Pairs,
  callIds: ReadonlyMap<ToolCall, string>,
  encoding: Encoding,
): WireMessage[] {
  const media: WireUserPart[] = [];
  const results = calls.map((call): WireToolMessage => {
    const toolCallId = callIds.get(call) ?? call.id;
    const result = pairs.results.get(call);
    if (result === undefined) {
      encoding.addReport(
        'changed',
        'messages',
        `the call of ${call.function.name} had no result: an empty one was added`,
      );
      return { role: 'tool', tool_call_id: toolCallId, content: '(no result)' };
    }
    return { role: 'tool', tool_call_id: toolCallId, content: resultContent(result, toolCallId, media, encoding) };
  });
  const following: WireUserMessage[] = media.length === 0 ? [] : [{ role: 'user', content: media }];
  return [...results, ...following];
}

function resultContent(
  { message, field }: { message: Message; field: string },
  toolCallId: string,
  media: WireUserPart[],
  encoding: Encoding,
): WireToolMessage['content'] {
  if (!Array.isArray(message.content)) return message.content || '(empty)';
  const content: Exclude<WireToolMessage['content'], string> = [];
  const images: WireUserPart[] = [];
  for (const [i, part] of message.content.entries()) {
    const encoded = encodeResultPart(part, `${field}.content[${i}]`, encoding);
    if (encoded?.type === 'image_url') images.push(encoded);
    else if (encoded !== undefined) content.push(encoded);
  }
  if (images.length > 0) {
    media.push({ type: 'text', text: `Tool result of ${toolCallId}:` }, ...images);
    encoding.addReport('changed', `${field}.content`, 'media of a tool result follow in a user message');
  }
  if (content.length > 0) return content;
  return images.length > 0 ? 'The result follows in the next user message.' : '(empty)';
}

/** A result without its call, which the wire would refuse, as text of the user. */
function encodeOrphan(message: Message, field: string, { names }: Pairs, encoding: Encoding): WireUserMessage {
  encoding.addReport('changed', field, 'a tool result without its call is sent as text');
  const id = message.tool_call_id ?? '';
  const content = contentOf({ role: 'user', content: message.content ?? '' }, field, encoding);
  const label = `Tool result (${names.get(id) ?? message.name ?? (id || 'unknown')}):`;
  if (typeof content === 'string') return { role: 'user', content: `${label} ${content}` };
  return { role: 'user', content: [{ type: 'text', text: label }, ...content] };
}
