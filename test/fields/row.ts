/** The rows of the lists of fields: the destination of each field of a client API, with a value to test it. */
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';

/** A path into an upstream's body, such as `text.format` or `messages[0].content`, and its value. */
export type Place = readonly [path: string, value: JsonValue];

export type RequestRow = {
  /** The value that a client sends. */
  value: JsonValue;
  /** Further fields of the request that the value requires. */
  with?: JsonObject;
  /** The other wire that shows it. Default: the wire of its API. */
  of?: Wire;
} & (
  | {
      /** To upstreams of every wire that has such a field: here that of the API itself and one other. */
      goes: 'on';
      /** Its place on its own wire. Default: the same name and value. */
      own?: Place;
      other: Place;
    }
  | {
      /** To upstreams of its own wire. */
      goes: 'to its own wire';
      own?: Place;
      /** This value requests the default behavior: leaving it out elsewhere is not reported. */
      means_nothing?: true;
    }
  | {
      /** To upstreams of other wires: its own wire has no such field. */
      goes: 'to other wires';
      other: Place;
    }
  | {
      /** To no upstream: the gateway reads it into `inner`, or already has it. */
      goes: 'to the gateway';
      inner?: Place;
    }
  | {
      /**
       * To no upstream, and the report says so: the gateway's operator decides about it, or its cost cannot be
       * accounted for.
       */
      goes: 'nowhere';
    }
  | {
      /** Refused: such a request is a 400 that says so. */
      goes: 'back';
      says: RegExp;
    }
);

/** An item, a block or a part of a conversation, or a tool. */
export interface KindRow {
  value: JsonObject;
  /** The role of the message that contains it. Default: the user. Items without a role have none. */
  role?: 'assistant' | 'system';
  /** The items before and after it that make it valid. */
  before?: JsonObject[];
  after?: JsonObject[];
  /** Its form on its own wire. Default: unchanged; null if it is omitted. */
  own?: JsonObject | null;
  /** Its form for an upstream of another wire, as text of the body; null if it is omitted. */
  other: string | null;
  /** Such a request is refused with a 400 that says so. */
  refused?: RegExp;
}
