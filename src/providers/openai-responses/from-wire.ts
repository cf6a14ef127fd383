import { accumulate } from '../../schemas/accumulate.ts';
import { append } from '../../schemas/append.ts';
import type {
  AudioPart,
  CacheControl,
  ChatChunk,
  FilePart,
  ImagePart,
  InnerPart,
  Message,
  TextPart,
  ToolCall,
  VideoPart,
} from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { namespacedName } from './declared.ts';
import { createTurn } from './turn.ts';
import type { History } from './turn-context.ts';
import { ANY_VENDOR_FORMAT, asItem, extOf, nativeOf, restOf, WIRE, type WireItem } from './wire.ts';

/**
 * The conversation of a Responses request as inner messages: the inverse of `input.ts`, as tests with recorded requests check.
 * Translates the requests of clients of the Responses API.
 */
export function decodeInput(
  { instructions, input }: { instructions?: JsonValue; input?: JsonValue },
  history: History = {},
): Message[] {
  const messages: Message[] = [];
  if (typeof instructions === 'string') {
    messages.push({ role: 'system', content: instructions, ext: { wire: WIRE, rest: { via: 'instructions' } } });
  }
  if (typeof input === 'string') return [...messages, { role: 'user', content: input }];
  for (const { kind, items } of groupItems(asArray(input))) {
    if (kind === 'turn') messages.push(decodeTurn(items, history));
    else messages.push(kind === 'result' ? decodeResult(items[0]!) : decodeItem(items[0]!));
  }
  return messages;
}

/** The items of one message: all items of an assistant's turn, or one other item. */
export interface ItemGroup {
  kind: 'turn' | 'result' | 'other';
  items: WireItem[];
  /** Their range in `input`. */
  first: number;
  last: number;
}

/** Groups the items of `input` by message, in their order. */
export function groupItems(input: readonly JsonValue[]): ItemGroup[] {
  const groups: ItemGroup[] = [];
  /** Ids of calls that only this wire has; undefined for calls without an id. */
  const foreign = new Set<JsonValue | undefined>();
  for (const [at, value] of input.entries()) {
    const item = asItem(value);
    if (item === undefined) continue;
    const open = groups.at(-1);
    const isAssistantItem = isOfAssistant(item);
    if (item.type !== 'function_call' && item.type !== 'custom_tool_call' && isAssistantItem)
      foreign.add(item['call_id']);
    const previous = open?.kind === 'turn' ? open.items.at(-1)! : undefined;
    // Two messages without ids are two turns: their texts must not be joined.
    if (isAssistantItem && previous !== undefined && !(isNameless(previous) && isNameless(item))) {
      open!.items.push(item);
      open!.last = at;
      continue;
    }
    // The result of another kind of call (a tool search) is for this wire only.
    const { call_id: callId } = item;
    const isResult = RESULTS.has(item.type) && (callId == null || !foreign.has(callId));
    groups.push({ kind: isAssistantItem ? 'turn' : isResult ? 'result' : 'other', items: [item], first: at, last: at });
  }
  return groups;
}

/** Tool results, and items that answer the provider's own: they belong to the user though they have no role. */
const USER_ITEM = /_output$|^(?:mcp_approval_response|additional_tools|compaction_trigger|item_reference)$/;

function isOfAssistant(item: WireItem): boolean {
  if (item.type === 'message') return item['role'] === 'assistant';
  // Search results of the provider itself are part of its turn.
  return !USER_ITEM.test(item.type) || item['execution'] === 'server';
}

function isNameless(item: WireItem): boolean {
  return item.type === 'message' && item['id'] === undefined;
}

/** Decodes the items of an assistant turn like an answer. */
function decodeTurn(items: readonly WireItem[], history: History): Message {
  const turn = createTurn({ generation_id: '', reasoning_format: ANY_VENDOR_FORMAT }, history);
  const chunks: ChatChunk[] = [{ delta: {}, ext: { response: { wire: WIRE } } }];
  for (const [index, item] of items.entries()) append(chunks, turn.close(index, item));
  const { annotations: _derived, ...message } = accumulate(chunks, 0).choices[0].message;
  return withNamespaces(message);
}

