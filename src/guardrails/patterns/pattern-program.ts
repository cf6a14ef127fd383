import type { RE2JS } from 're2js';
import type { Span } from '../finding.ts';

/** An instruction of a program of re2js (its class `Inst`). */
interface Instruction {
  op: number;
  out: number;
  /** For a choice the second branch, for an assertion its required conditions. */
  arg: number;
  matchRune(rune: number): boolean;
}

/** Operations of re2js 2.10 (`Inst`). They are those of Go's `regexp/syntax`. */
const ops = {
  alt: 1,
  alt_match: 2,
  capture: 3,
  empty_width: 4,
  fail: 5,
  match: 6,
  nop: 7,
  rune: 8,
  rune_any_not_nl: 11,
};

/** Conditions on the position between two characters (`Utils.emptyOpContext` of re2js). */
const BEGIN_LINE = 1;
const END_LINE = 2;
const BEGIN_TEXT = 4;
const END_TEXT = 8;
const WORD_BOUNDARY = 16;
const NO_WORD_BOUNDARY = 32;

const NEWLINE = 10;
const isWord = (rune: number) =>
  (rune >= 0x30 && rune <= 0x39) || (rune >= 0x41 && rune <= 0x5a) || rune === 0x5f || (rune >= 0x61 && rune <= 0x7a);

function placeBetween(before: number, after: number): number {
  let place = isWord(before) === isWord(after) ? NO_WORD_BOUNDARY : WORD_BOUNDARY;
  if (before < 0) place |= BEGIN_TEXT | BEGIN_LINE;
  if (before === NEWLINE) place |= BEGIN_LINE;
  if (after < 0) place |= END_TEXT | END_LINE;
  if (after === NEWLINE) place |= END_LINE;
  return place;
}

const runeAt = (text: string, at: number) => text.codePointAt(at) ?? -1;
const widthOf = (rune: number) => (rune > 0xffff ? 2 : 1);

/** Concurrent threads of the match: instructions that wait for a character with the start of their match, in order of preference. */
class Threads {
  readonly #seen: Uint32Array;
  readonly pcs: Uint32Array;
  readonly starts: Uint32Array;
  size = 0;
  #round = 0;

  constructor(instructions: number) {
    this.#seen = new Uint32Array(instructions);
    this.pcs = new Uint32Array(instructions);
    this.starts = new Uint32Array(instructions);
  }

  clear(): void {
    this.size = 0;
    this.#round += 1;
  }

  /** Whether an instruction is seen for the first time since `clear`. */
  isNew(pc: number): boolean {
    if (this.#seen[pc] === this.#round) return false;
    this.#seen[pc] = this.#round;
    return true;
  }

  add(pc: number, start: number): void {
    this.pcs[this.size] = pc;
    this.starts[this.size] = start;
    this.size += 1;
  }
}

/** Passes over a text, in lengths of the text. A search that needs more reports covered ranges instead of preferred matches. */
const PASSES_MAX = 8;
const SLACK_CHARS = 4_096;
const LATIN = 0x100;

/**
 * Runs the program of a compiled pattern in time linear in the text, whatever the number of matches. re2js alone finds one match in
 * linear time, but all matches in quadratic time (`a.*b|a` over many a).
 */
export class PatternProgram {
  readonly #instructions: readonly Instruction[];
  readonly #start: number;
  readonly #first: Uint8Array;
  readonly #prefix: string;
  /** Number of instructions: the cost of one character. */
  readonly size: number;
  /** Whether all matches start with the same literal text. */
  readonly has_prefix: boolean;
  #now: Threads;
  #next: Threads;
  readonly #stack: Uint32Array;

