import { isDigit } from './chars.ts';

/** Kinds of separators between two groups of digits. */
export const gaps = { dash: 1, space: 2, dot: 3, slash: 4, close: 5, mixed: 6, other: 7 } as const;

const GAP_CHARS_MAX = 3;
const DASH = 0x2d;
const SPACE = 0x20;
const DOT = 0x2e;
const SLASH = 0x2f;
const OPEN = 0x28;
const CLOSE = 0x29;

/** Adjacent groups of digits, separated by dashes, dots, spaces, slashes and brackets. */
export class NumberRun {
  text = '';
  count = 0;
  #next = 0;
  #starts = new Int32Array(64);
  #ends = new Int32Array(64);
  /** The separator after each group (`gaps`). */
  #gaps = new Uint8Array(64);
  /** The number of digits before each group. */
  #sums = new Int32Array(64);

  /** Reads the run whose first digit is at an offset. Returns the end of the run. */
  read(text: string, at: number): number {
    this.text = text;
    this.count = 0;
    let digits = 0;
    for (let start = at; ; ) {
      let end = start + 1;
      while (isDigit(text.charCodeAt(end))) end += 1;
      if (this.count === this.#starts.length) this.#grow();
      this.#starts[this.count] = start;
      this.#ends[this.count] = end;
      this.#sums[this.count] = digits;
      digits += end - start;
      const gap = this.#gapAfter(end);
      this.#gaps[this.count] = gap;
      this.count += 1;
      if (gap === 0) return end;
      start = this.#next;
    }
  }

  /** The number of digits in the run. */
  digits(): number {
    return this.digitsOf(0, this.count - 1);
  }

  start(index: number): number {
    return this.#starts[index]!;
  }

  end(index: number): number {
    return this.#ends[index]!;
  }

  /** The number of digits in a group. 0 if there is no such group. */
  size(index: number): number {
    return index >= 0 && index < this.count ? this.#ends[index]! - this.#starts[index]! : 0;
  }

  /** The separator after a group (`gaps`). 0 if it is the last or there is no such group. */
  gap(index: number): number {
    return index >= 0 && index < this.count ? this.#gaps[index]! : 0;
  }

  /** The number of digits from one group to another, both included. */
  digitsOf(first: number, last: number): number {
    return this.#sums[last]! - this.#sums[first]! + this.size(last);
  }

  /** The digits from one group to another, both included. */
  number(first: number, last: number): string {
    if (first === last) return this.text.slice(this.#starts[first], this.#ends[first]);
    let number = '';
    for (let index = first; index <= last; index += 1) {
      number += this.text.slice(this.#starts[index], this.#ends[index]);
    }
    return number;
  }

  /** The separator between digits that end at an offset and the next digits. 0 if no digits follow. */
  #gapAfter(at: number): number {
    const { text } = this;
    let next = at;
    while (next - at <= GAP_CHARS_MAX && isGapChar(text.charCodeAt(next))) next += 1;
    this.#next = next;
    const length = next - at;
    if (length === 0 || length > GAP_CHARS_MAX || !isDigit(text.charCodeAt(next))) return 0;
    const first = text.charCodeAt(at);
    if (length === 1) {
      if (first === DASH) return gaps.dash;
      if (first === SPACE) return gaps.space;
      if (first === DOT) return gaps.dot;
      if (first === SLASH) return gaps.slash;
      return first === CLOSE ? gaps.close : gaps.other;
    }
    const gap = text.slice(at, next);
    if (/^[ -]+$/.test(gap)) return gaps.mixed;
    return first === CLOSE && !gap.includes('(') ? gaps.close : gaps.other;
  }

  #grow(): void {
    const doubled = <Numbers extends Int32Array | Uint8Array>(numbers: Numbers, made: Numbers) => {
      made.set(numbers);
      return made;
    };
    const length = this.#starts.length * 2;
    this.#starts = doubled(this.#starts, new Int32Array(length));
    this.#ends = doubled(this.#ends, new Int32Array(length));
    this.#sums = doubled(this.#sums, new Int32Array(length));
    this.#gaps = doubled(this.#gaps, new Uint8Array(length));
  }
}

/** Whether a UTF-16 code unit can separate two groups of digits. */
export function isGapChar(unit: number): boolean {
  return unit === SPACE || unit === DASH || unit === DOT || unit === SLASH || unit === OPEN || unit === CLOSE;
}
