import { limits } from '../../limits.ts';
import { BREAK, HALF, letterBeyond, letters, UNSEEN, UNSPACED } from '../entities/letters.ts';
import { KNOWN_WORDS, SUSPICIOUS_WORDS, unscrambled, withoutDigits } from './words.ts';

/** A stretch of a text as the rules read it: normalized words with their offsets. */
export interface Reading {
  /** ` word word . word `: one space around each word, and a dot at the end of each sentence. */
  line: string;
  /** The start of each word in the line, and its start and end in the text. */
  positions: number[];
  starts: number[];
  ends: number[];
  /** Indexes of the words whose letters were scrambled. */
  scrambled: number[];
}

/** Longer words are cut: every gap in a rule has a bounded length. */
const WORD_CHARS_MAX = 32;
const SENTENCE_END = /[.!?;:…]/;
const SPACE = /\s/;
const LONG_RULE_CHARS = 12;

interface Letters {
  word: string;
  start: number;
  end: number;
}

/** Reads a stretch of a text. */
export function readingOf(text: string, from: number, to: number): Reading {
  const draft: Draft = { words: [], starts: [], ends: [], scrambled: [] };
  const singles: Letters[] = [];
  let word = '';
  let start = from;
  let gapAt = from;
  const endSingles = () => {
    if (singles.length >= limits.injection_singles_min) spellOut(draft, singles);
    else for (const one of singles) add(draft, one.word, one.start, one.end);
    singles.length = 0;
  };
  const endWord = (end: number) => {
    if (word === '') return;
    const gap = text.slice(gapAt, start);
    const last = singles.at(-1);
    if (last !== undefined && start - last.end > limits.injection_single_gap_chars_max) endSingles();
    // Single letters with one sign between them are one word.
    if (word.length > 1 || singles.length === 0) {
      if (word.length > 1) endSingles();
      if (endsSentence(gap)) endSentence(draft);
    }
    if (word.length === 1) singles.push({ word, start, end });
    else add(draft, word, start, end, gap === '_');
    gapAt = end;
    word = '';
  };
  const all = letters();
  for (let at = from; at < to; ) {
    const code = text.charCodeAt(at);
    const read = all[code] ?? BREAK;
    const letter = read === HALF ? letterBeyond(text.codePointAt(at) ?? 0) : read;
    const units = read === HALF && code < 0xdc00 ? 2 : 1;
    const sign = text[at] ?? '';
    if (letter > UNSPACED || ((sign === '@' || sign === '$') && isBeforeLetter(text, at))) {
      if (word === '') start = at;
      if (word.length < WORD_CHARS_MAX) word += letter > UNSPACED ? String.fromCharCode(letter) : sign;
    } else if (letter !== UNSEEN) endWord(at);
    at += units;
  }
  endWord(to);
  endSingles();
  if (endsSentence(text.slice(gapAt, to))) endSentence(draft);
  const positions: number[] = [];
  let position = 1;
  for (const one of draft.words) {
    if (one !== '.') positions.push(position);
    position += one.length + 1;
  }
  const { starts, ends, scrambled } = draft;
  return { line: ` ${draft.words.join(' ')} `, positions, starts, ends, scrambled };
}

/** A reading under construction. `words` has a dot at the end of each sentence. */
interface Draft extends Pick<Reading, 'starts' | 'ends' | 'scrambled'> {
  words: string[];
}

function isBeforeLetter(text: string, at: number): boolean {
  return (letters()[text.charCodeAt(at + 1)] ?? BREAK) > UNSPACED;
}

/** Whether the text between two words ends a sentence: a punctuation mark before a space, an empty line, a horizontal rule. */
function endsSentence(gap: string): boolean {
  if (gap.length <= 1) return false;
  if (gap.length > LONG_RULE_CHARS) return true;
  for (let at = 0; at < gap.length; at += 1) {
    if (SENTENCE_END.test(gap[at] ?? '') && (at + 1 === gap.length || SPACE.test(gap[at + 1] ?? ''))) return true;
  }
  return /\n\s*\n/.test(gap);
}

function endSentence(draft: Draft): void {
  if (draft.words.length > 0 && draft.words.at(-1) !== '.') draft.words.push('.');
}

function add(draft: Draft, word: string, start: number, end: number, isJoined = false): void {
  let meant = word;
  if (!KNOWN_WORDS.has(word)) {
    const plain = withoutDigits(word);
    const ordered = plain === undefined ? unscrambled(word) : undefined;
    meant = plain ?? ordered ?? word;
    if (ordered !== undefined && SUSPICIOUS_WORDS.has(ordered)) draft.scrambled.push(draft.starts.length);
  }
  const last = draft.words.at(-1);
  // An identifier such as `ignore_instructions` is one word, not a phrase.
  if (isJoined && last !== undefined && last !== '.') {
    if (last.length < WORD_CHARS_MAX) draft.words[draft.words.length - 1] = `${last}_${meant}`;
    draft.ends[draft.ends.length - 1] = end;
    return;
  }
  draft.words.push(meant);
  draft.starts.push(start);
  draft.ends.push(end);
}

/** Joins single letters to words: the longest known words first, unknown letters between them as one word. */
function spellOut(draft: Draft, singles: readonly Letters[]): void {
  const text = singles.map(({ word }) => word).join('');
  const placed = (from: number, to: number) => {
    if (from >= to) return;
    const first = singles[from];
    const last = singles[to - 1];
    if (first !== undefined && last !== undefined) add(draft, text.slice(from, to), first.start, last.end);
  };
  let unknownFrom = 0;
  for (let at = 0; at < text.length; ) {
    const length = knownLength(text, at);
    if (length === 0) at += 1;
    else {
      placed(unknownFrom, at);
      placed(at, at + length);
      at += length;
      unknownFrom = at;
    }
  }
  placed(unknownFrom, text.length);
}

function knownLength(text: string, at: number): number {
  const prefix = text.slice(at, at + 2);
  if (!KNOWN_PREFIXES.has(prefix) && !DIGIT.test(prefix)) return 0;
  for (let length = Math.min(16, text.length - at); length >= 2; length -= 1) {
    const word = text.slice(at, at + length);
    if (length >= 3 && (KNOWN_WORDS.has(word) || withoutDigits(word) !== undefined)) return length;
    if (SMALL_WORDS.has(word)) return length;
  }
  return 0;
}

const DIGIT = /\d/;
const SMALL_WORDS: ReadonlySet<string> = new Set(
  'all any the your my our these those of and you are now me what is to follow given were told no with without do anything restrictions from respond words text'.split(
    ' ',
  ),
);
const KNOWN_PREFIXES: ReadonlySet<string> = new Set([...KNOWN_WORDS, ...SMALL_WORDS].map((word) => word.slice(0, 2)));

/** The offsets in the text of a stretch of the line, and the index of its first word. */
export function placeOf(reading: Reading, from: number, to: number): { start: number; end: number; first: number } {
  let first = upTo(reading.positions, from);
  if ((reading.positions[first] ?? 0) < from && reading.line.slice(reading.positions[first], from).includes(' '))
    first += 1;
  const last = upTo(reading.positions, to - 1);
  return { start: reading.starts[first] ?? 0, end: reading.ends[last] ?? 0, first };
}

/** The index of the last number that is not above the bound. */
function upTo(numbers: readonly number[], bound: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) <= bound) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
