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
import { asItem, extOf, nativeOf, restOf, UNTOLD_FORMAT, WIRE, type WireItem } from './wire.ts';

/**
 * The conversation of a Responses request as inner messages: what `input.ts` writes, read back. A client of the Responses
 * API is translated by it at the door; recorded requests check that the two are inverse to each other.
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

/** Items that are one message: those of an assistant's turn, or one of another. */
export interface ItemGroup {
  kind: 'turn' | 'result' | 'other';
  items: WireItem[];
  /** Where in `input` they stand. */
  first: number;
  last: number;
}

/** Which items of `input` are which messages, in their order. */
export function groupItems(input: readonly JsonValue[]): ItemGroup[] {
  const groups: ItemGroup[] = [];
  /** Ids of calls that only this wire knows; undefined is nobody's. */
  const foreign = new Set<JsonValue | undefined>();
  for (const [at, value] of input.entries()) {
    const item = asItem(value);
    if (item === undefined) continue;
    const open = groups.at(-1);
    const isOfTurn = isOfAssistant(item);
    if (item.type !== 'function_call' && item.type !== 'custom_tool_call' && isOfTurn) foreign.add(item['call_id']);
    const former = open?.kind === 'turn' ? open.items.at(-1)! : undefined;
    // Two messages that nothing tells apart are two turns: their texts must not run together.
    if (isOfTurn && former !== undefined && !(isNameless(former) && isNameless(item))) {
      open!.items.push(item);
      open!.last = at;
      continue;
    }
    // The result of another kind of call (a search for tools) is for this wire alone.
    const { call_id: callId } = item;
    const isResult = RESULTS.has(item.type) && (callId == null || !foreign.has(callId));
    groups.push({ kind: isOfTurn ? 'turn' : isResult ? 'result' : 'other', items: [item], first: at, last: at });
  }
  return groups;
}

/** Results of tools, and items that answer the provider's own: the user's, though they have no role. */
const OF_USER = /_output$|^(?:mcp_approval_response|additional_tools|compaction_trigger|item_reference)$/;

function isOfAssistant(item: WireItem): boolean {
  if (item.type === 'message') return item['role'] === 'assistant';
  // What the provider itself found is a part of its turn.
  return !OF_USER.test(item.type) || item['execution'] === 'server';
}

function isNameless(item: WireItem): boolean {
  return item.type === 'message' && item['id'] === undefined;
}

/** The items of an assistant turn are read as the answer they once were. */
function decodeTurn(items: readonly WireItem[], history: History): Message {
  const turn = createTurn({ generation_id: '', reasoning_format: UNTOLD_FORMAT }, history);
  const chunks: ChatChunk[] = [{ delta: {}, ext: { response: { wire: WIRE } } }];
  for (const [index, item] of items.entries()) append(chunks, turn.close(index, item));
  const { annotations: _derived, ...message } = accumulate(chunks, 0).choices[0].message;
  return withNamespaces(message);
}

/** A call of a tool in a namespace is named as the tool is declared elsewhere; its remainder tells the way back. */
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
  // Whose it is where no call says so.
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
  const told = asObject(value) ?? {};
  switch (told['type']) {
    case 'input_text':
    case 'output_text':
    case 'text': {
      const part: TextPart = { type: 'text', text: asText(told['text']) };
      return { ...part, ...hints(told, ['type', 'text']) };
    }
    case 'input_image': {
      const url = asText(told['image_url']);
      if (url === '') return nativeOf(told);
      const part: ImagePart = { type: 'image_url', image_url: { url } };
      if (typeof told['detail'] === 'string') part.image_url.detail = told['detail'];
      return { ...part, ...hints(told, ['type', 'image_url', 'detail']) };
    }
    case 'input_file': {
      const part: FilePart = { type: 'file', file: {} };
      const data = asText(told['file_url']) || asText(told['file_data']);
      if (data !== '') part.file.file_data = data;
      for (const name of ['file_id', 'filename'] as const) {
        if (typeof told[name] === 'string') part.file[name] = told[name];
      }
      return { ...part, ...hints(told, ['type', 'file_url', 'file_data', 'file_id', 'filename']) };
    }
    case 'input_audio': {
      const { data, format } = asObject(told['input_audio']) ?? {};
      const part: AudioPart = { type: 'input_audio', input_audio: { data: asText(data), format: asText(format) } };
      return { ...part, ...hints(told, ['type', 'input_audio']) };
    }
    case 'input_video': {
      const part: VideoPart = { type: 'video_url', video_url: { url: asText(told['video_url']) } };
      return { ...part, ...hints(told, ['type', 'video_url']) };
    }
    default:
      return nativeOf(told);
  }
}

function hints(told: JsonObject, known: readonly string[]): { cache_control?: CacheControl; ext?: TextPart['ext'] } {
  const rest = remainder(told, known);
  const ext = extOf(rest);
  return {
    ...(rest['prompt_cache_breakpoint'] === undefined ? {} : { cache_control: { type: 'ephemeral' } }),
    ...(ext === undefined ? {} : { ext }),
  };
}
