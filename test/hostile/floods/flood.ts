import type { Frame } from '../../../src/providers/dialect.ts';
import type { Wire } from '../../../src/schemas/inner.ts';
import type { JsonObject } from '../../../src/schemas/json.ts';

/** An answer of a hostile or broken upstream: `n` parts of one kind, as the events of a stream or as one whole body. */
export interface Flood {
  wire: Wire;
  /** The kind of the many parts. */
  parts: string;
  stream?(n: number): Frame[];
  whole?(n: number): JsonObject;
}

/** One event of a stream: its name, if the wire has names, and its payload. */
export type FloodEvent = JsonObject | [event: string, payload: JsonObject];

/** The events as the frames of their stream. */
export function frames(events: readonly FloodEvent[]): Frame[] {
  return events.map((one) =>
    Array.isArray(one)
      ? { event: one[0] as string, data: JSON.stringify(one[1]) }
      : { event: undefined, data: JSON.stringify(one) },
  );
}

/** A list of `n` parts. */
export function times<T>(n: number, make: (i: number) => T): T[] {
  return Array.from({ length: n }, (_, i) => make(i));
}

/** The start of addresses that answers cite. */
export const URL = 'https://a.example/';
