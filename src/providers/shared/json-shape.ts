import type { JsonObject, JsonValue } from '../../schemas/json.ts';

/** The value as an object, or undefined. */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

/** The value as text; empty if it is not a text. */
export function asText(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** The value as a list; empty if it is not a list. */
export function asArray(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

/**
 * A count of a usage object, without its fraction; undefined for everything that is no count. A negative number is none: read as zero,
 * it would be a report that nothing was used.
 */
export function asCount(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.trunc(value) : undefined;
}

/** The object without the known fields, nulls and empty lists: the fields that must be preserved. */
export function remainder(object: JsonObject, known: readonly string[]): JsonObject {
  const rest: JsonObject = {};
  for (const [key, value] of Object.entries(object)) {
    if (value == null || known.includes(key) || (Array.isArray(value) && value.length === 0)) continue;
    rest[key] = value;
  }
  return rest;
}
