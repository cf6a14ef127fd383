// Plain JavaScript: a process that never sees TypeScript does not load the type stripper.

/** Repairs answers in a separate process: schemas are untrusted, and some take unbounded time to check. */
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { jsonrepair } from 'jsonrepair';
import { RE2JS } from 're2js';

/** @typedef {{ text: string, schema: string | undefined }} Task `schema` is JSON. */

/** A `pattern` of a schema, matched in linear time (RE2). With a pattern that RE2 does not support, the schema is not checked. */
/** @param {string} pattern */
function linear(pattern) {
  const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
  return { test: (/** @type {string} */ text) => compiled.matcher(text).find(), source: pattern, flags: 'u' };
}
linear.code = 'linear';

const options = {
  strict: false,
  validateSchema: false,
  validateFormats: false,
  allErrors: false,
  inlineRefs: false,
  addUsedSchema: false,
  logger: /** @type {const} */ (false),
  code: { regExp: /** @type {any} */ (linear) },
};

/** @param {Record<string, unknown>} schema @returns {(value: unknown) => boolean} */
function checkOf(schema) {
  const { $schema, ...rest } = schema;
  const isOld = typeof $schema === 'string' && /draft-0[4-7]/.test($schema);
  const ajv = isOld ? new Ajv(options) : new Ajv2020(options);
  const validate = ajv.compile(rest);
  return (value) => validate(value) === true;
}

const STARTS_MAX = 16;
/** A closing fence starts a line or ends the text: strings of JSON may contain fences. */
const FENCED = /```[a-z0-9]*\s*(?=[[{])([\s\S]*?)(?:\n[ \t]*```|```\s*$|$)/gi;

/**
 * The outermost arrays and objects in a text. An unclosed one ends with the text.
 * @param {string} text
 */
function jsonStretches(text) {
  const matches = [];
  const opening = /[[{]/g;
  for (let tries = 0; tries < STARTS_MAX; tries += 1) {
    const start = opening.exec(text);
    if (start === null) break;
    const marks = /["\\[\]{}]/g;
    marks.lastIndex = start.index;
    let depth = 0;
    let isString = false;
    let end = text.length;
    for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
      if (mark[0] === '\\') marks.lastIndex += 1;
      else if (mark[0] === '"') isString = !isString;
      else if (!isString) depth += mark[0] === '{' || mark[0] === '[' ? 1 : -1;
      if (depth === 0) {
        end = marks.lastIndex;
        break;
      }
    }
    matches.push({ text: text.slice(start.index, end), is_closed: depth === 0, is_string: isString });
    if (depth > 0) break;
    opening.lastIndex = end;
  }
  return matches;
}

/** The candidates for JSON in a text, most likely first. @param {string} text */
function* candidates(text) {
  yield text;
  for (const [, inside = ''] of text.matchAll(FENCED)) yield inside;
  const stretches = jsonStretches(text);
  for (const one of stretches.filter(({ is_closed }) => is_closed).sort((a, b) => b.text.length - a.text.length))
    yield one.text;
  for (const one of stretches) {
    if (one.is_closed) continue;
    yield one.text;
    // A quote is missing, so the end of strings is unknown: also try up to the last bracket.
    const end = one.is_string ? Math.max(one.text.lastIndexOf('}'), one.text.lastIndexOf(']')) : -1;
    if (end > 0) yield one.text.slice(0, end + 1);
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return { value: JSON.parse(text), text };
  } catch {
    return undefined;
  }
}

/** @param {string} text */
function repaired(text) {
  try {
    return parsed(jsonrepair(text));
  } catch {
    return undefined;
  }
}

/** @param {unknown} value */
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param {Task} task */
function heal({ text, schema }) {
  const check = schema === undefined ? isObject : checkOf(JSON.parse(schema));
  const whole = parsed(text);
  if (whole !== undefined && check(whole.value)) return { outcome: 'whole' };
  // Some models write the JSON as a JSON string.
  const jsonText = typeof whole?.value === 'string' ? whole.value : text;
  const attempts = [...candidates(jsonText.trim())].slice(0, 2 * STARTS_MAX);
  // Valid candidates take precedence over repaired ones.
  for (const read of [parsed, repaired]) {
    for (const candidate of attempts) {
      // The repair would turn prose into a string.
      if (read === repaired && !/^\s*[[{]/.test(candidate)) continue;
      const result = read(candidate.trim());
      if (result !== undefined && check(result.value)) return { outcome: 'healed', text: result.text };
    }
  }
  return { outcome: 'failed' };
}

/** @param {Task} task */
export default function answer(task) {
  try {
    return heal(task);
  } catch {
    return { outcome: 'unchecked' };
  }
}
