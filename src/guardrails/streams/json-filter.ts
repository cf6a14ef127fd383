import { limits } from '../../limits.ts';
import {
  createStreamFilter,
  type Edit,
  edited,
  type Finder,
  type Scan,
  type StreamFilter,
  TextScan,
} from './stream-filter.ts';

const QUOTE = '"';
const BACKSLASH = '\\';
const STRUCTURE = '{}[],:';
const WHITE_SPACE = ' \n\t\r';
/** What may stand in JSON besides strings. */
const SCALAR = /^(?:-?\d[\d.eE+-]*|true|false|null)$/;
const SHORT: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };

/** A text as it stands between the quotes of JSON. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** One string of the JSON while it comes: filtered as what it says. Offsets outside are those of how it is written. */
class Literal {
  readonly #scan: TextScan;
  /** Where the characters that are not settled begin; where each of them ends. */
  #begin: number;
  #ends: number[] = [];
  /** Characters that are settled. */
  #settled = 0;
  /** An escape that is not whole. */
  #escape = '';

  constructor(finder: Finder, begin: number) {
    this.#scan = new TextScan(finder);
    this.#begin = begin;
  }

  hasEnded(): boolean {
    return this.#scan.ended_at !== undefined;
  }

  /** Reads from `at` on, where the text begins at `base`; returns where it stopped: at the quote that ends it, or at the end. */
  read(text: string, at: number, base: number): number {
    let told = '';
    let i = at;
    const say = (char: string) => {
      told += char;
      this.#ends.push(base + i + 1);
    };
    for (; i < text.length; i += 1) {
      const char = text[i]!;
      if (this.#escape !== '') {
        this.#escape += char;
        const said = unescaped(this.#escape);
        if (said === undefined) continue;
        this.#escape = '';
        say(said);
      } else if (char === BACKSLASH) this.#escape = char;
      else if (char === QUOTE) break;
      else say(char);
    }
    this.#scan.push(told);
    return i;
  }

  flush(): void {
    this.#scan.flush();
  }

  /** Up to where it is settled as it is written; what is replaced there is told in `edits`. */
  settle(edits: Edit[]): number {
    const { settled, edits: found } = this.#scan;
    const rawAt = (offset: number) => (offset <= this.#settled ? this.#begin : this.#ends[offset - this.#settled - 1]!);
    for (const { start, end, text } of found) {
      edits.push({ start: rawAt(start), end: rawAt(end), text: escaped(text) });
    }
    found.length = 0;
    const raw = rawAt(settled);
    this.#ends = this.#ends.slice(settled - this.#settled);
    this.#settled = settled;
    this.#begin = raw;
    return raw;
  }
}

/** What a whole escape says; undefined: it is not whole. One that JSON does not know says its letter. */
function unescaped(told: string): string | undefined {
  const kind = told[1]!;
  if (kind !== 'u') return SHORT[kind] ?? kind;
  if (told.length < 6) return undefined;
  const unit = Number.parseInt(told.slice(2), 16);
  return Number.isNaN(unit) ? '\ufffd' : String.fromCharCode(unit);
}

/**
 * Reads JSON as it comes, such as a tool's arguments: what its strings say is filtered, keys included, however they are
 * escaped, and so are numbers (what stands for one is a string). It stays valid JSON. What is no JSON object or list is
 * filtered as the text that it is, from where that shows.
 */
export class JsonScan implements Scan {
  readonly #finder: Finder;
  #literal: Literal | undefined;
  #plain: { scan: TextScan; base: number } | undefined;
  /** What stands between the structure: a number, a name, or what should not be there. All before it is settled. */
  #bare = '';
  #hasBegun = false;
  #total = 0;
  settled = 0;
  readonly edits: Edit[] = [];
  ended_at: number | undefined;

  constructor(finder: Finder) {
    this.#finder = finder;
  }

  push(text: string): void {
    if (this.ended_at !== undefined) return;
    const base = this.#total;
    this.#total += text.length;
    if (!this.#hasBegun) {
      const first = text.trimStart()[0];
      if (first === undefined) {
        this.settled = this.#total;
        return;
      }
      this.#hasBegun = true;
      if (first !== '{' && first !== '[') this.#plain = { scan: new TextScan(this.#finder), base };
    }
    if (this.#plain === undefined) this.#read(text, base);
    else this.#readPlain(this.#plain, text);
  }

  flush(): void {
    if (this.#bare !== '' && !this.#isValue()) this.#goPlain('');
    if (this.ended_at !== undefined) return;
    if (this.#plain !== undefined) {
      this.#plain.scan.flush();
      this.#readPlain(this.#plain, '');
      return;
    }
    if (this.#literal === undefined) this.#takeBare();
    else {
      this.#literal.flush();
      this.#settleLiteral(this.#literal);
    }
    this.settled = this.ended_at ?? this.#total;
  }

  #read(text: string, base: number): void {
    for (let at = 0; at < text.length && this.ended_at === undefined; at += 1) {
      if (this.#literal !== undefined) {
        at = this.#literal.read(text, at, base);
        const isWhole = at < text.length;
        if (isWhole) this.#literal.flush();
        this.#settleLiteral(this.#literal);
        if (isWhole && this.ended_at === undefined) {
          this.settled = base + at + 1;
          this.#literal = undefined;
        }
        continue;
      }
      const char = text[at]!;
      if (char === QUOTE || STRUCTURE.includes(char)) {
        if (this.#bare !== '' && (char === ':' || char === QUOTE || !this.#isValue())) {
          this.#goPlain(text.slice(at));
          return;
        }
        this.#takeBare();
        if (this.ended_at !== undefined) return;
        this.settled = base + at + 1;
        if (char === QUOTE) this.#literal = new Literal(this.#finder, this.settled);
      } else if (this.#bare === '' && WHITE_SPACE.includes(char)) this.settled = base + at + 1;
      else {
        this.#bare += char;
        if (this.#bare.length <= limits.filter_held_chars_max) continue;
        if (!this.#isValue()) {
          this.#goPlain(text.slice(at + 1));
          return;
        }
        this.#takeBare();
      }
    }
  }

  #isValue(): boolean {
    return SCALAR.test(this.#bare.trim());
  }

  /** It only began like JSON: what stands between its marks is no value, and a match may reach over them. */
  #goPlain(rest: string): void {
    const bare = this.#bare;
    this.#bare = '';
    this.#plain = { scan: new TextScan(this.#finder), base: this.settled };
    this.#readPlain(this.#plain, bare + rest);
  }

  #readPlain({ scan, base }: { scan: TextScan; base: number }, text: string): void {
    scan.push(text);
    for (const { start, end, text: told } of scan.edits) {
      this.edits.push({ start: base + start, end: base + end, text: told });
    }
    scan.edits.length = 0;
    this.settled = base + scan.settled;
    if (scan.ended_at !== undefined) this.ended_at = base + scan.ended_at;
  }

  #settleLiteral(literal: Literal): void {
    this.settled = literal.settle(this.edits);
    if (literal.hasEnded()) this.ended_at = this.settled;
  }

  #takeBare(): void {
    const told = this.#bare;
    const start = this.settled;
    this.#bare = '';
    this.settled += told.length;
    if (told.trim() === '') return;
    const scan = new TextScan(this.#finder);
    scan.push(told);
    scan.flush();
    if (scan.ended_at !== undefined) {
      this.settled = start;
      this.ended_at = start;
      return;
    }
    if (scan.edits.length === 0) return;
    const text = JSON.stringify(edited(told, 0, scan.edits).trim());
    this.edits.push({ start, end: start + told.trimEnd().length, text });
  }
}

/** What a character of JSON is, as it is written. What continues is one with what is before it: half of it says nothing. */
const KIND = { mark: 'm', text: 't', escape: 'e', escape_on: 'f', bare: 'b', bare_on: 'c' } as const;
type Kind = (typeof KIND)[keyof typeof KIND];
const ON: readonly (Kind | undefined)[] = [KIND.escape_on, KIND.bare_on];

/**
 * Reads JSON as it is written, for what reaches over its marks. What a hit reaches of each string and value is replaced, with
 * all of an escape and of a number; the marks between them stay, so that it stays valid JSON.
 */
export class WrittenScan implements Scan {
  readonly #scan: TextScan;
  /** What each character is that may still be asked for, from `#base` on. */
  #kinds = '';
  #base = 0;
  #total = 0;
  #isInside = false;
  /** Characters that an escape still has; undefined: the next one tells. */
  #escapeLeft: number | undefined = 0;
  #last: Kind = KIND.mark;
  /** Where the last escape or value begins. */
  #unit = 0;
  /** What was replaced last, and as part of what. */
  #replaced: { edit: Edit; end: number } | undefined;
  settled = 0;
  readonly edits: Edit[] = [];

  constructor(finder: Finder) {
    this.#scan = new TextScan({
      context_chars: finder.context_chars,
      heldFrom: (text, from) => finder.heldFrom(text, from),
      settled: (hit) => finder.settled(hit),
      find: (text, from) => {
        const base = this.#total - text.length;
        this.#forget(Math.min(base, this.settled));
        return finder.find(text, from).filter(({ start, end }) => this.#hasMark(base + start, base + end));
      },
    });
  }

  get ended_at(): number | undefined {
    return this.#scan.ended_at;
  }

  push(text: string): void {
    for (let at = 0; at < text.length && this.ended_at === undefined; at += limits.scan_slice_chars) {
      const piece = text.slice(at, at + limits.scan_slice_chars);
      this.#read(piece);
      this.#scan.push(piece);
      this.#settle(this.#wholeUntil());
    }
  }

  flush(): void {
    this.#scan.flush();
    this.#settle(this.#scan.settled);
  }

  #read(text: string): void {
    let kinds = '';
    for (const char of text.split('')) {
      this.#last = this.#kindOf(char);
      if (this.#last === KIND.escape || this.#last === KIND.bare) this.#unit = this.#total;
      kinds += this.#last;
      this.#total += 1;
    }
    this.#kinds += kinds;
  }

  #kindOf(char: string): Kind {
    if (this.#escapeLeft !== 0) {
      this.#escapeLeft = this.#escapeLeft === undefined ? (char === 'u' ? 4 : 0) : this.#escapeLeft - 1;
      return KIND.escape_on;
    }
    if (char === QUOTE) {
      this.#isInside = !this.#isInside;
      return KIND.mark;
    }
    if (this.#isInside) {
      if (char !== BACKSLASH) return KIND.text;
      this.#escapeLeft = undefined;
      return KIND.escape;
    }
    if (STRUCTURE.includes(char) || WHITE_SPACE.includes(char)) return KIND.mark;
    return this.#last === KIND.bare || this.#last === KIND.bare_on ? KIND.bare_on : KIND.bare;
  }

  #kindAt(offset: number): Kind | undefined {
    return this.#kinds[offset - this.#base] as Kind | undefined;
  }

