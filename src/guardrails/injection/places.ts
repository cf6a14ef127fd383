import { limits } from '../../limits.ts';
import { HALF, letterBeyond, UNSEEN, UNSPACED } from '../entities/letters.ts';
import { ALONE, PARTNERS_OF, SPEAKER, wordTable } from './words.ts';

/**
 * The greatest distance of two words that form a phrase against a model's instructions, and the text that is read around them.
 */
const INJECTION_APART_CHARS_MAX = 100;
const INJECTION_REACH_CHARS_BEFORE = 120;
const INJECTION_REACH_CHARS_AFTER = 160;
/** The fewest consecutive groups of letters that may be a spelled-out word. */
const INJECTION_GROUPS_MIN = 6;
/** Shorter texts cannot hold a phrase in base64. */
const INJECTION_PACKED_CHARS_MIN = 16;

/** Stretches of a text that the rules read. */
export interface Places {
  /** Stretches of words, in order, disjoint: triples of start, end and the roles of the words that selected the stretch. */
  read: number[];
  /** Stretches that may be base64: pairs of start and end. */
  packed: number[];
  /** Stretches of short groups with digits: hexadecimal or character codes. */
  numbers: number[];
  /** Stretches of tag characters: invisible ASCII. */
  tags: number[];
  /** Whether the text has letters of scripts without spaces between words. */
  hasUnspaced: boolean;
}

const HIGH_TAGS = 0xdb40;

/** Whether a unit is a sign of base64 in either alphabet: `+`, `-`, `/` or `_`. */
function joinsPacked(code: number): boolean {
  return code === 0x2b || code === 0x2d || code === 0x2f || code === 0x5f;
}

/** The encodings that a group of letters and digits can belong to, as bits. */
const HEX = 1;
const BINARY = 2;
const DECIMAL = 4;

function groupKind(text: string, at: number, chars: number, digits: number): number {
  const first = text.charCodeAt(at) | 0x20;
  if (chars === 2) return digits === 2 ? HEX | DECIMAL : HEX;
  // 100 to 126, with or without a zero in front: first | 0x20 leaves digits as they are.
  if (chars === 3) return digits === 3 ? (first < 0x32 ? DECIMAL : 0) : first === 0x78 ? HEX : 0;
  if (chars === 4) return first === 0x30 && (text.charCodeAt(at + 1) | 0x20) === 0x78 ? HEX : 0;
  if (chars === 5) return first === 0x75 && text.startsWith('00', at + 1) ? HEX : 0;
  return chars === 8 && digits === 8 && first < 0x32 ? BINARY : 0;
}

/** Collects sequences of single letters and of groups of digits. */
function rowsOf(
  text: string,
  places: Places,
): { word(at: number, end: number, chars: number, digits: number, letter: number): void; end(): void } {
  /** The current sequence of single letters: its start, its length, its letters as bits, the end of the last one. */
  let singleAt = 0;
  let singles = 0;
  let singleLetters = 0;
  let singleEnd = 0;
  let numberAt = 0;
  let numbers = 0;
  let numberKinds = 0;
  let numberEnd = 0;
  const endSingles = () => {
    if (singles >= limits.injection_singles_min && bitsOf(singleLetters) >= SINGLE_LETTERS_MIN) {
      reach(places.read, singleAt, singleEnd, text.length, ALONE);
    }
    singles = 0;
    singleLetters = 0;
  };
  const endNumbers = () => {
    if (numbers >= INJECTION_GROUPS_MIN) places.numbers.push(numberAt, numberEnd);
    numbers = 0;
  };
  return {
    word(at, end, chars, digits, letter) {
      if (chars === 1) {
        if (singles > 0 && at - singleEnd > limits.injection_single_gap_chars_max) endSingles();
        if (singles === 0) singleAt = at;
        singles += 1;
        singleEnd = end;
        // The top five of the 31 bits of a weight.
        if (digits === 0) singleLetters |= 1 << (letter >>> 26);
      } else if (singles > 0) endSingles();
      const kind = digits > 0 && chars <= 8 ? groupKind(text, at, chars, digits) : 0;
      if (numbers > 0 && ((kind & numberKinds) === 0 || at - numberEnd > limits.injection_single_gap_chars_max)) {
        endNumbers();
      }
      if (kind === 0) return;
      if (numbers === 0) {
        numberAt = at;
        numberKinds = kind;
      }
      numbers += 1;
      numberKinds &= kind;
      numberEnd = end;
    },
    end() {
      endSingles();
      endNumbers();
    },
  };
}

/** Spelled-out phrases have at least this many different letters; lists of coordinates and of answers (a, b, c) have fewer. */
const SINGLE_LETTERS_MIN = 4;

