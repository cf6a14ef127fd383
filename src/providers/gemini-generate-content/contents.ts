import { append } from '../../schemas/append.ts';
import type { InnerPart, Message, ToolCall } from '../../schemas/inner.ts';
import { parseArguments } from '../shared/arguments.ts';
import { nameCalls, type Pairs, pairResults } from '../shared/tool-results.ts';
import { encodeAssistant, encodePart } from './assistant.ts';
import type { Encoding } from './encoding.ts';
import { restOf, WIRE, type WireContent, type WireFunctionResponse, type WirePart } from './wire.ts';

/** The conversation on this wire, and facts for the rest of the encoding. */
export interface Conversation {
  system: WirePart[];
  contents: WireContent[];
  /** Ids of all calls on the wire. */
  call_ids: string[];
}

/**
 * Encodes any list of messages in the shape that the wire accepts: a separate system prompt, alternating user and model turns that
 * start with a user, the results of a turn's calls together and directly after it, in the order of the calls.
 */
export function encodeConversation(messages: readonly Message[], encoding: Encoding): Conversation {
  const start = messages.findIndex((message) => !isSystem(message));
  const leading = encoding.facts.has_system ? messages.slice(0, start === -1 ? messages.length : start) : [];
  const current = currentFrom(messages);
  const pairs = pairResults(messages);
  const turns = createTurns();
  const callIds: string[] = [];
  const wireIds = nameCalls(messages, (id) => id, callIds);
  let unanswered: ToolCall[] = [];

  const addResults = () => {
    const results = unanswered.map((call) => encodeResult(call, wireIds.get(call)!, pairs.results.get(call), encoding));
    unanswered = [];
    for (const { response } of results) turns.add('user', [response]);
    for (const { media } of results) turns.add('user', media);
  };

  for (let i = leading.length; i < messages.length; i += 1) {
    const message = messages[i]!;
    const field = `messages[${i}]`;
    if (message.role === 'assistant') {
      turns.add('model', encodeAssistant(message, { field, is_current: i > current }, encoding, wireIds));
      append(unanswered, message.tool_calls ?? []);
      continue;
    }
    addResults();
    if (message.role === 'tool') {
      if (pairs.orphans.has(message)) turns.add('user', encodeOrphan(message, field, pairs, encoding));
      continue;
    }
    const parts = encodeContent(message, field, encoding);
    // The last turn must be the user's, and a turn needs a part.
    const isLast = i === messages.length - 1;
    turns.add('user', parts.length === 0 && isLast ? [{ text: '(empty)' }] : parts);
  }
  addResults();
  const system = leading.flatMap((message, i) => encodeSystem(message, `messages[${i}]`, encoding));
  return { system, contents: turns.finish(), call_ids: callIds };
}

function isSystem(message: Message): boolean {
  return message.role === 'system' || message.role === 'developer';
}

/**
 * The start of the current turn: the last content of the user without results. User text directly after results is in one content
 * with them, and does not end the turn.
 */
function currentFrom(messages: readonly Message[]): number {
  let followsResults = false;
  let isAfterAssistant = false;
  let start = -1;
  for (const [i, message] of messages.entries()) {
    const { role, tool_calls: toolCalls } = message;
    if (isOmitted(message)) continue;
    if (role === 'user' && !followsResults) start = i;
    if (role === 'tool') followsResults = true;
    // Unanswered calls get results as well, also if more messages of the model follow.
    if (role === 'assistant') followsResults = (isAfterAssistant && followsResults) || Boolean(toolCalls?.length);
    isAfterAssistant = role === 'assistant';
  }
  return start;
}

/** Whether nothing of a message is sent: it is empty, or made of blocks of other wires. */
function isOmitted({ role, content, tool_calls: toolCalls, refusal, images, ext }: Message): boolean {
  if (role === 'tool' || toolCalls?.length || refusal || images?.length || ext?.wire === WIRE) return false;
  if (!Array.isArray(content)) return !content;
  return content.every((part) =>
    part.type === 'native' ? part.wire !== WIRE : part.type === 'text' && part.text === '',
  );
}

