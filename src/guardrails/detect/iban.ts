import { isWord } from './chars.ts';

/** ISO 13616: the shortest are Norway's, the longest is the maximum of the standard. */
const LENGTH_MIN = 15;
const LENGTH_MAX = 34;
const LETTER = /[A-Za-z]/;

/**
 * The end of the account number (IBAN, with valid check digits) whose check digits are at an offset.
 * Undefined if there is none.
 */
export function ibanEnd(text: string, at: number): number | undefined {
  if (!LETTER.test(text.charAt(at - 1)) || !LETTER.test(text.charAt(at - 2)) || isWord(text.charCodeAt(at - 3))) {
    return undefined;
  }
  let end: number | undefined;
  let rest = 0;
  let length = 0;
  const head = [text.charCodeAt(at - 2), text.charCodeAt(at - 1), text.charCodeAt(at), text.charCodeAt(at + 1)];
  for (let index = at + 2; length < LENGTH_MAX - head.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit === 0x20 || unit === 0x2d) continue;
    if (!isWord(unit) || unit === 0x5f) break;
    rest = pushed(rest, unit);
    length += 1;
    const isEnd = !isWord(text.charCodeAt(index + 1));
    if (isEnd && length + head.length >= LENGTH_MIN && head.reduce(pushed, rest) === 1) end = index + 1;
  }
  return end;
}

/** The remainder modulo 97 of a number with one more character. Letters count as 10 to 35 (ISO 7064). */
function pushed(rest: number, unit: number): number {
  if (unit < 0x3a) return (rest * 10 + unit - 0x30) % 97;
  return (rest * 100 + (unit & 0x1f) + 9) % 97;
}
