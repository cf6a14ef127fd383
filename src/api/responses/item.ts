import type { Envelope } from '../../inference/reasoning/envelope.ts';
import type { ChatChunk, SlotEvent } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { JsonPart } from '../shared/json-parts.ts';
import type { Citations } from './citations.ts';
import type { DeclaredTools } from './declared-tools.ts';
import type { Events } from './events.ts';

/** The facts about a block at its beginning. */
export type Opening = NonNullable<SlotEvent['open']>;
/** The facts about a block at its end. */
export type Closing = NonNullable<SlotEvent['close']>;

/** The final status of an output item. */
export type ItemStatus = 'completed' | 'incomplete';

/** Writes one output item as it grows: receives blocks, sends events, and returns the finished item. */
export interface ItemWriter {
  /** Whether a new block is another part of this item. */
  takes(opening: Opening): boolean;
  /** Opens a block: the first of the item, or another one that it takes. */
  open(opening: Opening): void;
  write(chunk: ChatChunk): void;
  /** Closes the open block. */
  close(closing: Closing): void;
  /** The finished item; undefined if it is empty. */
  finish(status: ItemStatus): JsonObject | undefined;
  /** The finished item as parts of JSON, if some of it is already encoded or is written part by part; undefined otherwise. Texts alone if events are used. */
  partsOf?(finished: JsonObject): readonly JsonPart[] | undefined;
}

/** The fields common to the items of one answer. */
export interface ItemContext {
  events: Events;
  /** Takes the index of the next item in the output. */
  nextIndex(): number;
  /** The upstream's id (`ownId`) if it can be used, else an id of the gateway, which is deterministic. */
  idOf(prefix: string, ownId: JsonValue | undefined): string;
  tools: DeclaredTools;
  envelope: Envelope;
  shows_logprobs: boolean;
  /** The client requested a summary of the reasoning. */
  wants_summary: boolean;
  citations: Citations;
}

/** An item that was announced, and its place in its events. */
export interface Place {
  id: string;
  /** `,"output_index":0,"item_id":"…"` */
  json: string;
}

/** Announces an item at the next place of the output. */
export function announce({ events, nextIndex }: ItemContext, id: string, item: JsonObject): Place {
  const outputIndex = nextIndex();
  if (events.are_read) {
    events.send('response.output_item.added', `,"output_index":${outputIndex},"item":${JSON.stringify(item)}`);
  }
  return { id, json: `,"output_index":${outputIndex},"item_id":${JSON.stringify(id)}` };
}
