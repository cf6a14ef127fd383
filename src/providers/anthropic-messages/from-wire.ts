import { accumulate } from '../../schemas/accumulate.ts';
import { append } from '../../schemas/append.ts';
import type {
  CacheControl,
  ChatChunk,
  Ext,
  FilePart,
  FunctionTool,
  ImagePart,
  InnerPart,
  InnerTool,
  Message,
  TextPart,
  ToolChoice,
} from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { createTurn } from './turn.ts';
import { asBlock, extOf, nativeOf, WIRE, type WireBlock } from './wire.ts';

/**
 * The conversation of a Messages request as inner messages: what `to-wire.ts` writes, read back. A client of the
 * Messages API is translated by it at the door; recorded requests check that the two are inverse to each other.
 */
export function decodeConversation({ system, messages }: { system?: JsonValue; messages: JsonValue }): Message[] {
  const told = decodeSystem(system);
  return [...(told === undefined ? [] : [told]), ...asArray(messages).flatMap(decodeTurn)];
}

/** A declared tool: one of the client's own, or a native one that the provider runs. */
export function decodeTool(tool: JsonValue): InnerTool | undefined {
  const told = asObject(tool);
  if (told === undefined) return undefined;
  const type = told['type'];
  if (typeof type === 'string' && type !== 'custom') return nativeOf(told as WireBlock);
  // Entries of MCP servers and the like have no schema; only this wire knows them.
  if (asObject(told['input_schema']) === undefined) return nativeOf(told as WireBlock);
  const inner: FunctionTool = {
    type: 'function',
    function: { name: asText(told['name']), parameters: asObject(told['input_schema']) ?? {} },
  };
  if (typeof told['description'] === 'string') inner.function.description = told['description'];
  if (typeof told['strict'] === 'boolean') inner.function.strict = told['strict'];
  return {
    ...inner,
    ...hints(told, [...(type == null ? ['type'] : []), 'name', 'description', 'input_schema', 'strict']),
  };
}

/** How tools may be chosen, and whether several calls at once are allowed; undefined where nothing is told. */
export function decodeToolChoice(choice: JsonValue | undefined): {
  tool_choice?: ToolChoice;
  parallel_tool_calls?: boolean;
} {
  const told = asObject(choice);
  if (told === undefined) return {};
  const parallel = told['disable_parallel_tool_use'] === true ? { parallel_tool_calls: false } : {};
  switch (told['type']) {
    case 'any':
      return { tool_choice: 'required', ...parallel };
    case 'none':
      return { tool_choice: 'none' };
    case 'tool':
      return { tool_choice: { type: 'function', function: { name: asText(told['name']) } }, ...parallel };
    default:
      return { tool_choice: 'auto', ...parallel };
  }
}

function decodeSystem(system: JsonValue | undefined): Message | undefined {
  if (typeof system === 'string') return { role: 'system', content: system };
  const parts = asArray(system).flatMap(decodePart);
  return parts.length === 0 ? undefined : { role: 'system', content: parts };
}

function decodeTurn(value: JsonValue): Message[] {
  const turn = asObject(value);
  if (turn === undefined) return [];
  const content = turn['content'];
  const role = turn['role'];
  if (role === 'assistant') return [decodeAssistant(content)];
  if (role === 'system') return [decodeMidSystem(turn)];
  if (typeof content === 'string') return [{ role: 'user', content }];
  const blocks = asArray(content).flatMap((block) => asBlock(block) ?? []);
  const results = blocks.filter((block) => block.type === 'tool_result').map(decodeToolResult);
  const parts = blocks.filter((block) => block.type !== 'tool_result').flatMap(decodePart);
  return parts.length === 0 && results.length > 0 ? results : [...results, { role: 'user', content: parts }];
}

/** A system message inside of the conversation. That it has a role tells it from the prompt, should it stand first. */
function decodeMidSystem(turn: JsonObject): Message {
  const content = turn['content'];
  return {
    role: 'system',
    content: typeof content === 'string' ? content : asArray(content).flatMap(decodePart),
    ext: { wire: WIRE, rest: remainder(turn, ['content']) },
  };
}

