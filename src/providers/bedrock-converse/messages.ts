import { GatewayError } from '../../errors.ts';
import { append } from '../../schemas/append.ts';
import type { InnerPart, Message, ToolCall } from '../../schemas/inner.ts';
import { fitCallId } from '../shared/tool-ids.ts';
import { nameCalls, type Pairs, pairResults } from '../shared/tool-results.ts';
import { encodeAssistant, encodeNative, textBlock } from './assistant.ts';
import { cachePoint, isCachePoint, isLargeMedia, placeCachePoints } from './caching.ts';
import type { Encoding } from './encoding.ts';
import { type Family, isNova } from './family.ts';
import { encodeAudio, encodeFile, encodeImage, encodeVideo } from './media.ts';
import { restOf, type WireBlock, type WireMessage } from './wire.ts';

/** The conversation in this wire's shape, and what the rest of the encoding must know of it. */
export interface Conversation {
  system: WireBlock[];
  messages: WireMessage[];
  /** Ids of all calls, as they stand on the wire. */
  call_ids: string[];
  /** Names of all called tools, as the client gave them. */
  called: Set<string>;
}

/**
 * Brings any list of messages into the shape that the wire accepts: system apart, user and assistant by turns, a user
 * first, each call answered directly after its turn, results before everything else of that turn.
 */
export function encodeConversation(messages: readonly Message[], encoding: Encoding): Conversation {
  const start = messages.findIndex((message) => !isSystem(message));
  const leading = messages.slice(0, start === -1 ? messages.length : start);
  const pairs = pairResults(messages);
  const turns: WireMessage[] = [];
  const call_ids: string[] = [];
  const called = new Set<string>();
  const callIds = nameCalls(messages, (id) => wireCallId(id, encoding.family), call_ids);
  let unanswered: ToolCall[] = [];

  const add = (role: WireMessage['role'], blocks: readonly WireBlock[]) => {
    if (blocks.length === 0) return;
    const last = turns.at(-1);
    if (last?.role === role) append(last.content, blocks);
    else turns.push({ role, content: [...blocks] });
  };
  const answer = () => {
    const answers = unanswered.map((call) => encodeResult(call, callIds.get(call)!, pairs.results.get(call), encoding));
    for (const { blocks } of answers) add('user', blocks);
    for (const { beside } of answers) add('user', beside);
    unanswered = [];
  };

  for (let i = leading.length; i < messages.length; i += 1) {
    const message = messages[i]!;
    const field = `messages[${i}]`;
    if (message.role === 'assistant') {
      answer();
      add('assistant', encodeAssistant(message, field, encoding, callIds));
      for (const call of message.tool_calls ?? []) {
        unanswered.push(call);
        called.add(call.function.name);
      }
      continue;
    }
    answer();
    if (message.role === 'tool') {
      if (pairs.orphans.has(message)) add('user', encodeOrphan(message, field, pairs.names, encoding));
      continue;
    }
    const blocks = encodeContent(message, field, encoding);
    // The last word must be the user's, and a turn needs a block.
    const isLast = i === messages.length - 1;
    add('user', blocks.length === 0 && isLast ? [{ text: '(empty)' }] : blocks);
  }
  answer();
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', content: [{ text: '(continue)' }] });
  const system = leading.flatMap((message, i) => encodeSystem(message, `messages[${i}]`, encoding));
  for (const turn of turns) turn.content = placeCachePoints(withText(turn), encoding);
  return { system: placeCachePoints(system, encoding), messages: turns, call_ids, called };
}

/**
 * A trailing assistant message is a prefill: it loses its trailing white space, which the service refuses, and is refused
 * where the model takes none.
 */
export function checkPrefill(
  messages: readonly WireMessage[],
  { isThinking, refused }: { isThinking: boolean; refused: boolean },
): void {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return;
  if (refused)
    throw new GatewayError(400, 'This model does not accept an assistant message at the end of the conversation.');
  if (isThinking) throw new GatewayError(400, 'A trailing assistant message cannot be combined with reasoning.');
  const at = last.content.findLastIndex((block) => !isCachePoint(block));
  const text = last.content[at]?.['text'];
  if (typeof text === 'string') last.content[at] = { text: text.trimEnd() };
}

/** Whether the conversation stands inside a tool loop whose assistant turn has lost its thinking. */
export function lacksThinking(messages: readonly WireMessage[]): boolean {
  const last = messages.at(-1);
  const turn = messages.findLast((message) => message.role === 'assistant');
  return (
    last?.role === 'user' &&
    last.content.some((block) => block['toolResult'] !== undefined) &&
    turn?.content.some((block) => block['toolUse'] !== undefined) === true &&
    !turn.content.some((block) => block['reasoningContent'] !== undefined)
  );
}

/**
 * What ids of calls may be: the wire's own rule, Claude's narrower one, and Mistral's, whose models take nine letters and
 * digits, or what the service itself once gave out (recorded). What does not fit is hashed, the same for call and result.
 */
const CALL_IDS: Partial<Record<Family, { fits: RegExp; chars: number }>> = {
  claude: { fits: /^[A-Za-z0-9_-]{1,64}$/, chars: 32 },
  mistral: { fits: /^(?:tooluse_[A-Za-z0-9_-]{1,56}|[A-Za-z0-9]{9})$/, chars: 9 },
};
const ANY_CALL_ID = { fits: /^[A-Za-z0-9_.:-]{1,64}$/, chars: 32 };

function wireCallId(id: string, family: Family): string {
  const { fits, chars } = CALL_IDS[family] ?? ANY_CALL_ID;
  return fitCallId(id, fits, chars);
}

