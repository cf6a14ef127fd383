import { limits } from '../../limits.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
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
/** A JSON value that is not a string. */
const SCALAR = /^(?:-?\d[\d.eE+-]*|true|false|null)$/;
const SHORT: Readonly<Record<string, string>> = lookupTable({ n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' });

/** A text escaped for JSON, without the quotes. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Filters the unescaped text of one streamed JSON string. Offsets of its interface are those of the escaped text. */
class Literal {
  readonly #scan: TextScan;
  /** The start of the unsettled characters, and the end of each of them. */
  #begin: number;
  #ends: number[] = [];
  /** The number of settled characters. */
  #settled = 0;
  /** An incomplete escape sequence. */
  #escape = '';

  constructor(finder: Finder, begin: number) {
    this.#scan = new TextScan(finder);
    this.#begin = begin;
  }

  hasEnded(): boolean {
    return this.#scan.ended_at !== undefined;
  }

  /** Reads from `at`. `base` is the offset of the text. Returns the index of the closing quote, or the end of the text. */
  read(text: string, at: number, base: number): number {
    let decoded = '';
    let i = at;
    const append = (char: string) => {
      decoded += char;
      this.#ends.push(base + i + 1);
    };
    for (; i < text.length; i += 1) {
      const char = text[i]!;
      if (this.#escape !== '') {
        this.#escape += char;
        const unescapedText = unescaped(this.#escape);
        if (unescapedText === undefined) continue;
        this.#escape = '';
        append(unescapedText);
      } else if (char === BACKSLASH) this.#escape = char;
      else if (char === QUOTE) break;
      else append(char);
    }
    this.#scan.push(decoded);
    return i;
  }

  flush(): void {
    this.#scan.flush();
  }

  /** Returns the offset up to which the string is settled, and adds the replacements to `edits`. */
  settle(edits: Edit[]): number {
    const { settled, edits: scanEdits } = this.#scan;
    const rawAt = (offset: number) => (offset <= this.#settled ? this.#begin : this.#ends[offset - this.#settled - 1]!);
    for (const { start, end, text } of scanEdits) {
      edits.push({ start: rawAt(start), end: rawAt(end), text: escaped(text) });
    }
    scanEdits.length = 0;
    const raw = rawAt(settled);
    this.#ends = this.#ends.slice(settled - this.#settled);
    this.#settled = settled;
    this.#begin = raw;
    return raw;
  }
}

/** The character of an escape sequence. Undefined if it is incomplete. An unknown escape is its letter. */
function unescaped(sequence: string): string | undefined {
  const kind = sequence[1]!;
  if (kind !== 'u') return SHORT[kind] ?? kind;
  if (sequence.length < 6) return undefined;
  const unit = Number.parseInt(sequence.slice(2), 16);
  return Number.isNaN(unit) ? '\ufffd' : String.fromCharCode(unit);
}

/**
 * Filters streamed JSON, such as tool arguments: the unescaped strings, keys included,
 * and numbers (their replacement is a string). The result is valid JSON. Text that is not a JSON object or array is
 * filtered as plain text from the first invalid character.
 */
export class JsonScan implements Scan {
  readonly #finder: Finder;
  #literal: Literal | undefined;
  #plain: { scan: TextScan; base: number } | undefined;
  /** Unquoted text: a number, a literal or invalid text. All text before it is settled. */
  #bare = '';
  #hasStarted = false;
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
    if (!this.#hasStarted) {
      const first = text.trimStart()[0];
      if (first === undefined) {
        this.settled = this.#total;
        return;
      }
      this.#hasStarted = true;
      if (first !== '{' && first !== '[') this.#plain = { scan: new TextScan(this.#finder), base };
    }
    if (this.#plain === undefined) this.#read(text, base);
    else this.#readPlain(this.#plain, text);
  }

  flush(): void {
    if (this.#bare !== '' && !this.#isValue()) this.#switchToPlain('');
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
          this.#switchToPlain(text.slice(at));
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
          this.#switchToPlain(text.slice(at + 1));
          return;
        }
        this.#takeBare();
      }
    }
  }

  #isValue(): boolean {
    return SCALAR.test(this.#bare.trim());
  }

  /** Treats the rest as plain text: it is not JSON, so a match can extend over structural characters. */
  #switchToPlain(rest: string): void {
    const bare = this.#bare;
    this.#bare = '';
    this.#plain = { scan: new TextScan(this.#finder), base: this.settled };
    this.#readPlain(this.#plain, bare + rest);
  }

  #readPlain({ scan, base }: { scan: TextScan; base: number }, text: string): void {
    scan.push(text);
    for (const { start, end, text } of scan.edits) {
      this.edits.push({ start: base + start, end: base + end, text: text });
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
    const bare = this.#bare;
    const start = this.settled;
    this.#bare = '';
    this.settled += bare.length;
    if (bare.trim() === '') return;
    const scan = new TextScan(this.#finder);
    scan.push(bare);
    scan.flush();
    if (scan.ended_at !== undefined) {
      this.settled = start;
      this.ended_at = start;
      return;
    }
    if (scan.edits.length === 0) return;
    const text = JSON.stringify(edited(bare, 0, scan.edits).trim());
    this.edits.push({ start, end: start + bare.trimEnd().length, text });
  }
}

/** The kind of a character of JSON as written. `_on` marks the continuation of an escape or unquoted value. */
const KIND = { mark: 'm', text: 't', escape: 'e', escape_on: 'f', bare: 'b', bare_on: 'c' } as const;
type Kind = (typeof KIND)[keyof typeof KIND];
const ON: readonly (Kind | undefined)[] = [KIND.escape_on, KIND.bare_on];

/**
 * Filters streamed JSON as written, for matches over several tokens. The covered part of each string and value is replaced, with
 * whole escapes and numbers. The structural characters stay, so that the result is valid JSON.
 */
export class WrittenScan implements Scan {
  readonly #scan: TextScan;
  /** The kind of each character from `#base` on. */
  #kinds = '';
  #base = 0;
  #total = 0;
  #isInside = false;
  /** The remaining characters of an escape. Undefined if the next character decides. */
  #escapeLeft: number | undefined = 0;
  #last: Kind = KIND.mark;
  /** The start of the last escape or unquoted value. */
  #unit = 0;
  /** The last replacement and its edit. */
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

  /** The end of the settled text, without a partial escape or value at its end. */
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
    // A longer unit is not a number.
    return settled - until > limits.filter_held_chars_max ? settled : Math.max(until, this.settled);
  }

  #settle(until: number): void {
    const scanEdits = this.#scan.edits;
    let used = 0;
    for (const edit of scanEdits) {
      if (edit.start >= until) break;
      this.#replace(edit, until);
      if (edit.end > until) {
        edit.start = until;
        break;
      }
      used += 1;
    }
    scanEdits.splice(0, used);
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
      const continues = last === edit && lastEnd === start;
      const isBare = kind === KIND.bare || kind === KIND.bare_on;
      const text = isBare ? JSON.stringify(edit.text) : escaped(edit.text);
      this.edits.push({ start, end: at, text: continues ? '' : text });
      this.#replaced = { edit, end: at };
    }
  }

  #forget(until: number): void {
    if (until <= this.#base) return;
    this.#kinds = this.#kinds.slice(until - this.#base);
    this.#base = until;
  }
}

/** Creates the filter of streamed JSON (see `JsonScan`), including matches over several tokens. */
export function createJsonFilter(finder: Finder): StreamFilter {
  const strings = createStreamFilter(finder, new JsonScan(finder));
  if (finder.written === undefined) return strings;
  const written = createStreamFilter(finder.written, new WrittenScan(finder.written));
  return {
    push: (text) => written.push(strings.push(text)),
    end: () => written.push(strings.end()) + written.end(),
    hasEnded: () => strings.hasEnded() || written.hasEnded(),
  };
}
