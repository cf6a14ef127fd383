import { GatewayError } from '../../errors.ts';
import { append } from '../../schemas/append.ts';
import type { InnerPart, Message, ToolCall } from '../../schemas/inner.ts';
import { nameCalls, pairResults } from '../shared/tool-results.ts';
import { wireCallId } from './names.ts';
import { cacheHint, type Encoding, encodeAssistant, encodePart, hintLast } from './to-wire.ts';
import { restOf, type WireBlock, type WireMessage, type WireText, type WireToolResult } from './wire.ts';

/** The conversation on this wire, and facts for the rest of the encoding. */
export interface Conversation {
  system: WireText[];
  messages: WireMessage[];
  /** Ids of all calls on the wire. */
  call_ids: string[];
  /** Names of all called tools in the client's notation. */
  called: Set<string>;
}

/**
 * Encodes any list of messages in the shape that the wire accepts: a separate system prompt, alternating user and assistant turns that
 * start with a user, each call answered directly after its turn, results before everything else of that turn.
 */
export function encodeConversation(messages: readonly Message[], encoding: Encoding): Conversation {
  const start = messages.findIndex((message) => !isSystem(message));
  const leading = messages.slice(0, start === -1 ? messages.length : start);
  const pairs = pairResults(messages);
  const turns = createTurns();
  const callIds: string[] = [];
  const called = new Set<string>();
  const wireIds = nameCalls(messages, wireCallId, callIds);
  let unanswered: ToolCall[] = [];

  const addResults = () => {
    for (const call of unanswered) {
      const result = pairs.results.get(call);
      turns.add('user', [encodeResult(call, wireIds.get(call)!, result, encoding)]);
    }
    unanswered = [];
  };

  for (let i = leading.length; i < messages.length; i += 1) {
    const message = messages[i]!;
    const field = `messages[${i}]`;
    if (message.role === 'assistant') {
      turns.add('assistant', encodeAssistant(message, field, encoding, wireIds));
      for (const call of message.tool_calls ?? []) {
        unanswered.push(call);
        called.add(call.function.name);
      }
      continue;
    }
    addResults();
    if (message.role === 'tool') {
      if (!pairs.orphans.has(message)) continue;
      turns.add('user', encodeOrphan(message, field, pairs.names, encoding));
    } else if (isSystem(message)) {
      const blocks = encodeContent(message, field, encoding);
      const staysSystem = encoding.quirks.mid_system === true && turns.lastRole() === 'user' && closesTurn(messages, i);
      turns.add(staysSystem ? 'system' : 'user', withoutMedia(blocks, staysSystem, field, encoding));
    } else {
      const blocks = encodeContent(message, field, encoding);
      // The last turn must be the user's, and a turn needs a block.
      const isLast = i === messages.length - 1;
      turns.add('user', blocks.length === 0 && isLast ? [{ type: 'text', text: '(empty)' }] : blocks);
    }
  }
  addResults();
  const system = leading.flatMap((message, i) => encodeSystem(message, `messages[${i}]`, encoding));
  return { system, messages: turns.finish(), call_ids: callIds, called };
}

/**
 * Checks a trailing assistant message, which is a prefill: its trailing white space is removed, which the wire refuses. Throws
 * `GatewayError` 400 if the model accepts none. A turn that a server tool paused is no prefill: sending it back continues it.
 */
export function checkPrefill(
  messages: WireMessage[],
  { isThinking, refused }: { isThinking: boolean; refused: boolean },
) {
  const last = messages.at(-1);
  if (last?.role !== 'assistant' || last.content.some(isServerBlock)) return;
  if (refused)
    throw new GatewayError(400, 'This model does not accept an assistant message at the end of the conversation.');
  if (isThinking) throw new GatewayError(400, 'A trailing assistant message cannot be combined with reasoning.');
  const text = last.content.at(-1);
  if (text?.type !== 'text' || typeof text['text'] !== 'string') return;
  last.content[last.content.length - 1] = { ...text, text: text['text'].trimEnd() };
}

/** Whether the conversation is inside a tool loop whose assistant turn has lost its thinking. */
export function lacksThinking(messages: readonly { role: string; content: readonly WireBlock[] }[]): boolean {
  const last = messages.at(-1);
  const turn = messages.findLast((message) => message.role === 'assistant');
  return (
    last?.role === 'user' &&
    last.content.some((block) => block.type === 'tool_result') &&
    turn?.content.some((block) => block.type === 'tool_use') === true &&
    !turn.content.some((block) => block.type === 'thinking' || block.type === 'redacted_thinking')
  );
}

