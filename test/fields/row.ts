/** What the lists of fields are made of: where each field of a client API goes, with a value to show it by. */
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';

/** A path into an upstream's body, such as `text.format` or `messages[0].content`, and what is there. */
export type Place = readonly [path: string, value: JsonValue];

export type RequestRow = {
  /** What a client says. */
  value: JsonValue;
  /** Further fields of the request that it needs. */
  with?: JsonObject;
  /** Which other wire shows it; absent: the one of its API. */
  of?: Wire;
} & (
  | {
      /** To upstreams of every wire that has such a thing: here that of the API itself and one other. */
      goes: 'on';
      /** Where it is on its own wire; absent: by its own name, as it came. */
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
      /** To upstreams of other wires: its own has no such field. */
      goes: 'to other wires';
      other: Place;
    }
  | {
      /** To no upstream: the gateway reads it into `inner`, or has it already. */
      goes: 'to the gateway';
      inner?: Place;
    }
  | {
      /** Nowhere, and its own wire's report says so: the gateway's operator decides it, or nobody could account for it. */
      goes: 'nowhere';
    }
  | {
      /** Back: such a request is refused with a 400 that says so. */
      goes: 'back';
      says: RegExp;
    }
);

/** An item, a block or a part of a conversation, or a tool. */
export interface KindRow {
  value: JsonObject;
  /** The role whose it is; absent: the user's. Items without a role have none. */
  role?: 'assistant' | 'system';
  /** What must stand before it, and behind it, so that it makes sense. */
  before?: JsonObject[];
  after?: JsonObject[];
  /** What it is on its own wire; absent: as it came; null: nothing. */
  own?: JsonObject | null;
  /** What an upstream of another wire gets of it, as it stands in the body's text; null: nothing. */
  other: string | null;
  /** Such a request is refused with a 400 that says so. */
  refused?: RegExp;
}