  constructor(compiled: RE2JS) {
    const { prog, prefix } = compiled.re2() as { prog: { inst: Instruction[]; start: number }; prefix: string };
    this.#instructions = prog.inst;
    this.#start = prog.start;
    this.#prefix = prefix;
    this.has_prefix = prefix !== '';
    this.size = prog.inst.length;
    this.#now = new Threads(prog.inst.length);
    this.#next = new Threads(prog.inst.length);
    this.#stack = new Uint32Array(2 * prog.inst.length + 2);
    this.#first = this.#firstRunes();
  }

  /** The successive matches in a text, as RE2 finds them, without empty matches. */
  find(text: string): Span[] {
    const matches: Span[] = [];
    let budget = PASSES_MAX * text.length + SLACK_CHARS;
    for (let from = 0; from <= text.length; ) {
      const { match, scanned } = this.#search(text, from);
      if (match === undefined) return matches;
      if (match.end > match.start) matches.push(match);
      from = match.end > match.start ? match.end : match.end + widthOf(runeAt(text, match.end));
      budget -= scanned;
      if (budget < 0) return [...matches, ...this.#cover(text, from)];
    }
    return matches;
  }

  /** The first offset at which a match could still start or grow when more text follows. */
  heldFrom(text: string): number {
    this.#now.clear();
    let live = text.length;
    for (let at = 0; ; ) {
      if (this.#now.size === 0) at = this.#skip(text, at, true);
      if (at >= text.length) break;
      this.#begin(text, at);
      at = this.#advance(text, at, undefined, true);
    }
    for (let index = 0; index < this.#now.size; index += 1) {
      if (!this.#isMatch(this.#now.pcs[index]!)) live = Math.min(live, this.#now.starts[index]!);
    }
    // The text may end within a surrogate pair.
    const isCut = (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
    return Math.max(0, Math.min(live, this.#prefixHeldFrom(text), isCut ? text.length - 1 : live));
  }

  /** The first match at or after an offset, and the number of code units read to find it. */
  #search(text: string, from: number): { match?: Span; scanned: number } {
    const match = { start: -1, end: -1 };
    this.#now.clear();
    let at = from;
    for (;;) {
      if (this.#now.size === 0) {
        if (match.start >= 0) break;
        at = this.#skip(text, at, false);
        if (at > text.length) break;
      }
      if (match.start < 0) this.#begin(text, at);
      const isEnd = at >= text.length;
      at = this.#advance(text, at, match, false);
      if (isEnd) break;
    }
    const scanned = at - from;
    return match.start < 0 ? { scanned } : { match, scanned };
  }

  /** The ranges that matches can cover, each from a possible start to its longest end, in one pass. */
  #cover(text: string, from: number): Span[] {
    const spans: Span[] = [];
    this.#now.clear();
    for (let at = from; ; ) {
      if (this.#now.size === 0) at = this.#skip(text, at, false);
      if (at > text.length) return spans;
      this.#begin(text, at);
      for (let index = 0; index < this.#now.size; index += 1) {
        const start = this.#now.starts[index]!;
        if (!this.#isMatch(this.#now.pcs[index]!) || start === at) continue;
        while (spans.length > 0 && spans.at(-1)!.start >= start) spans.pop();
        const last = spans.at(-1);
        if (last !== undefined && last.end >= start) last.end = at;
        else spans.push({ start, end: at });
      }
      if (at === text.length) return spans;
      at = this.#advance(text, at, undefined, false);
    }
  }

  /** The next offset at which a match can start. `isOpen`: more text follows, so the end of the text is not known. */
  #skip(text: string, from: number, isOpen: boolean): number {
    if (this.#prefix !== '') {
      const at = text.indexOf(this.#prefix, from);
      return at < 0 ? text.length + 1 : at;
    }
    let at = from;
    while (at < text.length) {
      const unit = text.charCodeAt(at);
      if (unit >= LATIN || this.#first[unit] === 1) return at;
      at += 1;
    }
    return isOpen ? text.length : Math.max(from, text.length);
  }

  /** Starts a thread at an offset, after all earlier ones, if a match can start with the character there. */
  #begin(text: string, at: number): void {
    const unit = text.charCodeAt(at);
    if (unit < LATIN && this.#first[unit] === 0) return;
    const before = at === 0 ? -1 : text.charCodeAt(at - 1);
    this.#add(this.#now, this.#start, at, placeBetween(before, runeAt(text, at)));
  }

  /** Reads one character and returns the next offset. Writes a match to `match` and drops less preferred threads. */
  #advance(text: string, at: number, match: Span | undefined, isOpen: boolean): number {
    const [now, next] = [this.#now, this.#next];
    next.clear();
    const rune = runeAt(text, at);
    const after = at + (rune < 0 ? 0 : widthOf(rune));
    const isLast = after >= text.length;
    const place = isOpen && isLast ? -1 : placeBetween(rune, runeAt(text, after));
    for (let index = 0; index < now.size; index += 1) {
      const instruction = this.#instructions[now.pcs[index]!]!;
      const start = now.starts[index]!;
      if (instruction.op === ops.match) {
        if (match === undefined) continue;
        match.start = start;
        match.end = at;
        break;
      }
      if (rune >= 0 && reads(instruction, rune)) this.#add(next, instruction.out, start, place);
    }
    this.#now = next;
    this.#next = now;
    return after;
  }

  #isMatch(pc: number): boolean {
    return this.#instructions[pc]!.op === ops.match;
  }

  /** Adds the instructions reached without reading a character. With `place` -1 the position is unknown, and all conditions on it count as met. */
  #add(threads: Threads, first: number, start: number, place: number): void {
    const stack = this.#stack;
    stack[0] = first;
    for (let size = 1; size > 0; ) {
      size -= 1;
      const pc = stack[size]!;
      if (!threads.isNew(pc)) continue;
      const instruction = this.#instructions[pc]!;
      const { op } = instruction;
      if (op === ops.alt || op === ops.alt_match) {
        stack[size] = instruction.arg;
        stack[size + 1] = instruction.out;
        size += 2;
      } else if (op === ops.capture || op === ops.nop) {
        stack[size] = instruction.out;
        size += 1;
      } else if (op === ops.empty_width) {
        if (place !== -1 && (instruction.arg & ~place) !== 0) continue;
        // At the end of an unfinished text the next character decides: the assertion itself waits.
        if (place === -1) threads.add(pc, start);
        else {
          stack[size] = instruction.out;
          size += 1;
        }
      } else if (op !== ops.fail) threads.add(pc, start);
    }
  }

  /** Which of the first 256 characters a match can start with. All of them if a match can be empty. */
  #firstRunes(): Uint8Array {
    const first = new Uint8Array(LATIN);
    this.#now.clear();
    // All conditions hold here; `#begin` checks them at the actual position.
    this.#add(
      this.#now,
      this.#start,
      0,
      BEGIN_LINE | END_LINE | BEGIN_TEXT | END_TEXT | WORD_BOUNDARY | NO_WORD_BOUNDARY,
    );
    for (let index = 0; index < this.#now.size; index += 1) {
      const instruction = this.#instructions[this.#now.pcs[index]!]!;
      for (let rune = 0; rune < LATIN; rune += 1) {
        if (instruction.op === ops.match || reads(instruction, rune)) first[rune] = 1;
      }
    }
    return first;
  }

  /** The offset of a partial prefix at the end of a text. The length of the text if there is none. */
  #prefixHeldFrom(text: string): number {
    const prefix = this.#prefix;
    for (let length = Math.min(prefix.length - 1, text.length); length > 0; length -= 1) {
      if (text.endsWith(prefix.slice(0, length))) return text.length - length;
    }
    return text.length;
  }
}

function reads(instruction: Instruction, rune: number): boolean {
  const { op } = instruction;
  if (op < ops.rune) return false;
  if (op < ops.rune + 2) return instruction.matchRune(rune);
  return op !== ops.rune_any_not_nl || rune !== NEWLINE;
}
