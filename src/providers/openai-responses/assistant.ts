import type { InnerPart, Message, ReasoningDetail, Slot, ToolCall } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { asArray, asObject, asText } from '../shared/json-shape.ts';
import { detailsOf, orderOf } from '../shared/slot-order.ts';
import { bareName } from './declared.ts';
import type { Encoding } from './parts.ts';
import { ANY_VENDOR_FORMAT, OPENAI_FORMAT, restOf, WIRE, type WireItem } from './wire.ts';

/** Ids of other vendors' servers have other prefixes and are refused: the item is sent without an id. */
const ID_PREFIX: Readonly<Record<string, string>> = lookupTable({
  message: 'msg',
  function_call: 'fc',
  custom_tool_call: 'ctc',
});

/** An assistant turn's items, in the order in which the model produced them. `callIds` maps each call to its id on this wire. */
export function encodeAssistant(
  message: Message,
  field: string,
  encoding: Encoding,
  callIds: ReadonlyMap<ToolCall, string>,
): WireItem[] {
  const details = detailsOf(message);
  const content = message.content ?? null;
  const parts: readonly InnerPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
  const calls = message.tool_calls ?? [];
  const natives = message.ext?.natives ?? [];
  const isOwn = message.ext?.wire === WIRE;
  const counts = { reasoning: details.length, text: parts.length, call: calls.length, native: natives.length };
  const order = orderOf(message, counts);
  const reasoning = planReasoning(order, details, isOwn, field, encoding);
  // Items after missing reasoning are refused by their ids; the provider's own items are refused in any case.
  const isOwnStill = isOwn && !reasoning.isDropped;
  const items: WireItem[] = [];

  for (const { kind, at, ext } of order) {
    const rest = isOwnStill ? restOf(ext) : isOwn ? phaseOf(restOf(ext)) : {};
    switch (kind) {
      case 'reasoning': {
        const item = reasoning.items.get(at);
        if (item !== undefined) items.push(item);
        break;
      }
      case 'text':
        addText(parts[at]!, rest, `${field}.content[${at}]`, encoding, items);
        break;
      case 'refusal':
        addPart(items, { type: 'refusal', refusal: message.refusal ?? '' }, rest);
        break;
      case 'call': {
        const call = calls[at]!;
        const id = callIds.get(call) ?? call.id;
        if (id !== call.id && id !== restOf(call.ext)['call_id'])
          encoding.addReport('changed', `${field}.tool_calls[${at}].id`, 'too long, or used twice');
        items.push(encodeCall(call, id, reasoning.isDropped, encoding));
        break;
      }
      case 'native': {
        const native = natives[at]!;
        if (native.wire === WIRE && isOwnStill) items.push(native.block as WireItem);
        else
          encoding.addReport(
            'dropped',
            `${field}.ext`,
            'tool calls of another provider, or with lost reasoning, are not sent',
          );
        break;
      }
      case 'image': {
        const item = imageItem(message, at, rest);
        if (item !== undefined) items.push(item);
        else encoding.addReport('dropped', `${field}.images`, 'images of former answers are not sent back');
        break;
      }
      default:
        encoding.addReport('dropped', `${field}.${kind}`, 'this provider does not accept audio of the assistant');
    }
  }
  // Reasoning without a following item is refused (translation M11).
  while (items.at(-1)?.type === 'reasoning') {
    encoding.addReport('dropped', `${field}.reasoning_details`, 'nothing follows the reasoning');
    items.pop();
  }
  return encoding.quirks.text_before_calls ? callsLast(items) : items;
}

/** The phase of a message is sent back also without the message's id. */
function phaseOf({ phase }: JsonObject): JsonObject {
  return phase === undefined ? {} : { phase };
}

function callsLast(items: readonly WireItem[]): WireItem[] {
  return [...items.filter((item) => !isCall(item)), ...items.filter(isCall)];
}

function isCall({ type }: WireItem): boolean {
  return type === 'function_call' || type === 'custom_tool_call';
}

function addText(part: InnerPart, rest: JsonObject, field: string, encoding: Encoding, items: WireItem[]): void {
  if (part.type === 'native' && part.wire === WIRE) items.push(part.block as WireItem);
  else if (part.type !== 'text')
    encoding.addReport('dropped', field, 'this provider does not accept media of the assistant');
  // Without an id an empty text has no content.
  else if (part.text !== '' || rest['id'] !== undefined) {
    addPart(items, { type: 'output_text', text: part.text, annotations: [] }, { ...restOf(part.ext), ...rest });
  }
}

/**
 * Adds a part of a message. It joins the preceding message if both have the same id. A text without remaining fields is a plain
 * message.
 */
function addPart(items: WireItem[], encoded: WireItem, { part, ...rest }: JsonObject): void {
  const content: JsonObject = { ...encoded, ...asObject(part) };
  const id = ownId(rest['id'], 'message');
  const last = items.at(-1);
  if (last?.type === 'message' && id !== undefined && last['id'] === id) {
    (last['content'] as JsonObject[]).push(content);
    return;
  }
  if (id !== undefined) {
    // Typed messages have a status (https://platform.openai.com/docs/api-reference/responses/create).
    items.push({
      ...rest,
      type: 'message',
      role: 'assistant',
      status: rest['status'] ?? 'completed',
      content: [content],
    });
    return;
  }
  const text = asText(encoded['text']) + asText(encoded['refusal']);
  const phase = rest['phase'];
  // Fields other than the text require a part.
  const isPlain = asObject(part) === undefined;
  if (last?.type === 'message' && last['id'] === undefined && last['phase'] === phase) {
    const former = last['content'];
    if (isPlain && typeof former === 'string') last['content'] = former + text;
    else last['content'] = [...partsOf(former), content];
    return;
  }
  const phaseField = phase === undefined ? {} : { phase };
  items.push({ type: 'message', role: 'assistant', content: isPlain ? text : [content], ...phaseField });
}

