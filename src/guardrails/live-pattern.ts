import type { RE2JS } from 're2js';

/**
 * Where in a text that goes on a match of one pattern might still begin, or grow: everything before that offset is settled,
 * whatever follows. The text's length where nothing is under way. Linear in the text.
 */
export type LivePattern = (text: string) => number;

/** Instructions of a compiled program (re2js 2.10, `Inst`): the same as those of Go's regexp/syntax. */
const ALT = 1;
const ALT_MATCH = 2;
const EMPTY_WIDTH = 4;
const FAIL = 5;
const MATCH = 6;
const RUNE = 8;
const RUNE1 = 9;
const RUNE_ANY = 10;
const RUNE_ANY_NOT_NL = 11;

/** What an assertion asks for (`Utils.EMPTY_*`, in bits). */
const BEGIN_LINE = 0x01;
const END_LINE = 0x02;
const BEGIN_TEXT = 0x04;
const END_TEXT = 0x08;
const WORD_BOUNDARY = 0x10;
const NO_WORD_BOUNDARY = 0x20;

interface Instruction {
  op: number;
  out: number;
  arg: number;
  runes: ArrayLike<number>;
  matchRune(rune: number): boolean;
}

const ASCII = 128;
const NONE = -1;
/** Nothing is known of what follows the text yet. */
const UNKNOWN = -2;
const LINE_FEED = 10;

function isWordChar(rune: number): boolean {
  return (rune >= 48 && rune <= 57) || (rune >= 65 && rune <= 90) || rune === 95 || (rune >= 97 && rune <= 122);
}

/** Whether an assertion holds between two characters; undefined: that depends on what follows. */
function holds(asked: number, before: number, after: number): boolean | undefined {
  if ((asked & BEGIN_TEXT) !== 0 && before !== NONE) return false;
  if ((asked & BEGIN_LINE) !== 0 && before !== NONE && before !== LINE_FEED) return false;
  if (after === UNKNOWN) return (asked & ~(BEGIN_TEXT | BEGIN_LINE)) === 0 ? true : undefined;
  if ((asked & END_TEXT) !== 0) return false;
  if ((asked & END_LINE) !== 0 && after !== LINE_FEED) return false;
  const is_boundary = isWordChar(before) !== isWordChar(after);
  if ((asked & WORD_BOUNDARY) !== 0 && !is_boundary) return false;
  return (asked & NO_WORD_BOUNDARY) === 0 || !is_boundary;
}

/**
 * Follows a compiled pattern as a machine of many states (Thompson's construction, as RE2 runs it), and keeps of each state
 * only where the earliest match began that is in it.
 */
export function createLivePattern(compiled: RE2JS): LivePattern {
  const { inst, start } = compiled.re2Input.prog as unknown as { inst: Instruction[]; start: number };
  /** Where the earliest match began that reached an instruction with this character; of which step the entry is. */
  const began = new Int32Array(inst.length);
  const step_of = new Int32Array(inst.length);
  let step = 0;
  let current: number[] = [];
  let next: number[] = [];
  const stack: number[] = [];
  /** The earliest that waits for what follows the text. */
  let waiting = 0;
  const first = firstRunes(inst, start);

  /** Enters all instructions that are reached without a character. */
  function enter(list: number[], from: number, at: number, before: number, after: number): void {
    stack.push(from);
    while (stack.length > 0) {
      const pc = stack.pop()!;
      if (step_of[pc] === step && began[pc]! <= at) continue;
      const is_new = step_of[pc] !== step;
      step_of[pc] = step;
      began[pc] = at;
      const { op, out, arg } = inst[pc]!;
      if (op === FAIL || op === MATCH) continue;
      if (op === ALT || op === ALT_MATCH) stack.push(arg, out);
      else if (op >= RUNE && op <= RUNE_ANY_NOT_NL) {
        if (is_new) list.push(pc);
      } else if (op !== EMPTY_WIDTH) stack.push(out);
      else {
        const held = holds(arg, before, after);
        if (held === true) stack.push(out);
        else if (held === undefined && at < waiting) waiting = at;
      }
    }
  }

  return (text) => {
    // A pair that is half told is nothing yet.
    const last = text.charCodeAt(text.length - 1);
    const end = last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length;
    current.length = 0;
    waiting = text.length;
    let before = NONE;
    let at = 0;
    while (at < end) {
      if (current.length === 0) {
        while (at < end) {
          const unit = text.charCodeAt(at);
          if (unit >= ASCII || first[unit] === 1) break;
          at += 1;
        }
        if (at >= end) break;
        before = at === 0 ? NONE : codeBefore(text, at);
        step += 1;
      }
      const rune = text.codePointAt(at)!;
      enter(current, start, at, before, rune);
      const after_at = at + (rune > 0xffff ? 2 : 1);
      const after = after_at < end ? text.codePointAt(after_at)! : UNKNOWN;
      step += 1;
      // What the step before reached is read before this one writes over it: an instruction is in one list at a time.
      const begins = current.map((pc) => began[pc]!);
      next.length = 0;
      for (let i = 0; i < current.length; i += 1) {
        const { op, out, runes } = inst[current[i]!]!;
        const taken =
          op === RUNE_ANY ||
          (op === RUNE_ANY_NOT_NL && rune !== LINE_FEED) ||
          (op === RUNE1 && runes.length === 1 && runes[0] === rune) ||
          ((op === RUNE || op === RUNE1) && inst[current[i]!]!.matchRune(rune));
        if (taken) enter(next, out, begins[i]!, rune, after);
      }
      [current, next] = [next, current];
      before = rune;
      at = after_at;
    }
    let earliest = Math.min(waiting, end);
    if (at >= end) for (const pc of current) earliest = Math.min(earliest, began[pc]!);
    return earliest;
  };
}

function codeBefore(text: string, at: number): number {
  return text.codePointAt(at >= 2 && /[\udc00-\udfff]/.test(text[at - 1]!) ? at - 2 : at - 1)!;
}

/** By ASCII code, 1 where a match may begin with that character. */
function firstRunes(inst: readonly Instruction[], start: number): Uint8Array {
  const first = new Uint8Array(ASCII);
  const seen = new Set<number>();
  const stack = [start];
  while (stack.length > 0) {
    const pc = stack.pop()!;
    if (seen.has(pc)) continue;
    seen.add(pc);
    const one = inst[pc]!;
    const { op, out, arg } = one;
    if (op === FAIL || op === MATCH) continue;
    if (op === ALT || op === ALT_MATCH) stack.push(out, arg);
    else if (op < RUNE || op > RUNE_ANY_NOT_NL) stack.push(out);
    else {
      for (let rune = 0; rune < ASCII; rune += 1) {
        if (op === RUNE_ANY || (op === RUNE_ANY_NOT_NL && rune !== LINE_FEED) || one.matchRune(rune)) first[rune] = 1;
      }
    }
  }
  return first;
}