/** Names calls of tools in a namespace as the tools are declared on other wires; the remainder allows the inverse. */
function withNamespaces(message: Message): Message {
  const { tool_calls: toolCalls } = message;
  if (!toolCalls?.some(({ ext }) => restOf(ext)['namespace'] !== undefined)) return message;
  const named = toolCalls.map((call): ToolCall => {
    const namespace = asText(restOf(call.ext)['namespace']);
    if (namespace === '') return call;
    return { ...call, function: { ...call.function, name: namespacedName(namespace, call.function.name) } };
  });
  return { ...message, tool_calls: named };
}

const RESULTS: ReadonlySet<string> = new Set(['function_call_output', 'custom_tool_call_output']);

function decodeResult(item: WireItem): Message {
  const { output } = item;
  const content = typeof output === 'string' ? output : asArray(output).map(decodePart);
  const message: Message = { role: 'tool', tool_call_id: asText(item['call_id']), content };
  // The tool's name, for a result without a call id.
  if (message.tool_call_id === '' && typeof item['name'] === 'string') message.name = item['name'];
  const known = item.type === 'function_call_output' ? ['type', 'call_id', 'output'] : ['call_id', 'output'];
  const ext = extOf(remainder(item, known));
  return ext === undefined ? message : { ...message, ext };
}

function decodeItem(item: WireItem): Message {
  if (item.type !== 'message') return { role: 'user', content: [nativeOf(item)] };
  const { role, content } = item;
  const message: Message = {
    role: role === 'system' || role === 'developer' ? role : 'user',
    content: typeof content === 'string' ? content : asArray(content).map(decodePart),
  };
  const ext = extOf(remainder(item, ['type', 'role', 'content']));
  return ext === undefined ? message : { ...message, ext };
}

function decodePart(value: JsonValue): InnerPart {
  const source = asObject(value) ?? {};
  switch (source['type']) {
    case 'input_text':
    case 'output_text':
    case 'text': {
      const part: TextPart = { type: 'text', text: asText(source['text']) };
      return { ...part, ...hints(source, ['type', 'text']) };
    }
    case 'input_image': {
      const url = asText(source['image_url']);
      if (url === '') return nativeOf(source);
      const part: ImagePart = { type: 'image_url', image_url: { url } };
      if (typeof source['detail'] === 'string') part.image_url.detail = source['detail'];
      return { ...part, ...hints(source, ['type', 'image_url', 'detail']) };
    }
    case 'input_file': {
      const part: FilePart = { type: 'file', file: {} };
      const data = asText(source['file_url']) || asText(source['file_data']);
      if (data !== '') part.file.file_data = data;
      for (const name of ['file_id', 'filename'] as const) {
        if (typeof source[name] === 'string') part.file[name] = source[name];
      }
      return { ...part, ...hints(source, ['type', 'file_url', 'file_data', 'file_id', 'filename']) };
    }
    case 'input_audio': {
      const { data, format } = asObject(source['input_audio']) ?? {};
      const part: AudioPart = { type: 'input_audio', input_audio: { data: asText(data), format: asText(format) } };
      return { ...part, ...hints(source, ['type', 'input_audio']) };
    }
    case 'input_video': {
      const part: VideoPart = { type: 'video_url', video_url: { url: asText(source['video_url']) } };
      return { ...part, ...hints(source, ['type', 'video_url']) };
    }
    default:
      return nativeOf(source);
  }
}

function hints(source: JsonObject, known: readonly string[]): { cache_control?: CacheControl; ext?: TextPart['ext'] } {
  const rest = remainder(source, known);
  const ext = extOf(rest);
  return {
    ...(rest['prompt_cache_breakpoint'] === undefined ? {} : { cache_control: { type: 'ephemeral' } }),
    ...(ext === undefined ? {} : { ext }),
  };
}
