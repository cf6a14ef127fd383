/** A value of JSON. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue | undefined;
}

/** Parts of ECMAScript's "JSON.parse source text access" that TypeScript's library does not declare yet. */
export const jsonWithSource = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: JsonValue, context: { source?: string }) => JsonValue): JsonValue;
  rawJSON(text: string): JsonObject;
};

/** At the place of a value, more digits than a number can hold exactly. */
const LONG_INTEGER = /[[:,]\s*-?\d{16,}/;

/** Whether a JSON text may contain integers beyond 2^53, which a number cannot hold exactly. */
export function hasLongIntegers(text: string): boolean {
  return LONG_INTEGER.test(text);
}

/** Parses JSON. Integers beyond 2^53 become objects that `JSON.stringify` writes as they were. Throws as `JSON.parse` does. */
export function parseJson(text: string): JsonValue {
  return hasLongIntegers(text) ? jsonWithSource.parse(text, keepLong) : (JSON.parse(text) as JsonValue);
}

function keepLong(_key: string, value: JsonValue, { source }: { source?: string }): JsonValue {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined) return value;
  return /^-?\d+$/.test(source) ? jsonWithSource.rawJSON(source) : value;
}
