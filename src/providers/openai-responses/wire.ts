import type { Ext, Native, Wire } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asObject } from '../shared/json-shape.ts';

export const WIRE = 'openai-responses' satisfies Wire;

/** The format of reasoning items, unless a provider's row names another. */
export const OPENAI_FORMAT = 'openai-responses-v1';

/** The format of items that a client of this API sends without stating the vendor: every upstream of this wire may read them. */
export const ANY_VENDOR_FORMAT = 'responses-v1';

/** Any item of `input` or `output`: only its type is known (https://platform.openai.com/docs/api-reference/responses). */
export type WireItem = JsonObject & { type: string };

/** The value as an item. A message may omit its type; it is then recognised by its role. */
export function asItem(value: JsonValue | undefined): WireItem | undefined {
  const object = asObject(value);
  if (typeof object?.['type'] === 'string') return object as WireItem;
  return typeof object?.['role'] === 'string' ? { ...object, type: 'message' } : undefined;
}

/** The remaining fields of one of this wire's objects; undefined if there are none. */
export function extOf(rest: JsonObject): Ext | undefined {
  for (const _ in rest) return { wire: WIRE, rest };
  return undefined;
}

/** Whether an object, or an answer's remainder, is of this wire. */
export function isOwn(object: { wire?: Wire } | undefined): boolean {
  return object?.wire === WIRE;
}

/** The fields that this wire stored with an object; empty for an object of another wire. */
export function restOf(ext: Ext | undefined): JsonObject {
  return ext?.wire === WIRE ? ext.rest : {};
}

/** An item of a kind that the chat schema does not know, as received. */
export function nativeOf(block: JsonObject): Native {
  return { type: 'native', wire: WIRE, block };
}