function partsOf(content: JsonValue | undefined): JsonValue[] {
  return typeof content === 'string' ? [{ type: 'output_text', text: content, annotations: [] }] : asArray(content);
}

function ownId(value: unknown, type: string): string | undefined {
  const id = typeof value === 'string' ? value : '';
  return id.startsWith(ID_PREFIX[type] ?? '') && id !== '' ? id : undefined;
}

function encodeCall(call: ToolCall, callId: string, isNameless: boolean, encoding: Encoding): WireItem {
  const { id: originalId, ...rest } = restOf(call.ext);
  const type = rest['type'] === 'custom_tool_call' ? 'custom_tool_call' : 'function_call';
  const id = isNameless ? undefined : ownId(originalId, type);
  const name = encoding.toolName(bareName(call.function.name, asText(rest['namespace'])));
  const item = { ...rest, ...(id === undefined ? {} : { id }), type, call_id: callId, name };
  if (type === 'custom_tool_call') return { ...item, input: customInput(call.function.arguments) };
  return { ...item, arguments: call.function.arguments.trim() === '' ? '{}' : call.function.arguments };
}

/** The text that `calls.ts` wrapped; any other text is the input itself. */
function customInput(text: string): string {
  try {
    const input = asObject(JSON.parse(text))?.['input'];
    return typeof input === 'string' ? input : text;
  } catch {
    return text;
  }
}

/** An image that this wire's tool generated, as its original item. */
function imageItem(message: Message, at: number, rest: JsonObject): WireItem | undefined {
  const url = message.images?.[at]?.image_url.url ?? '';
  const comma = url.indexOf(',');
  if (rest['type'] !== 'image_generation_call' || comma === -1) return undefined;
  return { ...rest, type: 'image_generation_call', result: url.slice(comma + 1) };
}

interface ReasoningPlan {
  /** The items, each by the index of its first detail. */
  items: Map<number, WireItem>;
  /** Whether reasoning of this vendor is left out: all of it or none (translation M11). */
  isDropped: boolean;
}

interface Group {
  first: number;
  ext: Slot['ext'];
  item: WireItem;
  isClosed: boolean;
}

/** Groups details into items (translation R6): an item ends with its encrypted part, or if the next detail has another remainder. */
function planReasoning(
  order: readonly Slot[],
  details: readonly ReasoningDetail[],
  isOwn: boolean,
  field: string,
  encoding: Encoding,
): ReasoningPlan {
  const { quirks, strip_state: stripState, reasoning_ids: reasoningIds } = encoding;
  const format = quirks.reasoning_format ?? OPENAI_FORMAT;
  const groups: Group[] = [];
  for (const { kind, at, ext } of order) {
    const detail = details[at];
    if (kind !== 'reasoning' || detail === undefined) continue;
    if (detail.format !== format && detail.format !== ANY_VENDOR_FORMAT) {
      const reason = `reasoning of format ${detail.format ?? 'unknown'} belongs to another vendor`;
      encoding.addReport('dropped', `${field}.reasoning_details[${at}]`, reason);
      continue;
    }
    let group = groups.at(-1);
    if (group === undefined || group.isClosed || group.ext !== ext) {
      const item: WireItem = { ...(isOwn ? restOf(ext) : {}), type: 'reasoning', summary: [] };
      group = { first: at, ext, item, isClosed: false };
      groups.push(group);
    }
    addDetail(group.item, detail);
    group.isClosed = detail.type === 'reasoning.encrypted';
  }
  const reason = dropReason(groups, stripState, quirks.plain_reasoning_items === true, reasoningIds);
  if (reason !== undefined) {
    encoding.addReport('dropped', `${field}.reasoning_details`, reason);
    return { items: new Map(), isDropped: true };
  }
  for (const { item } of groups) reasoningIds.add(asText(item['id']));
  return { items: new Map(groups.map(({ first, item }) => [first, item])), isDropped: false };
}

function dropReason(
  groups: readonly Group[],
  stripState: boolean,
  acceptsPlain: boolean,
  usedIds: ReadonlySet<string>,
): string | undefined {
  if (groups.length === 0) return undefined;
  if (stripState) return 'the upstream refused the reasoning state of former turns';
  if (!acceptsPlain && groups.some(({ isClosed }) => !isClosed))
    return 'reasoning without its encrypted content is refused';
  const ids = groups.map(({ item }) => asText(item['id'])).filter((id) => id !== '');
  const isTwice = new Set(ids).size < ids.length || ids.some((id) => usedIds.has(id));
  return isTwice ? 'the same reasoning occurs twice' : undefined;
}

function addDetail(item: WireItem, detail: ReasoningDetail): void {
  if (detail.type === 'reasoning.encrypted') {
    item['encrypted_content'] = detail.data;
    item['id'] ??= asText(detail.id);
  } else if (detail.type === 'reasoning.summary') {
    (item['summary'] as JsonObject[]).push({ type: 'summary_text', text: detail.summary });
  } else {
    item['content'] ??= [];
    (item['content'] as JsonObject[]).push({ type: 'reasoning_text', text: detail.text ?? '' });
  }
}