const OWN_BLOCKS: ReadonlySet<string> = new Set(['text', 'thinking', 'redacted_thinking', 'tool_use']);

function isServerBlock(block: WireBlock): boolean {
  return !OWN_BLOCKS.has(block.type);
}

function isSystem(message: Message): boolean {
  return message.role === 'system' || message.role === 'developer';
}

/** Whether a system message ends the user's turn: only then it may be inside the conversation. */
function closesTurn(messages: readonly Message[], index: number): boolean {
  const next = messages.slice(index + 1).find((message) => !isSystem(message));
  return next === undefined || next.role === 'assistant';
}

/** Collects blocks into turns: neighbours of one role are merged. */
function createTurns() {
  const turns: WireMessage[] = [];
  return {
    lastRole: () => turns.at(-1)?.role,
    add(role: WireMessage['role'], blocks: readonly WireBlock[]): void {
      if (blocks.length === 0) return;
      const last = turns.at(-1);
      if (last?.role === role) append(last.content, blocks);
      else turns.push({ role, content: [...blocks] });
    },
    finish(): WireMessage[] {
      if (turns[0]?.role === 'user') return turns;
      return [{ role: 'user', content: [{ type: 'text', text: '(continue)' }] }, ...turns];
    },
  };
}

function encodeResult(
  call: ToolCall,
  toolUseId: string,
  result: { message: Message; field: string } | undefined,
  encoding: Encoding,
): WireBlock {
  if (result === undefined) {
    encoding.addReport(
      'changed',
      'messages',
      `the call of ${call.function.name} had no result: an empty one was added`,
    );
    const synthetic: WireToolResult = {
      type: 'tool_result',
      tool_use_id: toolUseId,
      content: '(no result)',
      is_error: true,
    };
    return synthetic;
  }
  const { message, field } = result;
  const encoded: WireToolResult = { type: 'tool_result', tool_use_id: toolUseId };
  if (typeof message.content === 'string') {
    if (message.content !== '') encoded.content = message.content;
  } else {
    const blocks = encodeParts(message.content ?? [], field, encoding);
    if (blocks.length > 0) encoded.content = blocks;
  }
  return { ...restOf(message.ext), ...encoded, ...cacheHint(message.cache_control) };
}

/** A result without its call, which the wire would refuse, as text of the user. */
function encodeOrphan(
  message: Message,
  field: string,
  names: ReadonlyMap<string, string>,
  encoding: Encoding,
): WireBlock[] {
  encoding.addReport('changed', field, 'a tool result without its call: sent as text');
  const id = message.tool_call_id ?? '';
  const name = names.get(id) ?? message.name ?? id;
  const blocks = encodeContent({ ...message, name: undefined } as Message, field, encoding);
  const first = blocks[0];
  const label = `Tool result (${name}): `;
  if (first?.type !== 'text') return [{ type: 'text', text: label.trimEnd() }, ...blocks];
  return [{ ...first, text: label + first['text'] }, ...blocks.slice(1)];
}

/** The blocks of a user or system message, with the speaker's name in front of the first text. */
function encodeContent(message: Message, field: string, encoding: Encoding): WireBlock[] {
  const content = message.content ?? '';
  const parts: readonly InnerPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const blocks = hintLast(encodeParts(parts, field, encoding), message);
  if (!message.name) return blocks;
  const at = blocks.findIndex((block) => block.type === 'text');
  const named = blocks[at];
  if (named !== undefined) blocks[at] = { ...named, text: `${message.name}: ${named['text']}` };
  else if (message.role === 'user' && blocks.length > 0) blocks.unshift({ type: 'text', text: `${message.name}:` });
  return blocks;
}

function encodeParts(parts: readonly InnerPart[], field: string, encoding: Encoding): WireBlock[] {
  return parts.flatMap((part, i) => encodePart(part, `${field}.content[${i}]`, encoding) ?? []);
}

function encodeSystem(message: Message, field: string, encoding: Encoding): WireText[] {
  return encodeContent(message, field, encoding).flatMap((block) => {
    if (block.type === 'text') return block as WireText;
    encoding.addReport('dropped', field, `a system prompt cannot hold ${block.type}`);
    return [];
  });
}

/** The text of a later system message and, if it stays one, blocks that only this wire has, such as a tool's addition. */
function withoutMedia(
  blocks: readonly WireBlock[],
  staysSystem: boolean,
  field: string,
  encoding: Encoding,
): WireBlock[] {
  return blocks.filter(({ type }) => {
    if (type === 'text' || (staysSystem && type !== 'image' && type !== 'document')) return true;
    encoding.addReport('dropped', field, `this model accepts no ${type} inside the conversation`);
    return false;
  });
}
