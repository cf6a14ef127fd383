import { isDigit } from './chars.ts';

/** What stands between two groups of digits. */
export const gaps = { dash: 1, space: 2, dot: 3, slash: 4, close: 5, mixed: 6, other: 7 } as const;

const GAP_CHARS_MAX = 3;
const DASH = 0x2d;
const SPACE = 0x20;
const DOT = 0x2e;
const SLASH = 0x2f;
const OPEN = 0x28;
const CLOSE = 0x29;

/** Groups of digits that stand together: with dashes, dots, spaces, strokes and brackets between them. */
export class NumberRun {
  text = '';
  count = 0;
  #next = 0;
  #starts = new Int32Array(64);
  #ends = new Int32Array(64);
  /** What stands after each group. */
  #gaps = new Uint8Array(64);
  /** How many digits stand before each group. */
  #sums = new Int32Array(64);

  /** Reads the run whose first digit stands at an offset; where it ends. */
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

  /** Digits of the whole run. */
  digits(): number {
    return this.digitsOf(0, this.count - 1);
  }

  start(index: number): number {
    return this.#starts[index]!;
  }

  end(index: number): number {
    return this.#ends[index]!;
  }

  /** Digits of one group; 0 where there is none. */
  size(index: number): number {
    return index >= 0 && index < this.count ? this.#ends[index]! - this.#starts[index]! : 0;
  }

  /** What stands after a group (`gaps`); 0: the run ends or has not begun. */
  gap(index: number): number {
    return index >= 0 && index < this.count ? this.#gaps[index]! : 0;
  }

  /** Digits from one group to another, both included. */
  digitsOf(first: number, last: number): number {
    return this.#sums[last]! - this.#sums[first]! + this.size(last);
  }

  /** The digits themselves. */
  number(first: number, last: number): string {
    if (first === last) return this.text.slice(this.#starts[first], this.#ends[first]);
    let number = '';
    for (let index = first; index <= last; index += 1) {
      number += this.text.slice(this.#starts[index], this.#ends[index]);
    }
    return number;
  }

  /** What stands between the digits that end at an offset and those that follow; 0: none follow. */
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

/** Whether a unit of UTF-16 may stand between two groups of digits. */
export function isGapChar(unit: number): boolean {
  return unit === SPACE || unit === DASH || unit === DOT || unit === SLASH || unit === OPEN || unit === CLOSE;
}
