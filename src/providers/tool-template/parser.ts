import { parseArguments } from '../shared/arguments.ts';
import { asObject } from '../shared/json-shape.ts';
import { CALL_CLOSE, CALL_OPEN, type ToolTemplate } from './markup.ts';

/** One call in the text of an answer. */
export const TOOL_TEMPLATE_CALL_CHARS_MAX = 262_144;
/** White space next to a call. */
export const TOOL_TEMPLATE_GAP_CHARS_MAX = 64;

/** A piece of an answer: text, or a call with its arguments as JSON text. */
export type Run = { text: string } | { name: string; arguments: string };

/** Text allowed between the opening tag and the object: white space, and the beginning of a fence. */
const LEAD = /^\s*(?:`{1,3}|```[a-z]*\s*)?$/;
const FENCE = '```';
/** The characters of JSON outside strings. */
const JSON_CHAR = /[[\]{}:,0-9.eE+\-truefalsn\s]/;

const WINDOW_CHARS = 256;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** How many characters at the end of the text may begin the tag. */
function tagBeginning(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(text.length - length))) return length;
  }
  return 0;
}

function isSpace(char: string): boolean {
  return char === ' ' || char === '\n' || char === '\r' || char === '\t';
}

/** The start of the white space at the end of a text; at most `most` characters are counted. */
function trailingSpace(text: string, end: number, max: number): number {
  let from = end;
  while (from > 0 && end - from < max && isSpace(text[from - 1]!)) from -= 1;
  return from;
}

/** Escapes line breaks and tabs inside strings, which JSON forbids and models write nevertheless. */
function withEscapedControls(json: string): string {
  // A string without an end reaches to the end of the text: the rest is not read again from each of its quotes.
  return json.replace(/"[^"\\]*(?:\\[\s\S][^"\\]*)*(?:"|\\?$)/g, (text) =>
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what the pattern must match.
    text.replace(/[\u0000-\u001f]/g, (char) => JSON.stringify(char).slice(1, -1)),
  );
}

/** The arguments as text; undefined if they are not an object. Some models write them as a string of JSON. */
function argumentsText(value: unknown): string | undefined {
  if (value == null) return '{}';
  if (typeof value === 'string') return parseArguments(value).isObject ? value.trim() || '{}' : undefined;
  const text = asObject(value) === undefined ? '' : JSON.stringify(value);
  return text.startsWith('{') ? text : undefined;
}

/**
 * Parses tool calls in the text of an answer, which may be split anywhere: the same text gives the same runs, except where texts are
 * split. A call is returned when its object is complete and valid; everything else stays text, unchanged. White space next to a call
 * belongs to the markup. Each character is read a bounded number of times, and at most the text of one call is held back.
 */
export class ToolCallParser {
  readonly #names: ReadonlySet<string>;
  readonly #isSingle: boolean;
  #mode: 'text' | 'lead' | 'json' | 'tail' = 'text';
  /** In text: white space, and a possible beginning of a tag. In a tail: a possible end of a call. */
  #held = '';
  /** The call so far, with its tag. */
  #pieces: string[] = [];
  #chars = 0;
  /** The white space before it. */
  #before = '';
  /** The offset of its object. */
  #jsonFrom = 0;
  #lead = '';
  #hasFence = false;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #calls = 0;
  #hasText = false;
  /** Whether the last run was a call; `#gap` is the white space before it. */
  #afterCall = false;
  #gap = '';

  constructor({ names, is_forced: isForced, is_single: isSingle }: ToolTemplate) {
    this.#names = new Set(names);
    this.#isSingle = isSingle;
    if (isForced) this.#startCall('');
  }

  push(text: string): Run[] {
    const runs: Run[] = [];
    for (let at = 0; at < text.length; ) {
      switch (this.#mode) {
        case 'text':
          at = this.#readText(text, at, runs);
          break;
        case 'lead':
          at = this.#readLead(text, at, runs);
          break;
        case 'json':
          at = this.#readJson(text, at, runs);
          break;
        case 'tail':
          at = this.#readTail(text, at);
          break;
      }
    }
    return runs;
  }

  /** The held text at the end of a block of text: an incomplete call is text. */
  end(): Run[] {
    const runs: Run[] = [];
    if (this.#mode === 'lead' || this.#mode === 'json') this.#abandonCall(runs);
    if (this.#mode === 'text') this.#emitText(this.#held, runs);
    this.#held = '';
    this.#mode = 'text';
    return runs;
  }

  #emitText(text: string, runs: Run[]): void {
    let content = text;
    if (this.#afterCall) {
      content = text.trimStart();
      if (content === '') return;
      if (this.#hasText) content = `${this.#gap || '\n'}${content}`;
      this.#afterCall = false;
    }
    if (content === '') return;
    this.#hasText = true;
    runs.push({ text: content });
  }

  #readText(text: string, at: number, runs: Run[]): number {
    const before = this.#held.length;
    // Held text is joined with a short piece only, so that a long text is copied once, however many calls it contains.
    const piece = before === 0 ? text.slice(at) : text.slice(at, at + WINDOW_CHARS);
    const whole = this.#held + piece;
    const gapMax = TOOL_TEMPLATE_GAP_CHARS_MAX;
    const open = whole.indexOf(CALL_OPEN);
    if (open === -1) {
      const tagStart = whole.length - tagBeginning(whole, CALL_OPEN);
      const heldFrom = trailingSpace(whole, tagStart, gapMax);
      this.#held = whole.slice(heldFrom);
      this.#emitText(whole.slice(0, heldFrom), runs);
      return at + piece.length;
    }
    const end = trailingSpace(whole, open, gapMax);
    this.#held = '';
    this.#emitText(whole.slice(0, end), runs);
    this.#startCall(CALL_OPEN);
    this.#before = whole.slice(end, open);
    return at + open + CALL_OPEN.length - before;
  }

  #startCall(tag: string): void {
    this.#mode = 'lead';
    this.#pieces = tag === '' ? [] : [tag];
    this.#chars = tag.length;
    this.#lead = '';
    this.#before = '';
    this.#hasFence = false;
  }

