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
 * The conversation of a Messages request as inner messages: the inverse of `to-wire.ts`, as tests with recorded requests check.
 * Translates the requests of clients of the Messages API.
 */
export function decodeConversation({ system, messages }: { system?: JsonValue; messages: JsonValue }): Message[] {
  const systemMessage = decodeSystem(system);
  return [...(systemMessage === undefined ? [] : [systemMessage]), ...asArray(messages).flatMap(decodeTurn)];
}

/** A declared tool: a function of the client, or a native tool that the provider runs. Undefined if it is not an object. */
export function decodeTool(tool: JsonValue): InnerTool | undefined {
  const declaration = asObject(tool);
  if (declaration === undefined) return undefined;
  const type = declaration['type'];
  if (typeof type === 'string' && type !== 'custom') return nativeOf(declaration as WireBlock);
  // Entries for MCP servers and similar have no schema; only this wire has them.
  if (asObject(declaration['input_schema']) === undefined) return nativeOf(declaration as WireBlock);
  const inner: FunctionTool = {
    type: 'function',
    function: { name: asText(declaration['name']), parameters: asObject(declaration['input_schema']) ?? {} },
  };
  if (typeof declaration['description'] === 'string') inner.function.description = declaration['description'];
  if (typeof declaration['strict'] === 'boolean') inner.function.strict = declaration['strict'];
  return {
    ...inner,
    ...hints(declaration, [...(type == null ? ['type'] : []), 'name', 'description', 'input_schema', 'strict']),
  };
}

/** The tool choice, and whether several calls at once are allowed; empty if not set. */
export function decodeToolChoice(choice: JsonValue | undefined): {
  tool_choice?: ToolChoice;
  parallel_tool_calls?: boolean;
} {
  const object = asObject(choice);
  if (object === undefined) return {};
  const parallel = object['disable_parallel_tool_use'] === true ? { parallel_tool_calls: false } : {};
  switch (object['type']) {
    case 'any':
      return { tool_choice: 'required', ...parallel };
    case 'none':
      return { tool_choice: 'none' };
    case 'tool':
      return { tool_choice: { type: 'function', function: { name: asText(object['name']) } }, ...parallel };
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

/** A system message within the conversation. Its role in `ext` distinguishes it from the system prompt if it is first. */
function decodeMidSystem(turn: JsonObject): Message {
  const content = turn['content'];
  return {
    role: 'system',
    content: typeof content === 'string' ? content : asArray(content).flatMap(decodePart),
    ext: { wire: WIRE, rest: remainder(turn, ['content']) },
  };
}

/** Decodes an assistant turn like an answer. */
function decodeAssistant(content: JsonValue | undefined): Message {
  if (typeof content === 'string') return { role: 'assistant', content };
  const turn = createTurn({ generation_id: '' });
  const chunks: ChatChunk[] = [{ delta: {}, ext: { response: { wire: WIRE } } }];
  const blocks = asArray(content).flatMap((block) => asBlock(block) ?? []);
  // The hint of the last block becomes the turn's, which other wires support.
  const last = blocks.findLastIndex(({ type }) => type !== 'thinking' && type !== 'redacted_thinking');
  const hint = cacheOf(blocks[last] ?? {});
  for (const [index, block] of blocks.entries()) {
    const { cache_control: _, ...bare } = block;
    const content = index === last && hint.cache_control !== undefined ? (bare as WireBlock) : block;
    append(chunks, turn.open(index, content));
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

/** A search result: text for other wires, the original block for this one. */
function decodeSearchResult(block: WireBlock): InnerPart {
  const { title, source, content } = block;
  const texts = asArray(content).map((text) => asText(asObject(text)?.['text']));
  const part: TextPart = { type: 'text', text: [asText(title), asText(source), ...texts].join('\n') };
  return { ...part, ...hints(block, []) };
}

/** A document whose source is blocks of text: text for other wires, the original block for this one. */
function textOfBlocks(block: WireBlock): InnerPart | undefined {
  const { type, content } = asObject(block['source']) ?? {};
  if (type !== 'content') return undefined;
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : asArray(content).map(asBlock);
  if (blocks.some((entry) => entry?.type !== 'text')) return undefined;
  const texts = [block['title'], ...blocks.map((entry) => entry?.['text'])].map(asText).filter((text) => text !== '');
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

/** A source as a URL: an address unchanged, content as a data URL. */
function addressOf(source: JsonObject): string | undefined {
  const { type, url, media_type: mediaType, data } = source;
  if (type === 'url') return asText(url);
  if (type === 'base64') return `data:${asText(mediaType)};base64,${asText(data)}`;
  if (type === 'text') return `data:text/plain;base64,${Buffer.from(asText(data), 'utf8').toString('base64')}`;
  return undefined;
}

/** The cache hint and the remaining fields of a block. */
function hints(block: JsonObject, known: readonly string[]): { cache_control?: CacheControl; ext?: Ext } {
  const ext = extOf(remainder(block, [...known, 'cache_control']));
  return { ...cacheOf(block), ...(ext === undefined ? {} : { ext }) };
}

function cacheOf(block: JsonObject): { cache_control?: CacheControl } {
  const cache = asObject(block['cache_control']);
  return cache?.['type'] === 'ephemeral' ? { cache_control: cache as { type: 'ephemeral' } } : {};
}