/** An assistant turn is read as the answer it once was. */
function decodeAssistant(content: JsonValue | undefined): Message {
  if (typeof content === 'string') return { role: 'assistant', content };
  const turn = createTurn({ generation_id: '' });
  const chunks: ChatChunk[] = [{ delta: {}, ext: { response: { wire: WIRE } } }];
  const blocks = asArray(content).flatMap((block) => asBlock(block) ?? []);
  // The hint of its last block is the turn's: other wires know where that stands.
  const last = blocks.findLastIndex(({ type }) => type !== 'thinking' && type !== 'redacted_thinking');
  const hint = cacheOf(blocks[last] ?? {});
  for (const [index, block] of blocks.entries()) {
    const { cache_control: _, ...bare } = block;
    const told = index === last && hint.cache_control !== undefined ? (bare as WireBlock) : block;
    append(chunks, turn.open(index, told));
    append(chunks, turn.close(index));
  }
  const { annotations: _derived, ...message } = accumulate(chunks, 0).choices[0].message;
  return { ...message, ...hint };
}

function decodeToolResult(block: WireBlock): Message {
  const message: Message = { role: 'tool', tool_call_id: asText(block['tool_use_id']), content: '' };
  const content = block['content'];
  if (typeof content === 'string') message.content = content;
  else if (Array.isArray(content)) message.content = content.flatMap(decodePart);
  return { ...message, ...hints(block, ['type', 'tool_use_id', 'content']) };
}

function decodePart(value: JsonValue): InnerPart[] {
  const block = asBlock(value);
  if (block === undefined) return [];
  switch (block.type) {
    case 'text': {
      const part: TextPart = { type: 'text', text: asText(block['text']) };
      return [{ ...part, ...hints(block, ['type', 'text']) }];
    }
    case 'image': {
      const url = addressOf(asObject(block['source']) ?? {});
      if (url === undefined) return [nativeOf(block)];
      const part: ImagePart = { type: 'image_url', image_url: { url } };
      return [{ ...part, ...hints(block, ['type', 'source']) }];
    }
    case 'document':
      return [textOfBlocks(block) ?? decodeDocument(block)];
    case 'search_result':
      return [decodeSearchResult(block)];
    default:
      return [nativeOf(block)];
  }
}

/** What was found is text to every model, and itself to those of this wire. */
function decodeSearchResult(block: WireBlock): InnerPart {
  const { title, source, content } = block;
  const texts = asArray(content).map((text) => asText(asObject(text)?.['text']));
  const part: TextPart = { type: 'text', text: [asText(title), asText(source), ...texts].join('\n') };
  return { ...part, ...hints(block, []) };
}

/** A document whose source is blocks of text, which is text to every model and itself to those of this wire. */
function textOfBlocks(block: WireBlock): InnerPart | undefined {
  const { type, content } = asObject(block['source']) ?? {};
  if (type !== 'content') return undefined;
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : asArray(content).map(asBlock);
  if (blocks.some((told) => told?.type !== 'text')) return undefined;
  const texts = [block['title'], ...blocks.map((told) => told?.['text'])].map(asText).filter((text) => text !== '');
  const part: TextPart = { type: 'text', text: texts.join('\n') };
  return { ...part, ...hints(block, []) };
}

function decodeDocument(block: WireBlock): InnerPart {
  const source = asObject(block['source']) ?? {};
  const part: FilePart = { type: 'file', file: {} };
  const known = ['type', 'title'];
  if (typeof block['title'] === 'string') part.file.filename = block['title'];
  const address = addressOf(source);
  if (source['type'] === 'file') part.file.file_id = asText(source['file_id']);
  else if (address !== undefined) part.file.file_data = address;
  if (part.file.file_id !== undefined || address !== undefined) known.push('source');
  return { ...part, ...hints(block, known) };
}

/** A source as an URL: an address as it is, content as a data URL. */
function addressOf(source: JsonObject): string | undefined {
  const { type, url, media_type: mediaType, data } = source;
  if (type === 'url') return asText(url);
  if (type === 'base64') return `data:${asText(mediaType)};base64,${asText(data)}`;
  if (type === 'text') return `data:text/plain;base64,${Buffer.from(asText(data), 'utf8').toString('base64')}`;
  return undefined;
}

/** The cache hint and whatever else a block carries. */
function hints(block: JsonObject, known: readonly string[]): { cache_control?: CacheControl; ext?: Ext } {
  const ext = extOf(remainder(block, [...known, 'cache_control']));
  return { ...cacheOf(block), ...(ext === undefined ? {} : { ext }) };
}

function cacheOf(block: JsonObject): { cache_control?: CacheControl } {
  const cache = asObject(block['cache_control']);
  return cache?.['type'] === 'ephemeral' ? { cache_control: cache as { type: 'ephemeral' } } : {};
}
