import { RE2Set } from 're2js';
import { limits } from '../limits.ts';
import { compilePattern, translatedPattern } from './pattern.ts';
import { PatternProgram } from './pattern-program.ts';
import { seenOf } from './unseen.ts';

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
  readonly #programs: readonly PatternProgram[];
  /** Those that are found faster by themselves: by the text that they begin with. */
  readonly #alone: number[] = [];
  readonly #groups: Group[] = [];

  constructor(patterns: readonly string[]) {
    this.#programs = patterns.map((pattern) => new PatternProgram(compilePattern(pattern)));
    for (const [index, { size, has_prefix }] of this.#programs.entries()) {
      if (has_prefix || size > limits.filter_group_size_max) this.#alone.push(index);
      else this.#group(index, patterns[index]!, size);
    }
  }

  find(written: string, found: FoundBy): void {
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

  #group(index: number, pattern: string, size: number): void {
    let group = this.#groups.at(-1);
    if (group === undefined || group.size + size > limits.filter_group_size_max) {
      group = { set: new RE2Set(RE2Set.UNANCHORED, 0, limits.filter_states_bytes_max), patterns: [], size: 0 };
      this.#groups.push(group);
    }
    group.set.add(translatedPattern(pattern));
    group.patterns.push(index);
    group.size += size;
  }
}
