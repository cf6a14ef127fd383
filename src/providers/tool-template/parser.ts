import { limits } from '../../limits.ts';
import { parseArguments } from '../shared/arguments.ts';
import { asObject } from '../shared/json-shape.ts';
import { CALL_CLOSE, CALL_OPEN, type ToolTemplate } from './markup.ts';

/** A run of an answer: text, or a call with its arguments as JSON text. */
export type Run = { text: string } | { name: string; arguments: string };

/** What may stand between the opening tag and the object: white space, and the beginning of a fence. */
const LEAD = /^\s*(?:`{1,3}|```[a-z]*\s*)?$/;
const FENCE = '```';
/** What JSON has outside of its strings. */
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

/** Where the white space at the end of a text begins, of which no more than so many characters count. */
function trailingSpace(text: string, end: number, most: number): number {
  let from = end;
  while (from > 0 && end - from < most && isSpace(text[from - 1]!)) from -= 1;
  return from;
}

/** Line breaks and tabs that stand in strings as they are, which JSON forbids and models write all the same. */
function withEscapedControls(json: string): string {
  return json.replace(/"[^"\\]*(?:\\[\s\S][^"\\]*)*"/g, (text) =>
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
    text.replace(/[\u0000-\u001f]/g, (char) => JSON.stringify(char).slice(1, -1)),
  );
}

/** The arguments as text; undefined: they are no object. Some models write them as a text of JSON. */
function argumentsText(value: unknown): string | undefined {
  if (value == null) return '{}';
  if (typeof value === 'string') return parseArguments(value).isObject ? value.trim() || '{}' : undefined;
  const text = asObject(value) === undefined ? '' : JSON.stringify(value);
  return text.startsWith('{') ? text : undefined;
}

/**
 * Finds the calls of tools in the text of an answer, which may be cut anywhere: the same text gives the same runs, but for where its
 * texts are cut. A call is given out when its object is complete and right; everything else stays text, as it was. White space next to
 * a call is the markup's. Each character is looked at a bounded number of times, and no more is held back than one call may have.
 */
export class ToolCallParser {
  readonly #names: ReadonlySet<string>;
  readonly #is_single: boolean;
  #mode: 'text' | 'lead' | 'json' | 'tail' = 'text';
  /** Of a text: white space, and what may begin a tag. Of a tail: what may end a call. */
  #held = '';
  /** The call so far, with its tag. */
  #pieces: string[] = [];
  #chars = 0;
  /** The white space that stood before it. */
  #before = '';
  /** Where in it the object begins. */
  #json_from = 0;
  #lead = '';
  #has_fence = false;
  #depth = 0;
  #is_in_string = false;
  #is_escaped = false;
  #calls = 0;
  #has_text = false;
  /** A call was the last thing that came, and this white space stood before it. */
  #after_call = false;
  #gap = '';

  constructor({ names, is_forced: isForced, is_single: isSingle }: ToolTemplate) {
    this.#names = new Set(names);
    this.#is_single = isSingle;
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

  /** What is held back when a block of text ends: a call that is not complete is text. */
  end(): Run[] {
    const runs: Run[] = [];
    if (this.#mode === 'lead' || this.#mode === 'json') this.#giveUp(runs);
    if (this.#mode === 'text') this.#say(this.#held, runs);
    this.#held = '';
    this.#mode = 'text';
    return runs;
  }

  #say(text: string, runs: Run[]): void {
    let said = text;
    if (this.#after_call) {
      said = text.trimStart();
      if (said === '') return;
      if (this.#has_text) said = `${this.#gap || '\n'}${said}`;
      this.#after_call = false;
    }
    if (said === '') return;
    this.#has_text = true;
    runs.push({ text: said });
  }

  #readText(text: string, at: number, runs: Run[]): number {
    const before = this.#held.length;
    // What is held back is laid together with little, so that a long text is copied once, however many calls are in it.
    const piece = before === 0 ? text.slice(at) : text.slice(at, at + WINDOW_CHARS);
    const whole = this.#held + piece;
    const gapMax = limits.tool_template_gap_chars_max;
    const open = whole.indexOf(CALL_OPEN);
    if (open === -1) {
      const beginning = whole.length - tagBeginning(whole, CALL_OPEN);
      const kept = trailingSpace(whole, beginning, gapMax);
      this.#held = whole.slice(kept);
      this.#say(whole.slice(0, kept), runs);
      return at + piece.length;
    }
    const end = trailingSpace(whole, open, gapMax);
    this.#held = '';
    this.#say(whole.slice(0, end), runs);
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
    this.#has_fence = false;
  }

  #readLead(text: string, at: number, runs: Run[]): number {
    const char = text[at]!;
    if (char === '{') {
      this.#has_fence = this.#lead.includes(FENCE);
      if (this.#lead !== '') this.#pieces.push(this.#lead);
      this.#chars += this.#lead.length;
      this.#lead = '';
      this.#startJson();
      return at;
    }
    const lead = this.#lead + char;
    if (lead.length > limits.tool_template_gap_chars_max || !LEAD.test(lead)) {
      this.#giveUp(runs);
      return at;
    }
    this.#lead = lead;
    return at + 1;
  }

  #startJson(): void {
    this.#mode = 'json';
    this.#json_from = this.#chars;
    this.#depth = 0;
    this.#is_in_string = false;
    this.#is_escaped = false;
  }

  #readJson(text: string, at: number, runs: Run[]): number {
    const room = limits.tool_template_call_chars_max - this.#chars;
    const until = Math.min(text.length, at + room);
    let to = at;
    let isOver = false;
    let isBroken = room <= 0;
    for (; to < until && !isOver; to += 1) {
      if (this.#is_in_string) {
        const code = text.charCodeAt(to);
        if (this.#is_escaped) this.#is_escaped = false;
        else if (code === BACKSLASH) this.#is_escaped = true;
        else if (code === QUOTE) this.#is_in_string = false;
        continue;
      }
      const char = text[to]!;
      if (char === '"') this.#is_in_string = true;
      else if (char === '{' || char === '[') this.#depth += 1;
      else if (char === '}' || char === ']') {
        this.#depth -= 1;
        isOver = this.#depth === 0;
      } else if (!JSON_CHAR.test(char)) {
        isBroken = true;
        break;
      }
    }
    this.#pieces.push(text.slice(at, to));
    this.#chars += to - at;
    if (isOver) this.#complete(runs);
    else if (isBroken || this.#chars >= limits.tool_template_call_chars_max) this.#giveUp(runs);
    return to;
  }

  #complete(runs: Run[]): void {
    const raw = this.#pieces.join('');
    const call = this.#read(raw.slice(this.#json_from));
    if (call === undefined) {
      this.#giveUp(runs);
      return;
    }
    this.#pieces = [];
    if (!this.#after_call) this.#gap = this.#before;
    this.#after_call = true;
    this.#calls += 1;
    // A client that takes one call gets the first: its result leads to the next.
    if (this.#calls === 1 || !this.#is_single) runs.push(call);
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

  /** It is no call: what was held back of it is text, and what comes is looked at anew. */
  #giveUp(runs: Run[]): void {
    const raw = this.#pieces.join('') + this.#lead;
    const hasBegun = this.#pieces.length > 0;
    this.#pieces = [];
    this.#lead = '';
    this.#mode = 'text';
    this.#held = '';
    // White space and a fence without a tag may stand before one.
    if (hasBegun) this.#say(this.#before + raw, runs);
    else this.#held = raw;
  }

  /** White space, the end of a fence, the closing tag, or another object: all that may follow a call without being text. */
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
    if (CALL_CLOSE.startsWith(rest) || (this.#has_fence && FENCE.startsWith(next))) {
      this.#held = next;
      return at + 1;
    }
    // It may begin another call.
    this.#mode = 'text';
    if (isFenceRead) this.#held = this.#held.slice(FENCE.length);
    return at;
  }
}