function bitsOf(bits: number): number {
  let count = 0;
  for (let left = bits; left !== 0; left &= left - 1) count += 1;
  return count;
}

/** Finds in one pass the stretches with words of the rules, with spelled-out words and with possible encodings. */
export function placesOf(text: string): Places {
  const { weights, rolesOf } = wordTable();
  const places: Places = { read: [], packed: [], numbers: [], tags: [], hasUnspaced: false };
  const addWord = pairing(text, places.read);
  const rows = rowsOf(text, places);
  let sum = 0;
  let first = 0;
  let last = 0;
  let wordAt = -1;
  let wordChars = 0;
  let wordDigits = 0;
  let packedAt = 0;
  const { length } = text;
  for (let at = 0; at <= length; at += 1) {
    const code = at < length ? text.charCodeAt(at) : 0;
    let weight = weights[code] as number;
    if (weight <= UNSPACED) {
      if (weight === UNSEEN) continue;
      if (weight === UNSPACED) places.hasUnspaced = true;
      if (weight === HALF) {
        if (code === HIGH_TAGS) {
          const from = at;
          while (text.charCodeAt(at + 2) === HIGH_TAGS) at += 2;
          places.tags.push(from, Math.min(at + 2, length));
          at = Math.min(at + 1, length - 1);
          continue;
        }
        const letter = letterBeyond(text.codePointAt(at) ?? 0);
        weight = letter > UNSPACED ? (weights[letter] as number) : letter;
        if (weight > UNSPACED) at += 1;
        else if (code < 0xdc00) at += 1;
      }
      if (weight <= UNSPACED) {
        if (wordChars > 0) {
          const roles = rolesOf(sum, first, last);
          if (roles !== 0) addWord(roles, wordAt, at);
          rows.word(wordAt, at, wordChars, wordDigits, first);
          sum = 0;
          wordChars = 0;
          wordDigits = 0;
        }
        if (!joinsPacked(code)) {
          if (at - packedAt >= INJECTION_PACKED_CHARS_MIN) places.packed.push(packedAt, Math.min(at, length));
          packedAt = at + 1;
        }
        continue;
      }
    }
    if (wordChars === 0) {
      wordAt = at;
      first = weight;
    }
    wordChars += 1;
    sum = (sum + weight) | 0;
    last = weight;
    if (code <= 0x39) wordDigits += 1;
  }
  rows.end();
  return places;
}

/** Returns a function that takes the words with roles in order and records stretches with words that form a phrase. */
function pairing(text: string, stretches: number[]): (roles: number, start: number, end: number) => void {
  /** The start of the last word of each role. */
  const lastAt = new Int32Array(16).fill(-INJECTION_APART_CHARS_MAX - 1);
  return (roles, start, end) => {
    let from = -1;
    let combined = roles;
    if ((roles & ALONE) !== 0 || ((roles & SPEAKER) !== 0 && isMarked(text, start, end))) from = start;
    for (let partners = PARTNERS_OF[roles] as number; partners !== 0; partners &= partners - 1) {
      const at = lastAt[31 - Math.clz32(partners & -partners)] as number;
      if (start - at > INJECTION_APART_CHARS_MAX) continue;
      combined |= partners & -partners;
      if (from === -1 || at < from) from = at;
    }
    if (from !== -1) reach(stretches, from, end, text.length, combined);
    for (let left = roles; left !== 0; left &= left - 1) lastAt[31 - Math.clz32(left & -left)] = start;
  };
}

const SIGNS = new Set([...'<>[](){}#=*:：＜＞［］【】'].map((sign) => sign.charCodeAt(0)));

/** Whether a formatting sign is right before or after a word. */
function isMarked(text: string, start: number, end: number): boolean {
  for (let away = 0; away < 3; away += 1) {
    if (SIGNS.has(text.charCodeAt(start - 1 - away)) || SIGNS.has(text.charCodeAt(end + away))) return true;
  }
  return false;
}

/** Adds the surroundings of a place to the stretches. Joins them with earlier stretches that they touch. */
function reach(stretches: number[], start: number, end: number, length: number, roles: number): void {
  let from = Math.max(0, start - INJECTION_REACH_CHARS_BEFORE);
  let to = Math.min(length, end + INJECTION_REACH_CHARS_AFTER);
  let combined = roles;
  while (stretches.length > 0 && from <= (stretches.at(-2) as number)) {
    combined |= stretches.pop() as number;
    to = Math.max(to, stretches.pop() as number);
    from = Math.min(from, stretches.pop() as number);
  }
  stretches.push(from, to, combined);
}
