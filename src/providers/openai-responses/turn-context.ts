import type { ChatChunk, ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { WireItem } from './wire.ts';

/** The facts of the attempt's request that decoding needs. */
export interface DecoderState {
  generation_id: string;
  /** Wire name to the client's name, for the tools that were renamed. */
  tool_names?: Record<string, string>;
  /** The call ids of the conversation so far. */
  call_ids?: readonly string[];
  /** The format of the provider's reasoning items. */
  reasoning_format?: string;
}

/** The counters that the items of a turn share. */
export interface Counts {
  slots: number;
  details: number;
  calls: number;
  images: number;
  /** Of the joined text. */
  codePoints: number;
}

/** The state that the readers of a turn's items share. */
export interface TurnContext {
  counts: Counts;
  state: DecoderState;
  /** Call ids in use. */
  ids: Set<string>;
  history: History | undefined;
}

/** Additional input for decoding the turns of a client's conversation. */
export interface History {
  /** The details that an item's `encrypted_content` carries through clients; undefined if it is the provider's own. */
  unwrap?: ((text: string) => ReasoningDetail[] | undefined) | undefined;
}

/**
 * One item: its chunks at the start, for an event, and at the end. The finished item repeats all of its content; what the events
 * omitted is emitted then, so that a whole answer is one without events.
 */
export interface ItemReader {
  begin(): ChatChunk[];
  add(event: JsonObject): ChatChunk[];
  /** `item` is the finished item; undefined if none was received. */
  end(item: WireItem | undefined): ChatChunk[];
}
