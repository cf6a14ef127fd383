import { invalidField } from '../errors.ts';

/** The rule for storable texts, which follows the name of the field. */
export const UNSTORABLE = 'must be text without NUL characters or lone surrogates';

/** Whether every store can hold a text unchanged: PostgreSQL accepts no NUL, and UTF-8 no lone surrogates. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000');
}

/** Throws a 400 that names the first of these fields whose text is not storable. */
export function checkStorable(texts: Readonly<Record<string, string | null | undefined>>): void {
  for (const field in texts) if (!isStorable(texts[field] ?? '')) throw invalidField(field, UNSTORABLE);
}

/** Lowers the letters A to Z only: other letters of Unicode have an ASCII lower case too, which would make two addresses equal. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** The length from which texts are searched for surrogates before they are counted. */
const SEARCHED_CHARS_MIN = 64;
const WINDOW_CHARS = 16 * 1024;
const SURROGATE = /[\ud800-\udfff]/;

/** The number of code points. Low surrogates are not counted, so that a pair that is split over two texts counts once. */
export function countCodePoints(text: string): number {
  if (text.length < SEARCHED_CHARS_MIN) return withoutLows(text, 0, text.length);
  // V8 answers this without reading for a text that it stores with one byte per character, and reads others faster than a loop does.
  if (!SURROGATE.test(text)) return text.length;
  let count = 0;
  for (let from = 0; from < text.length; from += WINDOW_CHARS) {
    const to = Math.min(text.length, from + WINDOW_CHARS);
    count += SURROGATE.test(text.slice(from, to)) ? withoutLows(text, from, to) : to - from;
  }
  return count;
}

function withoutLows(text: string, from: number, to: number): number {
  let count = to - from;
  for (let at = from; at < to; at += 1) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) count -= 1;
  return count;
}