function isSystem(message: Message): boolean {
  return message.role === 'system' || message.role === 'developer';
}

/** A document must have a text beside it. */
function withText({ role, content }: WireMessage): WireBlock[] {
  const hasDocument = content.some((block) => block['document'] !== undefined);
  if (role === 'assistant' || !hasDocument || content.some((block) => block['text'] !== undefined)) return content;
  const at = content.findIndex((block) => block['toolResult'] === undefined && !isCachePoint(block));
  return content.toSpliced(at, 0, { text: '(document)' });
}

function encodePart(part: InnerPart, field: string, encoding: Encoding): WireBlock[] {
  if (part.type === 'native') return encodeNative(part, field, encoding);
  const blocks = part.type === 'text' ? textBlock(part.text) : [encodeMedia(part, field, encoding)];
  return blocks.length === 0 ? [] : [...blocks, ...cachePoint(part.cache_control, 'messages', encoding)];
}

function encodeMedia(
  part: Exclude<InnerPart, { type: 'native' | 'text' }>,
  field: string,
  encoding: Encoding,
): WireBlock {
  switch (part.type) {
    case 'image_url':
      return encodeImage(part, field, encoding);
    case 'file':
      return encodeFile(part, field, encoding);
    case 'video_url':
      return encodeVideo(part, field, encoding);
    case 'input_audio':
      return encodeAudio(part, field, encoding);
  }
}

/**
 * The result of a call; where there is none, one that says so. Its content may be no empty list and no blank text. Nova
 * refuses documents and films in it (recorded): they stand beside all results of the turn.
 */
function encodeResult(
  call: ToolCall,
  toolUseId: string,
  result: { message: Message; field: string } | undefined,
  encoding: Encoding,
): { blocks: WireBlock[]; beside: WireBlock[] } {
  const { name } = call.function;
  if (result === undefined) {
    encoding.report('changed', 'messages', `the call of ${name} had no result: an empty one was added`);
    return { blocks: [{ toolResult: { toolUseId, content: [{ text: '(no result)' }], status: 'error' } }], beside: [] };
  }
  const { message, field } = result;
  const blocks = encodeParts(message, field, encoding);
  const media = isNova(encoding.family) ? blocks.filter(isLargeMedia) : [];
  const content = blocks.filter((block) => !isCachePoint(block) && !media.includes(block));
  if (media.length > 0) {
    encoding.report('changed', field, 'the model takes documents and films beside a result only');
    if (content.length === 0) content.push({ text: `See what comes with ${toolUseId}.` });
  }
  const isError = message.ext?.rest['is_error'] === true;
  const told = { toolUseId, content: content.length === 0 ? [{ text: '(empty)' }] : content };
  const block = { toolResult: { ...(isError ? { status: 'error' } : {}), ...restOf(message.ext), ...told } };
  // Inside a result there are no cache points: one that a part asks for stands after it.
  const points = [...blocks.filter(isCachePoint), ...cachePoint(message.cache_control, 'messages', encoding)];
  return {
    blocks: [block, ...points.slice(-1)],
    beside: media.length === 0 ? [] : [{ text: `This comes with ${toolUseId}, the result of ${name}:` }, ...media],
  };
}

/** A result without its call would be refused: what it says is kept as the user's text. */
function encodeOrphan(message: Message, field: string, names: Pairs['names'], encoding: Encoding): WireBlock[] {
  encoding.report('changed', field, 'a tool result without its call: sent as text');
  const id = message.tool_call_id ?? '';
  const label = `Tool result (${names.get(id) ?? message.name ?? id}):`;
  return labelled(label, encodeParts(message, field, encoding));
}

/** The blocks of a user or system message, with the speaker's name in front of the first text. */
function encodeContent(message: Message, field: string, encoding: Encoding): WireBlock[] {
  const blocks = encodeParts(message, field, encoding);
  const points = blocks.length === 0 ? [] : cachePoint(message.cache_control, 'messages', encoding);
  const isNamed = blocks.some(isText) || (message.role === 'user' && blocks.length > 0);
  const named = message.name && isNamed ? labelled(`${message.name}:`, blocks) : blocks;
  return [...named, ...points];
}

function labelled(label: string, blocks: readonly WireBlock[]): WireBlock[] {
  const at = blocks.findIndex(isText);
  return at === -1 ? [{ text: label }, ...blocks] : blocks.with(at, { text: `${label} ${blocks[at]!['text']}` });
}

function isText(block: WireBlock): boolean {
  return typeof block['text'] === 'string';
}

function encodeParts({ content }: Message, field: string, encoding: Encoding): WireBlock[] {
  if (!Array.isArray(content)) return textBlock(content ?? '');
  return content.flatMap((part, i) => encodePart(part, `${field}.content[${i}]`, encoding));
}

/** A system prompt holds text, cache points and what only this wire knows. */
function encodeSystem(message: Message, field: string, encoding: Encoding): WireBlock[] {
  return encodeContent(message, field, encoding).filter((block) => {
    if (isText(block) || isCachePoint(block) || block['guardContent'] !== undefined) return true;
    encoding.report('dropped', field, `a system prompt cannot hold ${Object.keys(block)[0]}`);
    return false;
  });
}

/** The last user turn ends with a cache point: what a hint on the whole request asks for. */
export function hintLast(messages: readonly WireMessage[], point: readonly WireBlock[], encoding: Encoding): void {
  const last = messages.at(-1);
  if (last !== undefined && point.length > 0) last.content = placeCachePoints([...last.content, ...point], encoding);
}
