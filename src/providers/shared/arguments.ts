import { type JsonObject, type JsonValue, jsonWithSource } from '../../schemas/json.ts';
import { answerLevels, structureBreach } from '../../schemas/json-structure.ts';
import { asObject } from './json-shape.ts';

/** Long digits, fractions, exponents and negative zeros, which a JavaScript number may not preserve. */
const RISKY_NUMBER = /\d{16}|\d[.eE]|-0/;

/**
 * A call's arguments as the object that this wire expects. Numbers keep their text, so that `7006652.0` and integers beyond
 * 2^53 arrive as sent. Text that is not a JSON object, or one that is nested too deeply, is wrapped, and `isObject` is false.
 */
export function parseArguments(text: string): { input: JsonObject; isObject: boolean } {
  if (text.trim() === '') return { input: {}, isObject: true };
  if (structureBreach(text, answerLevels) !== undefined) {
    return { input: { _raw: text }, isObject: false };
  }
  let value: JsonValue;
  try {
    value = RISKY_NUMBER.test(text) ? jsonWithSource.parse(text, keepNumber) : JSON.parse(text);
  } catch {
    return { input: { _raw: text }, isObject: false };
  }
  const input = asObject(value);
  return input === undefined ? { input: { _raw: text }, isObject: false } : { input, isObject: true };
}

function keepNumber(_key: string, value: JsonValue, { source }: { source?: string }): JsonValue {
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value;
  return jsonWithSource.rawJSON(source);
}
