import type { Ext, Native, Wire } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asObject } from '../shared/json-shape.ts';

export const WIRE = 'openai-responses' satisfies Wire;

/** The form of reasoning items where a provider's row names no other. */
export const OPENAI_FORMAT = 'openai-responses-v1';

/** The form of items that a client of this API sends without saying whose they are: each upstream of this wire may read them. */
export const UNTOLD_FORMAT = 'responses-v1';

/** Any item of `input` or `output`: its kind is all that is known (https://platform.openai.com/docs/api-reference/responses). */
export type WireItem = JsonObject & { type: string };

/** The value as an item. A message may leave its type out; it is then told by its role. */
export function asItem(value: JsonValue | undefined): WireItem | undefined {
  const object = asObject(value);
  if (typeof object?.['type'] === 'string') return object as WireItem;
  return typeof object?.['role'] === 'string' ? { ...object, type: 'message' } : undefined;
}

/** The remainder of one of this wire's objects; undefined when nothing remains. */
export function extOf(rest: JsonObject): Ext | undefined {
  for (const _ in rest) return { wire: WIRE, rest };
  return undefined;
}

/** Whether an object, or an answer's remainder, came over this very wire. */
export function isOwn(of: { wire?: Wire } | undefined): boolean {
  return of?.wire === WIRE;
}

/** What this wire remembered of an object; empty for an object of another wire. */
export function restOf(ext: Ext | undefined): JsonObject {
  return ext?.wire === WIRE ? ext.rest : {};
}

/** An item of a kind that the chat schema does not know, as received. */
export function nativeOf(block: JsonObject): Native {
  return { type: 'native', wire: WIRE, block };
}
