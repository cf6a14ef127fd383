/** What JSON can hold. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue | undefined;
}

/** Two parts of ECMAScript's "JSON.parse source text access", which TypeScript's library does not know yet. */
export const jsonWithSource = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: JsonValue, context: { source?: string }) => JsonValue): JsonValue;
  rawJSON(text: string): JsonObject;
};

/** Where a value stands, more digits than a number keeps. */
const LONG_INTEGER = /[[:,]\s*-?\d{16,}/;

/** Whether a text of JSON may hold integers beyond what a number keeps (2^53). */
export function hasLongIntegers(text: string): boolean {
  return LONG_INTEGER.test(text);
}

/** What a text of JSON says; integers beyond 2^53 are objects that `JSON.stringify` writes as they were. Throws as `JSON.parse` does. */
export function parseJson(text: string): JsonValue {
  return hasLongIntegers(text) ? jsonWithSource.parse(text, keepLong) : (JSON.parse(text) as JsonValue);
}

function keepLong(_key: string, value: JsonValue, { source }: { source?: string }): JsonValue {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined) return value;
  return /^-?\d+$/.test(source) ? jsonWithSource.rawJSON(source) : value;
}