  #readLead(text: string, at: number, runs: Run[]): number {
    const char = text[at]!;
    if (char === '{') {
      this.#hasFence = this.#lead.includes(FENCE);
      if (this.#lead !== '') this.#pieces.push(this.#lead);
      this.#chars += this.#lead.length;
      this.#lead = '';
      this.#startJson();
      return at;
    }
    const lead = this.#lead + char;
    if (lead.length > TOOL_TEMPLATE_GAP_CHARS_MAX || !LEAD.test(lead)) {
      this.#abandonCall(runs);
      return at;
    }
    this.#lead = lead;
    return at + 1;
  }

  #startJson(): void {
    this.#mode = 'json';
    this.#jsonFrom = this.#chars;
    this.#depth = 0;
    this.#isInString = false;
    this.#isEscaped = false;
  }

  #readJson(text: string, at: number, runs: Run[]): number {
    const room = TOOL_TEMPLATE_CALL_CHARS_MAX - this.#chars;
    const until = Math.min(text.length, at + room);
    let to = at;
    let isComplete = false;
    let isBroken = room <= 0;
    for (; to < until && !isComplete; to += 1) {
      if (this.#isInString) {
        const code = text.charCodeAt(to);
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === BACKSLASH) this.#isEscaped = true;
        else if (code === QUOTE) this.#isInString = false;
        continue;
      }
      const char = text[to]!;
      if (char === '"') this.#isInString = true;
      else if (char === '{' || char === '[') this.#depth += 1;
      else if (char === '}' || char === ']') {
        this.#depth -= 1;
        isComplete = this.#depth === 0;
      } else if (!JSON_CHAR.test(char)) {
        isBroken = true;
        break;
      }
    }
    this.#pieces.push(text.slice(at, to));
    this.#chars += to - at;
    if (isComplete) this.#complete(runs);
    else if (isBroken || this.#chars >= TOOL_TEMPLATE_CALL_CHARS_MAX) this.#abandonCall(runs);
    return to;
  }

  #complete(runs: Run[]): void {
    const raw = this.#pieces.join('');
    const call = this.#read(raw.slice(this.#jsonFrom));
    if (call === undefined) {
      this.#abandonCall(runs);
      return;
    }
    this.#pieces = [];
    if (!this.#afterCall) this.#gap = this.#before;
    this.#afterCall = true;
    this.#calls += 1;
    // A client that accepts one call gets the first; its result leads to the next.
    if (this.#calls === 1 || !this.#isSingle) runs.push(call);
    this.#mode = 'tail';
    this.#held = '';
  }

  #read(json: string): Run | undefined {
    let { input, isObject } = parseArguments(json);
    if (!isObject) ({ input, isObject } = parseArguments(withEscapedControls(json)));
    const { name } = input;
    if (!isObject || typeof name !== 'string' || !this.#names.has(name)) return undefined;
    const args = argumentsText(input['arguments'] ?? input['parameters']);
    return args === undefined ? undefined : { name, arguments: args };
  }

  /** Not a call: the text held for it is text, and the parser starts again after it. */
  #abandonCall(runs: Run[]): void {
    const raw = this.#pieces.join('') + this.#lead;
    const hasBegun = this.#pieces.length > 0;
    this.#pieces = [];
    this.#lead = '';
    this.#mode = 'text';
    this.#held = '';
    // White space and a fence without a tag may precede a tag.
    if (hasBegun) this.#emitText(this.#before + raw, runs);
    else this.#held = raw;
  }

  /** Reads what may follow a call without being text: white space, the end of a fence, the closing tag, or another object. */
  #readTail(text: string, at: number): number {
    const char = text[at]!;
    const isFenceRead = this.#held.startsWith(FENCE);
    if (isSpace(char) && (this.#held === '' || this.#held === FENCE)) return at + 1;
    const next = this.#held + char;
    const rest = isFenceRead ? next.slice(FENCE.length) : next;
    if (rest === CALL_CLOSE) {
      this.#mode = 'text';
      this.#held = '';
      return at + 1;
    }
    if (rest === '{') {
      this.#startCall('');
      this.#startJson();
      return at;
    }
    if (CALL_CLOSE.startsWith(rest) || (this.#hasFence && FENCE.startsWith(next))) {
      this.#held = next;
      return at + 1;
    }
    // This may begin another call.
    this.#mode = 'text';
    if (isFenceRead) this.#held = this.#held.slice(FENCE.length);
    return at;
  }
}
