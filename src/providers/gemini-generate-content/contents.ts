import { append } from '../../schemas/append.ts';
import type { InnerPart, Message, ToolCall } from '../../schemas/inner.ts';
import { parseArguments } from '../shared/arguments.ts';
import { nameCalls, type Pairs, pairResults } from '../shared/tool-results.ts';
import { encodeAssistant, encodePart } from './assistant.ts';
import type { Encoding } from './encoding.ts';
import { restOf, WIRE, type WireContent, type WireFunctionResponse, type WirePart } from './wire.ts';

/** The conversation in this wire's shape, and what the rest of the encoding must know of it. */
export interface Conversation {
  system: WirePart[];
  contents: WireContent[];
  /** Ids of all calls, as they stand on the wire. */
  call_ids: string[];
}

/**
 * Brings any list of messages into the shape that the wire accepts: system apart, user and model by turns, a user first,
 * the results of a turn's calls together and directly after it, in the order of the calls.
 */
export function encodeConversation(messages: readonly Message[], encoding: Encoding): Conversation {
  const start = messages.findIndex((message) => !isSystem(message));
  const leading = encoding.facts.has_system ? messages.slice(0, start === -1 ? messages.length : start) : [];
  const current = currentFrom(messages);
  const pairs = pairResults(messages);
  const turns = createTurns();
  const call_ids: string[] = [];
  const callIds = nameCalls(messages, (id) => id, call_ids);
  let unanswered: ToolCall[] = [];

  const answer = () => {
    const results = unanswered.map((call) => encodeResult(call, callIds.get(call)!, pairs.results.get(call), encoding));
    unanswered = [];
    for (const { response } of results) turns.add('user', [response]);
    for (const { media } of results) turns.add('user', media);
  };

  for (let i = leading.length; i < messages.length; i += 1) {
    const message = messages[i]!;
    const field = `messages[${i}]`;
    if (message.role === 'assistant') {
      turns.add('model', encodeAssistant(message, { field, is_current: i > current }, encoding, callIds));
      append(unanswered, message.tool_calls ?? []);
      continue;
    }
    answer();
    if (message.role === 'tool') {
      if (pairs.orphans.has(message)) turns.add('user', encodeOrphan(message, field, pairs, encoding));
      continue;
    }
    const parts = encodeContent(message, field, encoding);
    // The last word must be the user's, and a turn needs a part.
    const isLast = i === messages.length - 1;
    turns.add('user', parts.length === 0 && isLast ? [{ text: '(empty)' }] : parts);
  }
  answer();
  const system = leading.flatMap((message, i) => encodeSystem(message, `messages[${i}]`, encoding));
  return { system, contents: turns.finish(), call_ids };
}

function isSystem(message: Message): boolean {
  return message.role === 'system' || message.role === 'developer';
}

/**
 * Where the turn begins that the model still works on: at the last content of the user's that holds no results. What the
 * user says right after results stands in one content with them, and does not end the turn.
 */
function currentFrom(messages: readonly Message[]): number {
  let follows = false;
  let isTold = false;
  let start = -1;
  for (const [i, message] of messages.entries()) {
    const { role, tool_calls: toolCalls } = message;
    if (isSilent(message)) continue;
    if (role === 'user' && !follows) start = i;
    if (role === 'tool') follows = true;
    // Calls that nobody answered get results as well, also where more messages of the model stand behind them.
    if (role === 'assistant') follows = (isTold && follows) || Boolean(toolCalls?.length);
    isTold = role === 'assistant';
  }
  return start;
}

/** Nothing of it is sent: it is empty, or made of what another wire knows. */
function isSilent({ role, content, tool_calls: toolCalls, refusal, images, ext }: Message): boolean {
  if (role === 'tool' || toolCalls?.length || refusal || images?.length || ext?.wire === WIRE) return false;
  if (!Array.isArray(content)) return !content;
  return content.every((part) =>
    part.type === 'native' ? part.wire !== WIRE : part.type === 'text' && part.text === '',
  );
}

/** Collects parts into turns: neighbours of one role become one content. */
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

/** What results may hold beside text (https://ai.google.dev/gemini-api/docs/function-calling#multimodal). */
const IN_RESULTS = new Set(['image/png', 'image/jpeg', 'image/webp', 'application/pdf', 'text/plain']);

/** The result of a call, and the media of it that follow the results of the turn. */
function encodeResult(
  call: ToolCall,
  id: string,
  result: { message: Message; field: string } | undefined,
  encoding: Encoding,
): { response: WirePart; media: WirePart[] } {
  const name = encoding.names.toWire(call.function.name);
  if (result === undefined) {
    encoding.report('changed', 'messages', `the call of ${call.function.name} had no result: an empty one was added`);
    return { response: { functionResponse: { id, name, response: { error: '(no result)' } } }, media: [] };
  }
  const { message, field } = result;
  const { text, media } = splitResult(message, field, encoding);
  const isError = message.ext?.rest['is_error'] === true;
  const told: WireFunctionResponse = { id, name, response: isError ? { error: text } : responseOf(text) };
  const inside = media.filter((part) => isForResult(part, encoding));
  if (inside.length > 0) told.parts = inside.map(({ inlineData }) => ({ inlineData: inlineData! }));
  return {
    response: { functionResponse: { ...restOf(message.ext), ...told } },
    media: media.filter((part) => !inside.includes(part)),
  };
}

function isForResult({ inlineData }: WirePart, { facts }: Encoding): boolean {
  return facts.has_media_results && inlineData !== undefined && IN_RESULTS.has(inlineData.mimeType);
}

function splitResult(message: Message, field: string, encoding: Encoding): { text: string; media: WirePart[] } {
  if (!Array.isArray(message.content)) return { text: message.content ?? '', media: [] };
  const told = encodeParts(message.content, field, encoding);
  const isText = (part: WirePart) => part.text !== undefined;
  return { text: told.map(({ text = '' }) => text).join(''), media: told.filter((part) => !isText(part)) };
}

/** The wire wants an object: one that the tool returned stands for itself. */
function responseOf(text: string): WireFunctionResponse['response'] {
  if (!text.trimStart().startsWith('{')) return { output: text };
  const { input, isObject } = parseArguments(text);
  return isObject ? input : { output: text };
}

/** A result without its call would be refused: what it says is kept as the user's text. */
function encodeOrphan(message: Message, field: string, { names }: Pairs, encoding: Encoding): WirePart[] {
  encoding.report('changed', field, 'a tool result without its call: sent as text');
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
    if (text === undefined) encoding.report('dropped', field, 'a system prompt cannot hold media');
    return text !== undefined;
  });
}
