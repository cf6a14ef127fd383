import type { Envelope } from '../../inference/reasoning/envelope.ts';
import { isOwn } from '../../providers/openai-responses/wire.ts';
import type { ChatChunk, Delta, Slot } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { createBlockOrder } from '../shared/block-order.ts';
import { type JsonPart, partTexts } from '../shared/json-parts.ts';
import { createCall } from './call-item.ts';
import { createCitations } from './citations.ts';
import type { DeclaredTools } from './declared-tools.ts';
import type { Events } from './events.ts';
import type { ItemContext, ItemStatus, ItemWriter, Opening } from './item.ts';
import { createMessageWriter, type MessageWriter } from './message-item.ts';
import { createImage, createNative } from './own-items.ts';
import { createReasoning } from './reasoning-item.ts';

/** Dependencies of the output items of one answer. */
export interface ItemsOptions {
  generation_id: string;
  events: Events;
  tools: DeclaredTools;
  envelope: Envelope;
  hide_reasoning: boolean;
  wants_summary: boolean;
  shows_logprobs: boolean;
}

/** The output items of one answer as it grows: receives chunks, sends events, and returns finished items, one at a time. */
export interface Items {
  take(chunk: ChatChunk): void;
  /** Another upstream continues the text. Ordinals of blocks start again at 0. */
  resume(): void;
  /** Ends the open items. `status` is that of the last open item. */
  end(status: ItemStatus): void;
  /** Ends the open items, and drops blocks that wait. */
  breakOff(): void;
  readonly output: readonly OutputItem[];
}

/** A finished item as parts of JSON: texts alone if events are used. */
export type OutputItem = readonly JsonPart[];

/** The kind of a chunk without slot. */
function kindOf(delta: Delta): Slot['kind'] | undefined {
  if (delta.content) return 'text';
  if (delta.refusal) return 'refusal';
  if (delta.reasoning_details?.length || delta.reasoning) return 'reasoning';
  if (delta.tool_calls?.length) return 'call';
  return delta.images?.length ? 'image' : undefined;
}

/** An item, with its writer as a message if it is one. */
interface Item {
  writer: ItemWriter;
  message: MessageWriter | undefined;
}

/** A finished message: its index, and its status. */
interface Former {
  message: MessageWriter;
  at: number;
  status: ItemStatus;
}

/** Makes the output items of one answer. */
export function createItems(options: ItemsOptions): Items {
  const { events, generation_id, hide_reasoning } = options;
  const output: OutputItem[] = [];
  const citations = createCitations();
  const messages: Former[] = [];
  const ids = new Set<string>();
  /** The basis of the gateway's own ids: the generation's id without dashes. */
  const stem = generation_id.replace(/^gen-/, '').replaceAll('-', '');
  const context: ItemContext = {
    ...options,
    citations,
    nextIndex() {
      if (former !== undefined) finish(former, 'completed');
      former = undefined;
      isAnnounced = true;
      return output.length;
    },
    idOf(prefix, ownId) {
      const nth = output.length + (former === undefined ? 0 : 1);
      const id = typeof ownId === 'string' && ownId !== '' && !ids.has(ownId) ? ownId : `${prefix}_${stem}${nth}`;
      ids.add(id);
      return id;
    },
  };
  /** The ordinal of the block of the last chunk, and its item. */
  let n: number | undefined;
  let kind: Slot['kind'] | undefined;
  let item: Item | undefined;
  /** Whether the item has content. Until then the item before it is not finished: empty blocks are dropped (translation E5). */
  let isAnnounced = false;
  let former: Item | undefined;
  let hasPicture = false;
  let isResumed = false;

  function finishedItem(made: JsonObject, writer: ItemWriter): OutputItem {
    return writer.partsOf?.(made) ?? [events.are_read ? JSON.stringify(made) : { value: made }];
  }

  function finish({ writer, message }: Item, status: ItemStatus): void {
    if (message !== undefined) citations.settle();
    const made = writer.finish(status);
    if (made === undefined) return;
    const finished = finishedItem(made, writer);
    if (message !== undefined) messages.push({ message, at: output.length, status });
    if (events.are_read) {
      events.send('response.output_item.done', [`,"output_index":${output.length},"item":`, ...partTexts(finished)]);
    }
    output.push(finished);
  }

  /** Returns to the item before an empty one. */
  function leaveUnannounced(): void {
    if (item === undefined || isAnnounced) return;
    item = former;
    former = undefined;
    isAnnounced = item !== undefined;
  }

  function makeItem(opening: Opening): Item {
    switch (opening.kind) {
      case 'reasoning':
        return { writer: createReasoning(context), message: undefined };
      case 'call':
        return { writer: createCall(context), message: undefined };
      case 'image':
        hasPicture = false;
        return { writer: createImage(context), message: undefined };
      case 'native':
        return { writer: createNative(context), message: undefined };
      default: {
        const message = createMessageWriter(context);
        return { writer: message, message };
      }
    }
  }

  function open(opening: Opening): void {
    kind = opening.kind;
    leaveUnannounced();
    if (isResumed && item?.message !== undefined) item.message.resume();
    else if (item?.writer.takes(opening) !== true) {
      former = item;
      item = makeItem(opening);
      isAnnounced = false;
    }
    isResumed = false;
    item?.writer.open(opening);
  }

  /** Each image is an item of its own. */
  function addImages(chunk: ChatChunk): void {
    const { images = [] } = chunk.delta;
    if (images.length === 0) item?.writer.write(chunk);
    for (const image of images) {
      if (hasPicture) open({ kind: 'image' });
      item?.writer.write({ ...chunk, delta: { images: [image] } });
      hasPicture = true;
    }
  }

  function write(chunk: ChatChunk): void {
    if (kind === 'image') addImages(chunk);
    else item?.writer.write(chunk);
  }

  function release(chunk: ChatChunk): void {
    const slot = chunk.ext?.slot;
    if (slot !== undefined) {
      if (slot.n !== n) {
        open(slot.open ?? { kind: kindOf(chunk.delta) ?? 'text' });
        n = slot.n;
      }
      write(chunk);
      if (slot.close === undefined) return;
      item?.writer.close(slot.close);
      n = undefined;
      return;
    }
    const newKind = kindOf(chunk.delta);
    if (newKind === undefined) {
      citations.take(chunk.delta.annotations ?? []);
      if (chunk.logprobs != null) (item?.message ?? former?.message)?.write({ delta: {}, logprobs: chunk.logprobs });
    } else if (newKind !== 'reasoning' || !hide_reasoning) {
      const opensCall = chunk.delta.tool_calls?.[0]?.id !== undefined;
      if (item === undefined || kind !== newKind || n !== undefined || opensCall) open({ kind: newKind });
      n = undefined;
      write(chunk);
    }
  }

  function endItem(status: ItemStatus): void {
    leaveUnannounced();
    citations.settleOpen();
    if (item !== undefined) finish(item, status);
    item = undefined;
    if (!citations.settleClosed()) return;
    for (const { message, at, status: ended } of messages) {
      const made = message.finish(ended);
      if (made !== undefined) output[at] = finishedItem(made, message);
    }
  }

  const order = createBlockOrder(release, ({ kind: opens, native }) => {
    if (opens === 'native') return isOwn(native);
    return opens !== 'audio' && (opens !== 'reasoning' || !hide_reasoning);
  });

  return {
    take: order.take,
    resume() {
      order.flush();
      n = undefined;
      isResumed = true;
    },
    end(status) {
      order.flush();
      endItem(status);
    },
    breakOff: () => endItem('incomplete'),
    output,
  };
}
