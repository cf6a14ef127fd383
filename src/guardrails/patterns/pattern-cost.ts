/** What is paid for in reading alone, in steps: one instruction of the program is one step (measured, with re2js 2.10). */
const UNICODE_CLASS = 100;
const CLASS_CHAR = 0.5;
/** Code points of a range that is read without regard to capitals: each is looked at. */
const FOLDED_POINT = 1 / 64;

const FOLDS = /\(\?[a-zA-Z-]*i/;
const REPEAT = /\{(\d{1,8})(?:(,)(\d{0,8}))?\}/y;
const GROUP_HEAD = /\(\?(?:P?<[^>]*>|[^:)]*[:)])/y;
const UNICODE_NAME = /\\[pP](?:\^?[^{^]|\{[^}]*\})/y;
const ESCAPE = /\\(?:x\{([\da-fA-F]*)\}|x([\da-fA-F]{2})|([0-7]{1,3})|.)/suy;
const POSIX_NAME = /\[:\^?[a-z]*:\]/y;

/** What a pattern in RE2 syntax has been read to. */
class Reading {
  readonly #text: string;
  readonly #folds: boolean;
  #at = 0;
  /** Steps for what is read once, however often it is repeated. */
  read = 0;

  constructor(text: string) {
    this.#text = text;
    this.#folds = FOLDS.test(text);
  }

  get more(): boolean {
    return this.#at < this.#text.length;
  }

  /** Whether the text goes on with `wanted`, which is then passed. */
  takes(wanted: string): boolean {
    if (!this.#text.startsWith(wanted, this.#at)) return false;
    this.#at += wanted.length;
    return true;
  }

  /** What a sticky expression finds here, which is then passed. */
  match(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#text);
    if (found !== null) this.#at = expression.lastIndex;
    return found;
  }

  advance(): void {
    this.#at += 1;
  }

  /** Passes quoted text; how many characters it has. */
  quoted(): number {
    const end = this.#text.indexOf('\\E', this.#at);
    const length = (end < 0 ? this.#text.length : end) - this.#at;
    this.#at += length + (end < 0 ? 0 : 2);
    return length;
  }

  unicodeClass(): boolean {
    if (this.match(UNICODE_NAME) === null) return false;
    this.read += UNICODE_CLASS;
    return true;
  }

  /** Passes one character of a class, or the name of several; its code point, where it may begin or end a range. */
  #classItem(): number | undefined {
    if (this.unicodeClass() || this.match(POSIX_NAME) !== null) return undefined;
    const escaped = this.match(ESCAPE);
    if (escaped !== null) {
      const [, long, short, octal] = escaped;
      const hex = long ?? short;
      if (hex !== undefined) return Number.parseInt(hex || '0', 16);
      return octal === undefined ? 0 : Number.parseInt(octal, 8);
    }
    const point = this.#text.codePointAt(this.#at) ?? 0;
    this.#at += point > 0xffff ? 2 : 1;
    return point;
  }

  /** Passes a class, whose bracket was passed. */
  charClass(): void {
    const start = this.#at;
    this.takes('^');
    for (let first = true; this.more && (first || !this.takes(']')); first = false) {
      const low = this.#classItem();
      if (low === undefined || this.#text.startsWith('-]', this.#at) || !this.takes('-') || !this.more) continue;
      const high = this.#classItem() ?? low;
      if (this.#folds) this.read += Math.min(Math.max(high - low, 0), 0x1ffff) * FOLDED_POINT;
    }
    this.read += (this.#at - start) * CLASS_CHAR;
  }
}

/**
 * An upper bound of what it takes to compile a pattern in RE2 syntax, in steps, found in time linear in its length: the
 * instructions of its program, and what is paid for reading it. Of a text that is no pattern it bounds what it takes to find that out.
 */
export function compileSteps(pattern: string): number {
  const reading = new Reading(pattern);
  /** The size of each open group, and of the last thing in it, which a repetition repeats. */
  const groups = [{ size: 0, last: 0 }];
  while (reading.more) {
    const group = groups.at(-1);
    // Nothing after a group too many is read.
    if (group === undefined) break;
    const add = (size: number) => {
      group.size += size;
      group.last = size;
    };
    /** In place of the last thing, so many of it, and what chooses how many. */
    const repeat = (times: number, choices: number) => {
      const size = Math.max(times, 1) * group.last + choices;
      group.size += size - group.last;
      group.last = size;
    };
    const counts = reading.match(REPEAT);
    if (counts !== null) {
      const [least, most] = [Number(counts[1]), Number(counts[3] ?? 0)];
      repeat(Math.max(least, most), counts[2] === undefined ? 0 : Math.max(most - least, 2));
    } else if (reading.takes('*') || reading.takes('+') || reading.takes('?')) {
      repeat(1, 2);
    } else if (reading.takes('|')) {
      add(2);
    } else if (reading.takes('[')) {
      reading.charClass();
      add(1);
    } else if (reading.takes('\\Q')) {
      const chars = reading.quoted();
      add(chars);
      group.last = 1;
    } else if (reading.unicodeClass() || reading.match(ESCAPE) !== null) {
      add(1);
    } else if (reading.takes(')')) {
      groups.pop();
      const outer = groups.at(-1);
      if (outer === undefined) break;
      outer.last = Math.max(group.size, 1) + 2;
      outer.size += outer.last;
    } else {
      const head = reading.match(GROUP_HEAD);
      if (head?.[0].endsWith(')')) continue;
      if (head !== null || reading.takes('(')) groups.push({ size: 0, last: 0 });
      else {
        reading.advance();
        add(1);
      }
    }
  }
  // One instruction for no match, one for a match, and an empty pattern has one too.
  return Math.ceil(groups.reduce((sum, { size }) => sum + size + 2, 1) + reading.read);
}
