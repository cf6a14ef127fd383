import { limits } from '../limits.ts';
import { createStreamFilter, type Edit, type Finder, type StreamFilter, TextScan } from './stream-filter.ts';

const QUOTE = '"';
const BACKSLASH = '\\';
const STRUCTURE = '{}[],:';
/** What may stand in JSON besides strings. */
const SCALAR = /^(?:-?\d[\d.eE+-]*|true|false|null)$/;
const SHORT: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };

/** A text as it stands between the quotes of JSON. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** One string of the JSON while it comes: filtered as what it says, shown as it was written. */
class Literal {
  readonly #scan: TextScan;
  /** What was not shown yet, as written; where in it each character of the text ends. */
  #raw = '';
  #ends: number[] = [];
  /** Characters that were shown. */
  #shown = 0;
  /** An escape that is not whole. */
  #escape = '';

  constructor(finder: Finder) {
    this.#scan = new TextScan(finder);
  }

  hasEnded(): boolean {
    return this.#scan.ended_at !== undefined;
  }

  /** Reads from `at` on; returns where it stopped: at the quote that ends it, or at the end. */
  read(text: string, at: number): number {
    let told = '';
    let i = at;
    const say = (char: string) => {
      told += char;
      this.#ends.push(this.#raw.length);
    };
    for (; i < text.length; i += 1) {
      const char = text[i]!;
      if (this.#escape !== '') {
        this.#escape += char;
        const said = unescaped(this.#escape);
        if (said === undefined) continue;
        this.#raw += this.#escape;
        this.#escape = '';
        say(said);
      } else if (char === BACKSLASH) this.#escape = char;
      else if (char === QUOTE) break;
      else {
        this.#raw += char;
        say(char);
      }
    }
    this.#scan.push(told);
    return i;
  }

  flush(): void {
    this.#scan.flush();
  }

  /** What may be shown by now. */
  take(): string {
    const { settled, edits } = this.#scan;
    if (settled === this.#shown) return '';
    const out = this.#render(settled, edits);
    const cut = this.#ends[settled - this.#shown - 1]!;
    this.#raw = this.#raw.slice(cut);
    this.#ends = this.#ends.slice(settled - this.#shown).map((end) => end - cut);
    this.#shown = settled;
    return out;
  }

  /** An escape that was never ended, as it came. */
  rest(): string {
    return this.#escape;
  }

  #render(until: number, edits: Edit[]): string {
    const rawAt = (offset: number) => (offset <= this.#shown ? 0 : this.#ends[offset - this.#shown - 1]!);
    let out = '';
    let from = this.#shown;
    let used = 0;
    for (const edit of edits) {
      if (edit.start >= until) break;
      if (edit.start > from) out += this.#raw.slice(rawAt(from), rawAt(edit.start));
      out += escaped(edit.text);
      from = Math.max(from, Math.min(edit.end, until));
      if (edit.end > until) {
        edit.text = '';
        edit.start = until;
        break;
      }
      used += 1;
    }
    edits.splice(0, used);
    return out + this.#raw.slice(rawAt(from), rawAt(until));
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
 * Makes the filter of JSON that comes in pieces, such as a tool's arguments: what its strings say is filtered, keys
 * included, however they are escaped, and so are numbers (what stands for one is a string). It stays valid JSON. What is no
 * JSON object or list is filtered as the text that it is, from where that shows.
 */
export function createJsonFilter(finder: Finder): StreamFilter {
  let literal: Literal | undefined;
  let plain: StreamFilter | undefined;
  let bare = '';
  let has_begun = false;
  let has_ended = false;

  /** What stands between the structure: a number, a name, or what should not be there. */
  function takeBare(): string {
    const told = bare;
    bare = '';
    if (told.trim() === '') return told;
    const scan = new TextScan(finder);
    scan.push(told);
    scan.flush();
    if (scan.ended_at === undefined && scan.edits.length === 0) return told;
    has_ended ||= scan.ended_at !== undefined;
    const until = scan.ended_at ?? told.length;
    let out = '';
    let from = 0;
    for (const edit of scan.edits) {
      out += told.slice(from, edit.start) + edit.text;
      from = edit.end;
    }
    out += told.slice(from, until);
    return has_ended ? '' : JSON.stringify(out.trim());
  }

  function takeLiteral(of: Literal): string {
    const told = of.take();
    has_ended ||= of.hasEnded();
    return told;
  }

  function push(text: string): string {
    let out = '';
    let at = 0;
    while (at < text.length && !has_ended) {
      if (literal !== undefined) {
        at = literal.read(text, at);
        const is_whole = at < text.length;
        if (is_whole) literal.flush();
        out += takeLiteral(literal);
        if (is_whole && !has_ended) {
          out += QUOTE;
          literal = undefined;
        }
        at += 1;
        continue;
      }
      const char = text[at]!;
      if (char === QUOTE || STRUCTURE.includes(char)) {
        if (bare !== '' && (char === ':' || char === QUOTE || !SCALAR.test(bare.trim()))) {
          // It only began like JSON: what stands between its marks is no value, and a match may reach over them.
          plain = createStreamFilter(finder);
          const rest = bare + text.slice(at);
          bare = '';
          return out + plain.push(rest);
        }
        out += takeBare();
        if (has_ended) break;
        out += char;
        if (char === QUOTE) literal = new Literal(finder);
      } else if (bare === '' && (char === ' ' || char === '\n' || char === '\t' || char === '\r')) out += char;
      else {
        bare += char;
        if (bare.length > limits.filter_held_chars_max) out += takeBare();
      }
      at += 1;
    }
    return out;
  }

  return {
    push(text) {
      if (has_ended) return '';
      if (!has_begun) {
        const first = text.trimStart()[0];
        if (first === undefined) return text;
        has_begun = true;
        if (first !== '{' && first !== '[') plain = createStreamFilter(finder);
      }
      return plain === undefined ? push(text) : plain.push(text);
    },
    end() {
      if (has_ended) return '';
      if (plain !== undefined) return plain.end();
      if (literal === undefined) return takeBare();
      literal.flush();
      return takeLiteral(literal) + (has_ended ? '' : literal.rest());
    },
    hasEnded: () => has_ended || plain?.hasEnded() === true,
  };
}
