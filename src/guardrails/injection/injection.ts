import { unitsFolded } from '../entities/letters.ts';
import { decodedStretches } from './encodings.ts';
import { UNSPACED_PHRASES } from './languages.ts';
import { MARK_RULES, TOKEN_RULES } from './marks.ts';
import { placesOf } from './places.ts';
import { placeOf, type Reading, readingOf } from './reading.ts';
import { HOW_TO_BEFORE, NEGATION_BEFORE, phraseRules } from './rules.ts';
import { ALONE, SUSPICIOUS_WORDS } from './words.ts';

/** How often a decoded text is decoded again. */
const INJECTION_DECODED_DEPTH_MAX = 2;

/** An injection attempt in a text (UTF-16 offsets, end exclusive) and its family. */
export interface Injection {
  start: number;
  end: number;
  pattern: string;
}

/** Finds injection attempts in a text, in order of `start`. They may overlap. Takes time linear in the text. */
export function findInjections(text: string): Injection[] {
  return injectionsIn(text, 0);
}

function injectionsIn(text: string, depth: number): Injection[] {
  const injections: Injection[] = [];
  const places = placesOf(text);
  for (let at = 0; at < places.read.length; at += 3) {
    const [from = 0, to = 0, roles = 0] = places.read.slice(at, at + 3);
    readStretch(text, from, to, (roles & ALONE) !== 0, injections);
  }
  if (text.includes('<|') || text.includes('｜') || text.includes('_of_turn>') || text.includes('<extra_id_')) {
    for (const { pattern, expression } of TOKEN_RULES) addAll(text, 0, pattern, expression, injections);
  }
  if (places.hasUnspaced) {
    for (const { pattern, expression } of UNSPACED_PHRASES) addAll(text, 0, pattern, expression, injections);
  }
  if (depth < INJECTION_DECODED_DEPTH_MAX) {
    for (const { start, end, decoded, pattern } of decodedStretches(text, places)) {
      if (isSuspicious(decoded) || injectionsIn(decoded, depth + 1).length > 0)
        injections.push({ start, end, pattern });
    }
  }
  return injections.sort((a, b) => a.start - b.start || a.end - b.end);
}

function addAll(text: string, from: number, pattern: string, expression: RegExp, injections: Injection[]): void {
  for (const { index, 0: match } of text.matchAll(expression)) {
    const blank = match.length - match.trimStart().length;
    injections.push({ start: from + index + blank, end: from + index + match.length, pattern });
  }
}

/** Words of the other languages of the rules that are not English words. */
const FOREIGN =
  / (?:deine?n?|dir|alle|du|ihre?|sie|keine|ton|tes|votre|vos|les|des|toutes|tu|vous|ne|tus?|todas|las|los|del|por|suas?|seus?|tuas|voce|tuo|tue|il|le) /;

/** Every mark contains one of these words. */
const HAS_MARK = /system|sys|admin|developer|assistant|instruction|prompt|inst\]|role|root/;

function readStretch(text: string, from: number, to: number, isForeign: boolean, injections: Injection[]): void {
  const reading = readingOf(text, from, to);
  for (const { pattern, expression, needs, isCommon, spelled } of phraseRules(
    isForeign || FOREIGN.test(reading.line),
  )) {
    if (!needs.test(reading.line)) continue;
    for (const { index, 0: match } of reading.line.matchAll(expression)) {
      const before = sentenceBefore(reading.line, index);
      if (NEGATION_BEFORE.test(before) || (isCommon && HOW_TO_BEFORE.test(before))) continue;
      const { start, end } = placeOf(reading, index + 1, index + match.length);
      if (spelled?.test(text.slice(start, end)) === false) continue;
      injections.push({ start, end, pattern });
    }
  }
  addScrambled(reading, injections);
  const units = unitsFolded(text.slice(from, to));
  if (!HAS_MARK.test(units)) return;
  const padded = from === 0 ? `\n${units}` : units;
  for (const { pattern, expression } of MARK_RULES)
    addAll(padded, from === 0 ? -1 : from, pattern, expression, injections);
}

/** How much of the sentence before a phrase is checked for its context. */
const SENTENCE_CHARS_MAX = 160;

function sentenceBefore(line: string, index: number): string {
  const before = line.slice(Math.max(0, index - SENTENCE_CHARS_MAX), index + 1);
  return before.slice(before.lastIndexOf(' . ') + 1, -1);
}

const SCRAMBLED_APART_MAX = 6;
const ORDERING: ReadonlySet<string> = new Set(['ignore', 'bypass', 'override', 'reveal', 'delete']);

/** Reports two suspicious words close together of which one is scrambled and one is an order: two such typing errors are no accident. */
function addScrambled({ line, positions, starts, ends, scrambled }: Reading, injections: Injection[]): void {
  const wordAt = (at: number) => line.slice(positions[at], positions[at + 1] ?? line.length).split(' ', 1)[0] ?? '';
  const areScrambled = new Set(scrambled);
  let reportedTo = -1;
  for (const at of scrambled) {
    if (at <= reportedTo) continue;
    for (let other = Math.max(0, at - SCRAMBLED_APART_MAX); other <= at + SCRAMBLED_APART_MAX; other += 1) {
      if (other === at || other >= positions.length || !SUSPICIOUS_WORDS.has(wordAt(other))) continue;
      if (!areScrambled.has(other) && !ORDERING.has(wordAt(at)) && !ORDERING.has(wordAt(other))) continue;
      const first = Math.min(at, other);
      const last = Math.max(at, other);
      injections.push({ start: starts[first] ?? 0, end: ends[last] ?? 0, pattern: 'scrambled_words' });
      reportedTo = last;
      break;
    }
  }
}

const DECODED_PHRASE_CHARS_MAX = 400;

/** Whether a decoded text is a short sentence with an order: encoding such a sentence is suspicious by itself. */
function isSuspicious(decoded: string): boolean {
  if (decoded.length > DECODED_PHRASE_CHARS_MAX || !/^[\p{L}\p{N}\s.,:;!?'"()-]+$/u.test(decoded)) return false;
  return ORDER.test(decoded);
}

const ORDER = /\b(?:ignore|bypass|override|reveal)\b[\s\S]{0,200}?\s\p{L}|\bsystem\W{1,3}prompt\b/iu;
