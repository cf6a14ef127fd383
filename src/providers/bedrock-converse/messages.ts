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

/** The conversation on this wire, and facts for the rest of the encoding. */
export interface Conversation {
  system: WireBlock[];
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
  const turns: WireMessage[] = [];
  const callIds: string[] = [];
  const called = new Set<string>();
  const wireIds = nameCalls(messages, (id) => wireCallId(id, encoding.family), callIds);
  let unanswered: ToolCall[] = [];

  const add = (role: WireMessage['role'], blocks: readonly WireBlock[]) => {
    if (blocks.length === 0) return;
    const last = turns.at(-1);
    if (last?.role === role) append(last.content, blocks);
    else turns.push({ role, content: [...blocks] });
  };
  const addResults = () => {
    const results = unanswered.map((call) => encodeResult(call, wireIds.get(call)!, pairs.results.get(call), encoding));
    for (const { blocks } of results) add('user', blocks);
    for (const { beside } of results) add('user', beside);
    unanswered = [];
  };

  for (let i = leading.length; i < messages.length; i += 1) {
    const message = messages[i]!;
    const field = `messages[${i}]`;
    if (message.role === 'assistant') {
      addResults();
      add('assistant', encodeAssistant(message, field, encoding, wireIds));
      for (const call of message.tool_calls ?? []) {
        unanswered.push(call);
        called.add(call.function.name);
      }
      continue;
    }
    addResults();
    if (message.role === 'tool') {
      if (pairs.orphans.has(message)) add('user', encodeOrphan(message, field, pairs.names, encoding));
      continue;
    }
    const blocks = encodeContent(message, field, encoding);
    // The last turn must be the user's, and a turn needs a block.
    const isLast = i === messages.length - 1;
    add('user', blocks.length === 0 && isLast ? [{ text: '(empty)' }] : blocks);
  }
  addResults();
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', content: [{ text: '(continue)' }] });
  const system = leading.flatMap((message, i) => encodeSystem(message, `messages[${i}]`, encoding));
  for (const turn of turns) turn.content = placeCachePoints(withText(turn), encoding);
  return { system: placeCachePoints(system, encoding), messages: turns, call_ids: callIds, called };
}

/**
 * Checks a trailing assistant message, which is a prefill: its trailing white space is removed, which the service refuses. Throws
 * `GatewayError` 400 if the model accepts none.
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

/** Whether the conversation is inside a tool loop whose assistant turn has lost its thinking. */
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
 * Accepted ids of calls: the wire's own rule, Claude's narrower one, and Mistral's, whose models accept nine letters and digits, or ids
 * that the service itself issued (recorded). Other ids are hashed, the same for call and result.
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

/** Adds a text to a message with a document, which the wire requires. */
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
 * The result of a call; if it has none, one that says so. Its content may be neither an empty list nor a blank text. Nova refuses
 * documents and videos in results (recorded): they follow all results of the turn.
 */
function encodeResult(
  call: ToolCall,
  toolUseId: string,
  result: { message: Message; field: string } | undefined,
  encoding: Encoding,
): { blocks: WireBlock[]; beside: WireBlock[] } {
  const { name } = call.function;
  if (result === undefined) {
    encoding.addReport('changed', 'messages', `the call of ${name} had no result: an empty one was added`);
    return { blocks: [{ toolResult: { toolUseId, content: [{ text: '(no result)' }], status: 'error' } }], beside: [] };
  }
  const { message, field } = result;
  const blocks = encodeParts(message, field, encoding);
  const media = isNova(encoding.family) ? blocks.filter(isLargeMedia) : [];
  const content = blocks.filter((block) => !isCachePoint(block) && !media.includes(block));
  if (media.length > 0) {
    encoding.addReport('changed', field, 'the model accepts documents and videos only after a result');
    if (content.length === 0) content.push({ text: `See what comes with ${toolUseId}.` });
  }
  const isError = message.ext?.rest['is_error'] === true;
  const fields = { toolUseId, content: content.length === 0 ? [{ text: '(empty)' }] : content };
  const block = { toolResult: { ...(isError ? { status: 'error' } : {}), ...restOf(message.ext), ...fields } };
  // Results contain no cache points: a point for a part follows the result.
  const points = [...blocks.filter(isCachePoint), ...cachePoint(message.cache_control, 'messages', encoding)];
  return {
    blocks: [block, ...points.slice(-1)],
    beside: media.length === 0 ? [] : [{ text: `This comes with ${toolUseId}, the result of ${name}:` }, ...media],
  };
}

/** A result without its call, which the wire would refuse, as text of the user. */
function encodeOrphan(message: Message, field: string, names: Pairs['names'], encoding: Encoding): WireBlock[] {
  encoding.addReport('changed', field, 'a tool result without its call: sent as text');
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

/** A system prompt: text, cache points and blocks that only this wire has. */
function encodeSystem(message: Message, field: string, encoding: Encoding): WireBlock[] {
  return encodeContent(message, field, encoding).filter((block) => {
    if (isText(block) || isCachePoint(block) || block['guardContent'] !== undefined) return true;
    encoding.addReport('dropped', field, `a system prompt cannot hold ${Object.keys(block)[0]}`);
    return false;
  });
}

/** Adds a cache point at the end of the last user turn, for a hint on the whole request. */
export function hintLast(messages: readonly WireMessage[], point: readonly WireBlock[], encoding: Encoding): void {
  const last = messages.at(-1);
  if (last !== undefined && point.length > 0) last.content = placeCachePoints([...last.content, ...point], encoding);
}