/** Collects parts into turns: neighbours of one role are merged. */
function createTurns() {
  const turns: WireContent[] = [];
  return {
    add(role: WireContent['role'], parts: readonly WirePart[]): void {
      if (parts.length === 0) return;
      const last = turns.at(-1);
      if (last?.role === role) append(last.parts, parts);
      else turns.push({ role, parts: [...parts] });
    },
    finish(): WireContent[] {
      if (turns[0]?.role === 'user') return turns;
      return [{ role: 'user', parts: [{ text: '(continue)' }] }, ...turns];
    },
  };
}

/** Media types that results may contain (https://ai.google.dev/gemini-api/docs/function-calling#multimodal). */
const IN_RESULTS = new Set(['image/png', 'image/jpeg', 'image/webp', 'application/pdf', 'text/plain']);

/** The result of a call, and its media that follow the results of the turn. */
function encodeResult(
  call: ToolCall,
  id: string,
  result: { message: Message; field: string } | undefined,
  encoding: Encoding,
): { response: WirePart; media: WirePart[] } {
  const name = encoding.names.toWire(call.function.name);
  if (result === undefined) {
    encoding.addReport(
      'changed',
      'messages',
      `the call of ${call.function.name} had no result: an empty one was added`,
    );
    return { response: { functionResponse: { id, name, response: { error: '(no result)' } } }, media: [] };
  }
  const { message, field } = result;
  const { text, media } = splitResult(message, field, encoding);
  const isError = message.ext?.rest['is_error'] === true;
  const functionResponse: WireFunctionResponse = { id, name, response: isError ? { error: text } : responseOf(text) };
  const inside = media.filter((part) => isForResult(part, encoding));
  if (inside.length > 0) functionResponse.parts = inside.map(({ inlineData }) => ({ inlineData: inlineData! }));
  return {
    response: { functionResponse: { ...restOf(message.ext), ...functionResponse } },
    media: media.filter((part) => !inside.includes(part)),
  };
}

function isForResult({ inlineData }: WirePart, { facts }: Encoding): boolean {
  return facts.has_media_results && inlineData !== undefined && IN_RESULTS.has(inlineData.mimeType);
}

function splitResult(message: Message, field: string, encoding: Encoding): { text: string; media: WirePart[] } {
  if (!Array.isArray(message.content)) return { text: message.content ?? '', media: [] };
  const encoded = encodeParts(message.content, field, encoding);
  const isText = (part: WirePart) => part.text !== undefined;
  return { text: encoded.map(({ text = '' }) => text).join(''), media: encoded.filter((part) => !isText(part)) };
}

/** The result as an object, which the wire requires; an object that the tool returned is used as is. */
function responseOf(text: string): WireFunctionResponse['response'] {
  if (!text.trimStart().startsWith('{')) return { output: text };
  const { input, isObject } = parseArguments(text);
  return isObject ? input : { output: text };
}

/** A result without its call, which the wire would refuse, as text of the user. */
function encodeOrphan(message: Message, field: string, { names }: Pairs, encoding: Encoding): WirePart[] {
  encoding.addReport('changed', field, 'a tool result without its call: sent as text');
  const id = message.tool_call_id ?? '';
  const label = `Tool result (${names.get(id) ?? message.name ?? id}): `;
  const { text, media } = splitResult(message, field, encoding);
  return [{ text: (label + text).trimEnd() }, ...media];
}

/** The parts of a user or system message, with the speaker's name in front of the first text. */
function encodeContent(message: Message, field: string, encoding: Encoding): WirePart[] {
  const content = message.content ?? '';
  const parts = encodeParts(typeof content === 'string' ? [{ type: 'text', text: content }] : content, field, encoding);
  if (!message.name) return parts;
  const at = parts.findIndex(({ text }) => text !== undefined);
  const named = parts[at];
  if (named !== undefined) parts[at] = { ...named, text: `${message.name}: ${named.text}` };
  else if (message.role === 'user' && parts.length > 0) parts.unshift({ text: `${message.name}:` });
  return parts;
}

function encodeParts(parts: readonly InnerPart[], field: string, encoding: Encoding): WirePart[] {
  return parts.flatMap((part, i) => encodePart(part, `${field}.content[${i}]`, encoding));
}

function encodeSystem(message: Message, field: string, encoding: Encoding): WirePart[] {
  return encodeContent(message, field, encoding).filter(({ text }) => {
    if (text === undefined) encoding.addReport('dropped', field, 'a system prompt cannot hold media');
    return text !== undefined;
  });
}
