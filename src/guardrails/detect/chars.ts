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

/** For UTF-16 code units. False for NaN, which `charCodeAt` returns outside of a text. */
export const isDigit = (unit: number) => (kindOf(unit) & DIGIT) !== 0;
export const isHex = (unit: number) => (kindOf(unit) & HEX) !== 0;
/** An ASCII letter, digit or underscore. Letters of other scripts do not extend an ASCII word: some of these scripts use no spaces. */
export const isWord = (unit: number) => (kindOf(unit) & WORD) !== 0;

const BACKSLASH = 0x5c;

/** Whether a word ends just before an offset. The letter of an escape sequence (\n in JSON) is not a word. */
export function isGluedLeft(text: string, at: number): boolean {
  const unit = text.charCodeAt(at - 1);
  if (!isWord(unit)) return false;
  const isEscape = text.charCodeAt(at - 2) === BACKSLASH && 'nrtbf'.includes(text.charAt(at - 1));
  return !isEscape;
}

/** The 40 code units before an offset, in which detectors look for labels of a number. */
export function wordsBefore(text: string, at: number): string {
  return text.slice(Math.max(0, at - 40), at);
}
