import type { RE2Set } from 're2js';
import { limits } from '../../limits.ts';
import { seenOf } from '../unseen.ts';
import { translatedPattern } from './pattern.ts';
import { compileSteps } from './pattern-cost.ts';
import { PatternProgram } from './pattern-program.ts';
import { re2 } from './re2.ts';

/** Told of each match, and of which pattern. */
export type FoundBy = (pattern: number, start: number, end: number) => void;

/** Patterns that are looked for together: which of them match at all is found in one pass. */
interface Group {
  set: RE2Set;
  patterns: number[];
  size: number;
}

/**
 * Finds what patterns of users match, in time linear in the text: as it is written, and as it is seen, so that nothing
 * is evaded by what cannot be seen.
 */
export class CustomPatterns {
  readonly #programs: PatternProgram[] = [];
  /** Those that are found faster by themselves: by the text that they begin with. */
  readonly #alone: number[] = [];
  readonly #groups: Group[] = [];
  /** What is still to be compiled, a part at a time; undefined: all is. */
  #compiling: Iterator<undefined> | undefined;
  /** Why they cannot be compiled: nothing is found then, which must not be taken for nothing being there. */
  #fault: { error: unknown } | undefined;

  constructor(patterns: readonly string[]) {
    this.#compiling = this.#compile(patterns);
  }

  /** Compiles the patterns while others are served. Who finds without it waits for all of them at once. Undefined: there is nothing to do. */
  prepare(pause: () => Promise<void>): Promise<void> | undefined {
    return this.#compiling === undefined ? undefined : this.#prepare(pause);
  }

  async #prepare(pause: () => Promise<void>): Promise<void> {
    while (this.#goOn()) await pause();
  }

  /** Compiles a part; whether there is more. */
  #goOn(): boolean {
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
      if (program.has_prefix || program.size > limits.filter_group_size_max) this.#alone.push(index);
      else this.#group(index, translated, program.size);
      if (steps < limits.filter_compile_slice_steps) continue;
      steps = 0;
      yield;
    }
    for (const { set } of this.#groups) {
      yield;
      // A set is compiled when it is asked first.
      set.match('');
    }
  }

  find(written: string, found: FoundBy): void {
    while (this.#compiling !== undefined) this.#goOn();
    const seen = seenOf(written);
    if (seen === undefined) {
      this.#find(written, found);
      return;
    }
    const told = new Set<string>();
    const tell: FoundBy = (pattern, start, end) => {
      const key = `${pattern} ${start} ${end}`;
      if (told.has(key)) return;
      told.add(key);
      found(pattern, start, end);
    };
    this.#find(written, tell);
    const { text, origins } = seen;
    this.#find(text, (pattern, start, end) => tell(pattern, origins[start]!, origins[end - 1]! + 1));
  }

  #find(text: string, found: FoundBy): void {
    for (const index of this.#alone) this.#findOne(index, text, found);
    for (const { set, patterns } of this.#groups) {
      for (const id of set.match(text)) this.#findOne(patterns[id]!, text, found);
    }
  }

  /** The first offset from which a match might still begin or grow when more text comes. */
  heldFrom(written: string): number {
    while (this.#compiling !== undefined) this.#goOn();
    const seen = seenOf(written);
    const from = this.#heldFrom(written);
    if (seen === undefined) return from;
    return Math.min(from, seen.origins[this.#heldFrom(seen.text)]!);
  }

  #heldFrom(text: string): number {
    return this.#programs.reduce((from, program) => Math.min(from, program.heldFrom(text)), text.length);
  }

  #findOne(index: number, text: string, found: FoundBy): void {
    for (const { start, end } of this.#programs[index]!.find(text)) found(index, start, end);
  }

  #group(index: number, translated: string, size: number): void {
    let group = this.#groups.at(-1);
    if (group === undefined || group.size + size > limits.filter_group_size_max) {
      const { RE2Set } = re2();
      group = { set: new RE2Set(RE2Set.UNANCHORED, 0, limits.filter_states_bytes_max), patterns: [], size: 0 };
      this.#groups.push(group);
    }
    group.set.add(translated);
    group.patterns.push(index);
    group.size += size;
  }
}
