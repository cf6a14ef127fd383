// Plain JavaScript: a thread that never sees TypeScript does not load the type stripper.

/** The thread that repairs answers: schemas come from strangers, and some take for ever to check. */
import { parentPort } from 'node:worker_threads';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { jsonrepair } from 'jsonrepair';
import { RE2JS } from 're2js';

/** @typedef {{ text: string, schema: string | undefined }} Task `schema` is JSON. */

/** A `pattern` of a schema, matched in linear time whatever it is (RE2). What RE2 lacks makes the schema one that is not checked. */
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
  const is_old = typeof $schema === 'string' && /draft-0[4-7]/.test($schema);
  const ajv = is_old ? new Ajv(options) : new Ajv2020(options);
  const validate = ajv.compile(rest);
  return (value) => validate(value) === true;
}

/** What of a text may be the JSON that is looked for, likeliest first. @param {string} text */
function* candidates(text) {
  yield text;
  for (const [, inside = ''] of text.matchAll(/```[a-z0-9]*[ \t]*\r?\n?([\s\S]*?)(?:```|$)/gi)) yield inside;
  for (const [open, close] of [
    ['{', '}'],
    ['[', ']'],
  ]) {
    const from = text.indexOf(/** @type {string} */ (open));
    if (from === -1) continue;
    const end = text.lastIndexOf(/** @type {string} */ (close));
    if (end > from) yield text.slice(from, end + 1);
    yield text.slice(from);
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
  const tried = [...candidates(text.trim())].slice(0, 16);
  // What needs no repair goes before what is guessed.
  for (const read of [parsed, repaired]) {
    for (const candidate of tried) {
      // Prose is text to a repairer, which puts quotes around it.
      if (read === repaired && !/^\s*[[{]/.test(candidate)) continue;
      const found = read(candidate.trim());
      if (found !== undefined && check(found.value)) return { outcome: 'healed', text: found.text };
    }
  }
  return { outcome: 'failed' };
}

parentPort?.on('message', (task) => {
  try {
    parentPort?.postMessage(heal(task));
  } catch {
    parentPort?.postMessage({ outcome: 'unchecked' });
  }
});
