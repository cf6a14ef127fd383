import { accumulate } from '../../schemas/accumulate.ts';
import type {
  CacheControl,
  ChatChunk,
  FilePart,
  FunctionTool,
  ImagePart,
  InnerPart,
  InnerTool,
  Message,
  ReasoningDetail,
  TextPart,
  ToolChoice,
} from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../json-shape.ts';
import { createTurn } from './turn.ts';
import { asItem, extOf, nativeOf, WIRE, type WireItem } from './wire.ts';

/** What reading a conversation may need beside it. */
export interface InputContext {
  /** The details that an item's `encrypted_content` carries through clients; undefined where it is the item's own. */
  unwrap?: (text: string) => ReasoningDetail[] | undefined;
}

/**
 * The conversation of a Responses request as inner messages: what `input.ts` writes, read back. A client of the Responses
 * API is translated by it at the door; recorded requests check that the two are inverse to each other.
 */
export function decodeInput(
  { instructions, input }: { instructions?: JsonValue; input?: JsonValue },
  context: InputContext = {},
): Message[] {
  const messages: Message[] = [];
  if (typeof instructions === 'string') {
    messages.push({ role: 'system', content: instructions, ext: { wire: WIRE, rest: { via: 'instructions' } } });
  }
  if (typeof input === 'string') return [...messages, { role: 'user', content: input }];
  const called = new Set<JsonValue | undefined>();
  let turn: WireItem[] = [];
  const endTurn = (): void => {
    if (turn.length > 0) messages.push(decodeTurn(turn, context));
    turn = [];
  };
  for (const value of asArray(input)) {
    const item = asItem(value);
    if (item === undefined) continue;
    const former = turn.at(-1);
    const isOfTurn = isOfAssistant(item);
    // Two messages that nothing tells apart are two turns: their texts must not run together.
    if (!isOfTurn || (former !== undefined && isNameless(former) && isNameless(item))) endTurn();
    if (CALLS.has(item.type)) called.add(item['call_id']);
    if (isOfTurn) turn.push(item);
    // The result of another kind of call, or of one that the provider keeps, is for this wire alone.
    else if (RESULTS.has(item.type) && called.has(item['call_id'])) messages.push(decodeResult(item));
    else messages.push(decodeItem(item));
  }
  endTurn();
  return messages;
}

/** A declared tool: a function of the client's, or one of another kind, whole. */
export function decodeTool(value: JsonValue): InnerTool | undefined {
  const told = asObject(value);
  if (told === undefined) return undefined;
  if (told['type'] !== 'function') return nativeOf(told);
  const { description, parameters, strict } = told;
  const tool: FunctionTool = { type: 'function', function: { name: asText(told['name']) } };
  if (typeof description === 'string') tool.function.description = description;
  if (asObject(parameters) !== undefined) tool.function.parameters = parameters as JsonObject;
  const rest = remainder(told, ['type', 'name', 'description', 'parameters', 'strict']);
  if (typeof strict === 'boolean') tool.function.strict = strict;
  // Left out, it stands for another thing here than in chat.
  else rest['strict'] = null;
  const ext = extOf(rest);
  return ext === undefined ? tool : { ...tool, ext };
}

/** How tools may be chosen; undefined where nothing is told. */
export function decodeToolChoice(choice: JsonValue | undefined): ToolChoice | undefined {
  if (choice === 'none' || choice === 'auto' || choice === 'required') return choice;
  const told = asObject(choice);
  if (told === undefined) return undefined;
  if (told['type'] === 'function') return { type: 'function', function: { name: asText(told['name']) } };
  return { ...told, type: asText(told['type']) };
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
function decodeTurn(items: readonly WireItem[], { unwrap }: InputContext): Message {
  const turn = createTurn({ generation_id: '' }, unwrap);
  const chunks: ChatChunk[] = [{ delta: {}, ext: { response: { wire: WIRE } } }];
  for (const [index, item] of items.entries()) chunks.push(...turn.close(index, item));
  const { annotations: _derived, ...message } = accumulate(chunks, 0).choices[0].message;
  return message;
}

const CALLS: ReadonlySet<string> = new Set(['function_call', 'custom_tool_call']);
const RESULTS: ReadonlySet<string> = new Set(['function_call_output', 'custom_tool_call_output']);

function decodeResult(item: WireItem): Message {
  const { output } = item;
  const content = typeof output === 'string' ? output : asArray(output).map(decodePart);
  const message: Message = { role: 'tool', tool_call_id: asText(item['call_id']), content };
  const ext = extOf(remainder(item, ['type', 'call_id', 'output']));
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
    case 'input_text': {
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
    default:
      return nativeOf(told);
  }
}

function hints(told: JsonObject, known: readonly string[]): { cache_control?: CacheControl; ext?: TextPart['ext'] } {
  const { prompt_cache_breakpoint: mark, ...rest } = remainder(told, known);
  const ext = extOf(rest);
  return {
    ...(mark === undefined ? {} : { cache_control: { type: 'ephemeral' } }),
    ...(ext === undefined ? {} : { ext }),
  };
}
