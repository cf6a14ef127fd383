import type { RE2Set } from 're2js';
import { visibleTextOf } from '../unseen.ts';
import { translatedPattern } from './pattern.ts';
import { compileSteps } from './pattern-cost.ts';
import { PatternProgram } from './pattern-program.ts';
import { re2 } from './re2.ts';

/** Steps of compilation before other requests are served. */
const FILTER_COMPILE_SLICE_STEPS = 4_000;
/** Instructions of patterns that are matched together, and the memory for the states of the match. */
const FILTER_GROUP_SIZE_MAX = 3_000;
const FILTER_STATES_BYTES_MAX = 1024 * 1024;

/** Called with each match: the index of its pattern and its offsets. */
export type PatternMatch = (pattern: number, start: number, end: number) => void;

/** Patterns that are matched together: one pass over a text shows which of them match at all. */
interface Group {
  set: RE2Set;
  patterns: number[];
  size: number;
}

/**
 * Finds matches of users' patterns in time linear in the text. Both the text as written and the text without invisible
 * characters are matched, so that invisible characters do not hide a match.
 */
export class CustomPatterns {
  readonly #programs: PatternProgram[] = [];
  /** Indexes of patterns that are faster to match on their own, by their literal prefix. */
  readonly #alone: number[] = [];
  readonly #groups: Group[] = [];
  /** The rest of the compilation, one part at a time. Undefined if all patterns are compiled. */
  #compiling: Iterator<undefined> | undefined;
  /** The error of the compilation. Later calls throw it again: without it they would report no matches. */
  #fault: { error: unknown } | undefined;

  constructor(patterns: readonly string[]) {
    this.#compiling = this.#compile(patterns);
  }

  /** Compiles the patterns in parts, with pauses. `find` without it compiles all at once. Undefined if all are compiled. */
  prepare(pause: () => Promise<void>): Promise<void> | undefined {
    return this.#compiling === undefined ? undefined : this.#prepare(pause);
  }

  async #prepare(pause: () => Promise<void>): Promise<void> {
    while (this.#compilePart()) await pause();
  }

  /** Compiles one part. Returns whether parts are left. */
  #compilePart(): boolean {
    if (this.#fault !== undefined) throw this.#fault.error;
    try {
      if (this.#compiling?.next().done !== false) this.#compiling = undefined;
    } catch (error) {
      this.#fault = { error };
      throw error;
    }
    return this.#compiling !== undefined;
  }

  *#compile(patterns: readonly string[]): Iterator<undefined> {
    let steps = 0;
    for (const [index, pattern] of patterns.entries()) {
      const translated = translatedPattern(pattern);
      steps += compileSteps(translated);
      const program = new PatternProgram(re2().RE2JS.compile(translated));
      this.#programs.push(program);
      if (program.has_prefix || program.size > FILTER_GROUP_SIZE_MAX) this.#alone.push(index);
      else this.#group(index, translated, program.size);
      if (steps < FILTER_COMPILE_SLICE_STEPS) continue;
      steps = 0;
      yield;
    }
    for (const { set } of this.#groups) {
      yield;
      // A set is compiled by its first match.
      set.match('');
    }
  }

  find(source: string, onMatch: PatternMatch): void {
    while (this.#compiling !== undefined) this.#compilePart();
    const visible = visibleTextOf(source);
    if (visible === undefined) {
      this.#find(source, onMatch);
      return;
    }
    const reported = new Set<string>();
    const report: PatternMatch = (pattern, start, end) => {
      const key = `${pattern} ${start} ${end}`;
      if (reported.has(key)) return;
      reported.add(key);
      onMatch(pattern, start, end);
    };
    this.#find(source, report);
    const { text, origins } = visible;
    this.#find(text, (pattern, start, end) => report(pattern, origins[start]!, origins[end - 1]! + 1));
  }

  #find(text: string, onMatch: PatternMatch): void {
    for (const index of this.#alone) this.#findOne(index, text, onMatch);
    for (const { set, patterns } of this.#groups) {
      for (const id of set.match(text)) this.#findOne(patterns[id]!, text, onMatch);
    }
  }

  /** The first offset at which a match could still start or grow when more text follows. */
  heldFrom(source: string): number {
    while (this.#compiling !== undefined) this.#compilePart();
    const visible = visibleTextOf(source);
    const from = this.#heldFrom(source);
    if (visible === undefined) return from;
    return Math.min(from, visible.origins[this.#heldFrom(visible.text)]!);
  }

  #heldFrom(text: string): number {
    return this.#programs.reduce((from, program) => Math.min(from, program.heldFrom(text)), text.length);
  }

  #findOne(index: number, text: string, onMatch: PatternMatch): void {
    for (const { start, end } of this.#programs[index]!.find(text)) onMatch(index, start, end);
  }

  #group(index: number, translated: string, size: number): void {
    let group = this.#groups.at(-1);
    if (group === undefined || group.size + size > FILTER_GROUP_SIZE_MAX) {
      const { RE2Set } = re2();
      group = { set: new RE2Set(RE2Set.UNANCHORED, 0, FILTER_STATES_BYTES_MAX), patterns: [], size: 0 };
      this.#groups.push(group);
    }
    group.set.add(translated);
    group.patterns.push(index);
    group.size += size;
  }
}
