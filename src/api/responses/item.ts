import type { Envelope } from '../../inference/reasoning/envelope.ts';
import type { ChatChunk, SlotEvent } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { Citations } from './citations.ts';
import type { DeclaredTools } from './declared-tools.ts';
import type { Events } from './events.ts';

/** What a block is told to be when it opens. */
export type Opening = NonNullable<SlotEvent['open']>;
/** What is told of a block at its end. */
export type Closing = NonNullable<SlotEvent['close']>;

/** How an item of the output ended. */
export type ItemStatus = 'completed' | 'incomplete';

/** One item of an answer's output while it grows: blocks go in, events and the finished item come out. */
export interface ItemWriter {
  /** Whether a block that opens now is another part of this item. */
  takes(opening: Opening): boolean;
  /** A block opens: the item's first, or another that it takes. */
  open(opening: Opening): void;
  say(chunk: ChatChunk): void;
  /** The open block is over. */
  close(told: Closing): void;
  /** The whole item; undefined where there was nothing to tell. */
  finish(status: ItemStatus): JsonObject | undefined;
}

/** What the items of one answer share. */
export interface ItemContext {
  events: Events;
  /** The place that the next item takes in the output. */
  nextIndex(): number;
  /** The id that the upstream told, where it may stay; else one of the answer's own, the same whenever it is asked for again. */
  idOf(prefix: string, told: JsonValue | undefined): string;
  tools: DeclaredTools;
  envelope: Envelope;
  shows_logprobs: boolean;
  /** The client asked for a summary of the reasoning. */
  wants_summary: boolean;
  citations: Citations;
}

/** An item that was announced, and where its events say that it is. */
export interface Place {
  id: string;
  /** `,"output_index":0,"item_id":"…"` */
  json: string;
}

/** Tells that an item begins: as it is, in the next place of the output. */
export function announce({ events, nextIndex }: ItemContext, id: string, item: JsonObject): Place {
  const outputIndex = nextIndex();
  if (events.are_read) {
    events.send('response.output_item.added', `,"output_index":${outputIndex},"item":${JSON.stringify(item)}`);
  }
  return { id, json: `,"output_index":${outputIndex},"item_id":${JSON.stringify(id)}` };
}