  #hasMark(start: number, end: number): boolean {
    const at = this.#kinds.indexOf(KIND.mark, start - this.#base);
    return at !== -1 && at < end - this.#base;
  }

  /** Up to where all is settled of which no half is left to come or to be settled. */
  #wholeUntil(): number {
    const { settled, ended_at } = this.#scan;
    if (ended_at !== undefined) return settled;
    let until = settled;
    if (settled === this.#total) {
      const isOpen = this.#escapeLeft !== 0 || this.#last === KIND.bare || this.#last === KIND.bare_on;
      if (isOpen) until = this.#unit;
    } else if (ON.includes(this.#kindAt(settled))) {
      const first = this.#kindAt(settled) === KIND.bare_on ? KIND.bare : KIND.escape;
      until = this.#base + this.#kinds.lastIndexOf(first, settled - this.#base);
    }
    // No number is so long.
    return settled - until > limits.filter_held_chars_max ? settled : Math.max(until, this.settled);
  }

  #settle(until: number): void {
    const found = this.#scan.edits;
    let used = 0;
    for (const edit of found) {
      if (edit.start >= until) break;
      this.#replace(edit, until);
      if (edit.end > until) {
        edit.start = until;
        break;
      }
      used += 1;
    }
    found.splice(0, used);
    this.settled = until;
  }

  #replace(edit: Edit, until: number): void {
    let at = Math.max(edit.start, this.settled);
    while (at > this.settled && ON.includes(this.#kindAt(at))) at -= 1;
    at = Math.max(at, this.#replaced?.end ?? 0);
    let end = Math.min(edit.end, until);
    while (end < until && ON.includes(this.#kindAt(end))) end += 1;
    while (at < end) {
      const start = at;
      const kind = this.#kindAt(at)!;
      at += 1;
      if (kind === KIND.mark) continue;
      while (at < end && this.#kindAt(at) !== KIND.mark) at += 1;
      const { edit: last, end: lastEnd } = this.#replaced ?? {};
      const goesOn = last === edit && lastEnd === start;
      const isBare = kind === KIND.bare || kind === KIND.bare_on;
      const text = isBare ? JSON.stringify(edit.text) : escaped(edit.text);
      this.edits.push({ start, end: at, text: goesOn ? '' : text });
      this.#replaced = { edit, end: at };
    }
  }

  #forget(until: number): void {
    if (until <= this.#base) return;
    this.#kinds = this.#kinds.slice(until - this.#base);
    this.#base = until;
  }
}

/** Makes the filter of JSON that comes in pieces (see `JsonScan`), also of what reaches from one string into another. */
export function createJsonFilter(finder: Finder): StreamFilter {
  const said = createStreamFilter(finder, new JsonScan(finder));
  if (finder.written === undefined) return said;
  const written = createStreamFilter(finder.written, new WrittenScan(finder.written));
  return {
    push: (text) => written.push(said.push(text)),
    end: () => written.push(said.end()) + written.end(),
    hasEnded: () => said.hasEnded() || written.hasEnded(),
  };
}
