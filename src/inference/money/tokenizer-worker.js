// Plain JavaScript: a thread that never sees TypeScript does not load the type stripper.

/** The thread that counts tokens: a vocabulary takes 75 MB and a third of a second to load, and long words many milliseconds. */
import { parentPort } from 'node:worker_threads';

/** @typedef {{ countTokens: (text: string, options: { disallowedSpecial: Set<string> }) => number }} Encoding */

/** @type {Map<string, Promise<Encoding>>} */
const loaded = new Map();
/** Texts that hold a tokenizer's own marks are texts. */
const options = { disallowedSpecial: new Set() };
/** Merging is quadratic in the length of a word; cut words count a little more. */
const LONG_WORD = /\S{128}/g;

/** @param {'o200k_base' | 'cl100k_base'} name */
function load(name) {
  let encoding = loaded.get(name);
  if (encoding === undefined) {
    encoding =
      name === 'cl100k_base'
        ? import('gpt-tokenizer/encoding/cl100k_base')
        : import('gpt-tokenizer/encoding/o200k_base');
    loaded.set(name, encoding);
  }
  return encoding;
}

/** @param {string} text @param {Encoding} encoding */
function count(text, encoding) {
  let tokens = 0;
  let from = 0;
  for (const { index, 0: word } of text.matchAll(LONG_WORD)) {
    tokens += encoding.countTokens(text.slice(from, index), options) + encoding.countTokens(word, options);
    from = index + word.length;
  }
  return tokens + encoding.countTokens(text.slice(from), options);
}

parentPort?.on('message', async ({ id, encoding, text }) => {
  try {
    parentPort?.postMessage({ id, tokens: count(text, await load(encoding)) });
  } catch {
    parentPort?.postMessage({ id, tokens: undefined });
  }
});
