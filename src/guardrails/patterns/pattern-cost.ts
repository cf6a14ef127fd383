/** Costs of parsing, in steps: one step is one instruction of the program (measured with re2js 2.10). */
const UNICODE_CLASS = 100;
const CLASS_CHAR = 0.5;
/** Cost per code point of a range in a case-insensitive class: each code point is folded. */
const FOLDED_POINT = 1 / 64;

const FOLDS = /\(\?[a-zA-Z-]*i/;
const REPEAT = /\{(\d{1,8})(?:(,)(\d{0,8}))?\}/y;
const GROUP_HEAD = /\(\?(?:P?<[^>]*>|[^:)]*[:)])/y;
const UNICODE_NAME = /\\[pP](?:\^?[^{^]|\{[^}]*\})/y;
const ESCAPE = /\\(?:x\{([\da-fA-F]*)\}|x([\da-fA-F]{2})|([0-7]{1,3})|.)/suy;
const POSIX_NAME = /\[:\^?[a-z]*:\]/y;

/** Reads a pattern in RE2 syntax. */
class PatternReader {
  readonly #text: string;
  readonly #folds: boolean;
  #at = 0;
  /** Steps of parsing, which repetitions do not multiply. */
  read = 0;

  constructor(text: string) {
    this.#text = text;
    this.#folds = FOLDS.test(text);
  }

  get more(): boolean {
    return this.#at < this.#text.length;
  }

  /** Skips `wanted` if it is next. Returns whether it was. */
  takeIf(wanted: string): boolean {
    if (!this.#text.startsWith(wanted, this.#at)) return false;
    this.#at += wanted.length;
    return true;
  }

  /** Matches a sticky expression here and skips the match. */
  match(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at;
    const match = expression.exec(this.#text);
    if (match !== null) this.#at = expression.lastIndex;
    return match;
  }

  advance(): void {
    this.#at += 1;
  }

  /** Skips quoted text. Returns its length in characters. */
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

  /** Skips one character of a class, or a named class. Returns the code point if it can be the end of a range. */
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

  /** Skips a class after its opening bracket. */
  charClass(): void {
    const start = this.#at;
    this.takeIf('^');
    for (let first = true; this.more && (first || !this.takeIf(']')); first = false) {
      const low = this.#classItem();
      if (low === undefined || this.#text.startsWith('-]', this.#at) || !this.takeIf('-') || !this.more) continue;
      const high = this.#classItem() ?? low;
      if (this.#folds) this.read += Math.min(Math.max(high - low, 0), 0x1ffff) * FOLDED_POINT;
    }
    this.read += (this.#at - start) * CLASS_CHAR;
  }
}

/**
 * An upper bound of the cost of compiling a pattern in RE2 syntax, in steps, computed in time linear in its length: the
 * instructions of its program plus the cost of parsing. For an invalid pattern it bounds the cost of rejecting it.
 */
export function compileSteps(pattern: string): number {
  const reader = new PatternReader(pattern);
  /** The size of each open group, and of its last item, which a repetition repeats. */
  const groups = [{ size: 0, last: 0 }];
  while (reader.more) {
    const group = groups.at(-1);
    // The pattern closed a group that it did not open: RE2 stops here.
    if (group === undefined) break;
    const add = (size: number) => {
      group.size += size;
      group.last = size;
    };
    /** Replaces the last item by `times` copies and `choices` instructions that choose between them. */
    const repeat = (times: number, choices: number) => {
      const size = Math.max(times, 1) * group.last + choices;
      group.size += size - group.last;
      group.last = size;
    };
    const counts = reader.match(REPEAT);
    if (counts !== null) {
      const [least, most] = [Number(counts[1]), Number(counts[3] ?? 0)];
      repeat(Math.max(least, most), counts[2] === undefined ? 0 : Math.max(most - least, 2));
    } else if (reader.takeIf('*') || reader.takeIf('+') || reader.takeIf('?')) {
      repeat(1, 2);
    } else if (reader.takeIf('|')) {
      add(2);
    } else if (reader.takeIf('[')) {
      reader.charClass();
      add(1);
    } else if (reader.takeIf('\\Q')) {
      const chars = reader.quoted();
      add(chars);
      group.last = 1;
    } else if (reader.unicodeClass() || reader.match(ESCAPE) !== null) {
      add(1);
    } else if (reader.takeIf(')')) {
      groups.pop();
      const outer = groups.at(-1);
      if (outer === undefined) break;
      outer.last = Math.max(group.size, 1) + 2;
      outer.size += outer.last;
    } else {
      const head = reader.match(GROUP_HEAD);
      if (head?.[0].endsWith(')')) continue;
      if (head !== null || reader.takeIf('(')) groups.push({ size: 0, last: 0 });
      else {
        reader.advance();
        add(1);
      }
    }
  }
  // A program has one instruction for failure and one for a match, and an empty pattern has one too.
  return Math.ceil(groups.reduce((sum, { size }) => sum + size + 2, 1) + reader.read);
}
