import { append } from '../../schemas/append.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asText } from '../shared/json-shape.ts';
import { createCallReader } from './calls.ts';
import { createImageReader, createNativeReader } from './natives.ts';
import { createReasoningReader } from './reasoning.ts';
import { createMessageReader } from './text.ts';
import type { DecoderState, History, ItemReader, TurnContext } from './turn-context.ts';
import { asItem, type WireItem } from './wire.ts';

/** The items of one assistant turn while they are decoded; several may be open at once. `index` is the wire's own. */
export interface Turn {
  hasCalls(): boolean;
  hasOutput(): boolean;
  open(index: JsonValue | undefined, item: WireItem): ChatChunk[];
  add(event: JsonObject): ChatChunk[];
  close(index: JsonValue | undefined, item: WireItem): ChatChunk[];
  /** Closes all open items, and adds their chunks to `chunks`; `output` is the complete list of items, if the wire sent it. */
  finish(output: JsonValue | undefined, chunks: ChatChunk[]): void;
}

/** The item of an event that no event opened: some servers omit the opening. */
const IMPLIED: readonly (readonly [prefix: string, type: string])[] = [
  ['response.output_text.', 'message'],
  ['response.content_part.', 'message'],
  ['response.refusal.', 'message'],
  ['response.reasoning_', 'reasoning'],
];

interface OpenItem {
  reader: ItemReader;
  id: string;
  isClosed: boolean;
}

/** An empty turn. */
export function createTurn(state: DecoderState, history?: History): Turn {
  const context: TurnContext = {
    counts: { slots: 0, details: 0, calls: 0, images: 0, codePoints: 0 },
    state,
    ids: new Set(state.call_ids),
    history,
  };
  const items = new Map<JsonValue | undefined, OpenItem>();
  const itemsById = new Map<string, OpenItem>();

  function open(index: JsonValue | undefined, item: WireItem): ChatChunk[] {
    const previous = items.get(index);
    // Repeated by a proxy; another item under the same index ends the previous one.
    if (previous !== undefined && !previous.isClosed && previous.id === asText(item['id'])) return [];
    const chunks = previous === undefined ? [] : end(previous, undefined);
    const reader = createReader(item, context);
    const opened: OpenItem = { reader, id: asText(item['id']), isClosed: false };
    items.set(index, opened);
    if (opened.id !== '') itemsById.set(opened.id, opened);
    append(chunks, reader.begin());
    return chunks;
  }

  function end(held: OpenItem, item: WireItem | undefined): ChatChunk[] {
    if (held.isClosed) return [];
    held.isClosed = true;
    return held.reader.end(item);
  }

  function close(index: JsonValue | undefined, item: WireItem): ChatChunk[] {
    const chunks = items.has(index) ? [] : open(index, item);
    append(chunks, end(items.get(index)!, item));
    return chunks;
  }

  return {
    hasCalls: () => context.counts.calls > 0,
    hasOutput: () => context.counts.slots > 0,
    open,
    add(event) {
      const index = event['output_index'];
      const held = items.get(index);
      if (held !== undefined) return held.isClosed ? [] : held.reader.add(event);
      const type = asText(event['type']);
      const implied = IMPLIED.find(([prefix]) => type.startsWith(prefix));
      // Events of an unknown item may be skipped: the finished item has its content.
      if (implied === undefined) return [];
      const chunks = open(index, { type: implied[1], id: asText(event['item_id']) });
      append(chunks, items.get(index)!.reader.add(event));
      return chunks;
    },
    close,
    finish(output, chunks) {
      /** The items already closed: some servers use one id for several items. */
      const seen = new Set<OpenItem | undefined>();
      for (const [index, value] of asArray(output).entries()) {
        const item = asItem(value);
        if (item === undefined) continue;
        const id = asText(item['id']);
        const placed = items.get(index);
        // Some servers number events differently from their list, so the id takes precedence.
        const held = placed?.id === id ? placed : itemsById.get(id);
        const isNew = held === undefined || seen.has(held);
        append(chunks, isNew ? close(index, item) : end(held, item));
        seen.add(isNew ? items.get(index) : held);
      }
      for (const held of items.values()) append(chunks, end(held, undefined));
    },
  };
}

function createReader(item: WireItem, context: TurnContext): ItemReader {
  switch (item.type) {
    case 'message':
      return createMessageReader(item, context.counts);
    case 'reasoning':
      return createReasoningReader(item, context);
    case 'function_call':
    case 'custom_tool_call':
      return createCallReader(item, context);
    case 'image_generation_call':
      // An image that was not generated has only its item.
      if (item['status'] === 'failed') return createNativeReader(item, context.counts);
      return createImageReader(item, context.counts);
    default:
      return createNativeReader(item, context.counts);
  }
}
