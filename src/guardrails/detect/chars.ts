const WORD = 1;
const DIGIT = 2;
const HEX = 4;

const kinds = new Uint8Array(0x80);
const mark = (characters: string, kind: number) => {
  for (const character of characters) kinds[character.charCodeAt(0)]! |= kind;
};
mark('0123456789', WORD | DIGIT | HEX);
mark('abcdefABCDEF', HEX);
mark('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_', WORD);

const kindOf = (unit: number) => (unit < 0x80 ? kinds[unit]! : 0);

/** Of units of UTF-16; NaN, which stands beyond the ends of a text, is nothing. */
export const isDigit = (unit: number) => (kindOf(unit) & DIGIT) !== 0;
export const isHex = (unit: number) => (kindOf(unit) & HEX) !== 0;
/** An ASCII letter, a digit or an underscore. Other scripts write no spaces, and glue nothing to what is written in ASCII. */
export const isWord = (unit: number) => (kindOf(unit) & WORD) !== 0;

const BACKSLASH = 0x5c;

/** Whether a word ends just before an offset; the letter of an escape sequence (\n in JSON) is none. */
export function isGluedLeft(text: string, at: number): boolean {
  const unit = text.charCodeAt(at - 1);
  if (!isWord(unit)) return false;
  const isEscape = text.charCodeAt(at - 2) === BACKSLASH && 'nrtbf'.includes(text.charAt(at - 1));
  return !isEscape;
}

/** The text before an offset, as far back as detectors look for words that say what a number is. */
export function wordsBefore(text: string, at: number): string {
  return text.slice(Math.max(0, at - 40), at);
}
