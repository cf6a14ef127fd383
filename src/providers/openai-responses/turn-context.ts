import type { ChatChunk, ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { WireItem } from './wire.ts';

/** What decoding must know of the attempt's request. */
export interface DecoderState {
  generation_id: string;
  /** Wire name to the client's name, for the tools that were renamed. */
  tool_names?: Record<string, string>;
  /** The call ids of the conversation so far. */
  call_ids?: readonly string[];
  /** The form of the provider's reasoning items. */
  reasoning_format?: string;
}

/** What the items of a turn count together. */
export interface Counts {
  slots: number;
  details: number;
  calls: number;
  images: number;
  /** Of the joined text. */
  codePoints: number;
}

/** What the readers of a turn's items share. */
export interface TurnContext {
  counts: Counts;
  state: DecoderState;
  /** Call ids that are taken. */
  ids: Set<string>;
  history: History | undefined;
}

/** What reading the turns of a client's conversation needs beside them. */
export interface History {
  /** The details that an item's `encrypted_content` carries through clients; undefined where it is the item's own. */
  unwrap?: ((text: string) => ReasoningDetail[] | undefined) | undefined;
}

/**
 * One item: what it says at its start, with an event, at its end. The finished item tells all of it once more; what the
 * events left out is said then, so that a whole answer is one without events.
 */
export interface ItemReader {
  begin(): ChatChunk[];
  add(event: JsonObject): ChatChunk[];
  /** `item` is the finished item; undefined where none came. */
  end(item: WireItem | undefined): ChatChunk[];
}
