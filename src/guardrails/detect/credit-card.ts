import type { Span } from '../finding.ts';
import { isDigit, isGluedLeft, isHex, isWord } from './chars.ts';
import { gaps, type NumberRun } from './number-run.ts';

const DIGITS_MIN = 12;
const CARD_DIGITS_MAX = 19;

/** Issuers' ranges of ISO/IEC 7812 registries: `[from, to, lengths]`, prefixes of one length and the numbers of digits. */
const ISSUERS: readonly (readonly [from: number, to: number, lengths: readonly number[]])[] = [
  // Visa
  [4, 4, [13, 16, 19]],
  // Mastercard
  [51, 55, [16]],
  [2221, 2720, [16]],
  // American Express
  [34, 34, [15]],
  [37, 37, [15]],
  // Discover
  [6011, 6011, [16, 17, 18, 19]],
  [644, 659, [16, 17, 18, 19]],
  // Diners Club
  [300, 305, [14, 16]],
  [3095, 3095, [14, 16]],
  [36, 36, [14]],
  [38, 39, [14, 16]],
  // JCB
  [3528, 3589, [16, 17, 18, 19]],
  // UnionPay
  [62, 62, [16, 17, 18, 19]],
  [81, 81, [16, 17, 18, 19]],
  // Maestro
  [5018, 5018, [12, 13, 14, 15, 16, 17, 18, 19]],
  [5020, 5020, [12, 13, 14, 15, 16, 17, 18, 19]],
  [5038, 5038, [12, 13, 14, 15, 16, 17, 18, 19]],
  [5893, 5893, [12, 13, 14, 15, 16, 17, 18, 19]],
  [6304, 6304, [12, 13, 14, 15, 16, 17, 18, 19]],
  [6759, 6763, [12, 13, 14, 15, 16, 17, 18, 19]],
  // Mir, RuPay, Elo, Hipercard, Verve, Troy
  [2200, 2204, [16, 17, 18, 19]],
  [508, 508, [16]],
  [5090, 5099, [16]],
  [6062, 6062, [16]],
  [5061, 5061, [16, 18, 19]],
  [9792, 9792, [16]],
];

/** The ranges of the first six digits, each with its lengths as a bit set. */
const RANGES = ISSUERS.map(([from, to, lengths]) => {
  const scale = 10 ** (6 - String(from).length);
  return {
    from: from * scale,
    to: (to + 1) * scale,
    lengths: lengths.reduce((bits, length) => bits | (1 << length), 0),
  };
});

/** The sizes of groups of digits as one number, four bits each. */
const shapeOf = (...sizes: number[]) => sizes.reduce((shape, size) => shape * 16 + size, 0);
/** Groups as printed on cards: groups of four, those of American Express and Diners Club, and long numbers. */
const PRINTED: readonly number[] = [
  shapeOf(4, 4, 4, 4),
  shapeOf(4, 6, 5),
  shapeOf(4, 6, 4),
  shapeOf(4, 4, 4, 4, 3),
  shapeOf(4, 4, 4, 1),
  shapeOf(4, 4, 4, 2),
];

function hasIssuer(number: string): boolean {
  const prefix = Number(number.slice(0, 6));
  const length = 1 << number.length;
  for (const range of RANGES) {
    if (prefix >= range.from && prefix < range.to && (range.lengths & length) !== 0) return true;
  }
  return false;
}

/** The check digit of ISO/IEC 7812, annex B. */
function passesLuhn(number: string): boolean {
  let sum = 0;
  for (let index = number.length - 1, isDoubled = false; index >= 0; index -= 1, isDoubled = !isDoubled) {
    const digit = number.charCodeAt(index) - 0x30;
    const doubled = digit > 4 ? digit * 2 - 9 : digit * 2;
    sum += isDoubled ? doubled : digit;
  }
  return sum % 10 === 0;
}

/** Whether a separator can stand within a number. */
const isJoin = (gap: number) => gap === gaps.dash || gap === gaps.space || gap === gaps.mixed;

/** Whether digits are part of a word, a telephone number, a decimal fraction or a UUID. */
function isPart(text: string, start: number, end: number): boolean {
  if (isGluedLeft(text, start) || isWord(text.charCodeAt(end))) return true;
  const isDialled = text.charAt(start - 1) === '+';
  const isFraction = text.charAt(start - 1) === '.' && isDigit(text.charCodeAt(start - 2));
  const isWhole = text.charAt(end) === '.' && isDigit(text.charCodeAt(end + 1));
  const isUuid = text.charAt(start - 1) === '-' && text.charAt(start - 6) === '-' && isHex(text.charCodeAt(start - 2));
  return isDialled || isFraction || isWhole || isUuid;
}

/** The issuers' ranges start with 2 to 6, 8 and 9. */
const isFirst = (unit: number) => unit > 0x31 && unit !== 0x37;

/** The payment card number that starts with a group of digits. */
export function cardAt(run: NumberRun, first: number): Span | undefined {
  if (!isJoin(run.gap(first)) && run.size(first) < DIGITS_MIN) return undefined;
  if (!isFirst(run.text.charCodeAt(run.start(first)))) return undefined;
  let shape = 0;
  const isChunk = !isJoin(run.gap(first - 1));
  // Among other numbers only printed groups and undivided numbers are cards.
  if (!isChunk && run.size(first) !== 4 && run.size(first) < DIGITS_MIN) return undefined;
  for (let last = first; last < run.count; last += 1) {
    const digits = run.digitsOf(first, last);
    if (digits > CARD_DIGITS_MAX) return undefined;
    shape = shape * 16 + run.size(last);
    const isEnd = !isJoin(run.gap(last));
    if (digits >= DIGITS_MIN && ((isChunk && isEnd) || first === last || PRINTED.includes(shape))) {
      const [start, end] = [run.start(first), run.end(last)];
      const number = run.number(first, last);
      if (passesLuhn(number) && hasIssuer(number) && !isPart(run.text, start, end)) return { start, end };
    }
    if (isEnd) return undefined;
  }
  return undefined;
}
