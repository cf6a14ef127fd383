import { limits } from '../../limits.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
/** A string or a number in a text of JSON. */
export interface JsonToken {
  /** Offsets in the text, quotes included. */
  start: number;
  end: number;
  /** The unescaped text. */
  text: string;
  /** For a name in an object: all names of the object, complete once the object is read. */
  names: Set<string> | undefined;
}

const ESCAPE = /\\[\s\S]/g;
const SPACES: Readonly<Record<string, string>> = lookupTable({ '\\n': '\n\n', '\\r': '\n\n', '\\t': '\t\t' });

/** Replaces escaped line breaks in JSON by real ones, so that patterns see the lines of its strings. The length stays the same. */
export function withLines(json: string): string {
  return json.includes('\\') ? json.replace(ESCAPE, (pair) => SPACES[pair] ?? pair) : json;
}

const SPACE = /[\t\n\r ]*/y;
const WORD = /true|false|null/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const BACKSLASH = 0x5c;

/** The end of a match at an offset. The offset itself if there is none. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

/** The end of the string that begins with the quote at an offset; undefined if it does not end. */
function stringEnd(text: string, from: number): number | undefined {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
  return undefined;
}

function stringToken(text: string, start: number, names: Set<string> | undefined): JsonToken | undefined {
  const end = stringEnd(text, start);
  if (end === undefined) return undefined;
  try {
    return { start, end, text: JSON.parse(text.slice(start, end)) as string, names };
  } catch {
    return undefined;
  }
}

/** The token of a number, whose text is in plain decimal form: `41` for `4.1e1`. */
function numberToken(text: string, start: number, end: number): JsonToken {
  const written = text.slice(start, end);
  return { start, end, text: /[.eE]/.test(written) ? String(Number(written)) : written, names: undefined };
}

/**
 * The strings, names and numbers of a JSON text, in order, including those that parsers drop: of two members with one name the
 * first. Returns whether the text is JSON; only then the tokens are complete.
 */
export function* jsonTokens(text: string): Generator<JsonToken, boolean> {
  /** The open values: the names of an object, or undefined for a list. */
  const open: (Set<string> | undefined)[] = [];
  let wants: 'value' | 'value or end' | 'name' | 'name or end' | 'more' = 'value';
  let at = endOf(SPACE, text, 0);
  while (at < text.length) {
    const sign = text[at]!;
    const names = open.at(-1);
    let next = at + 1;
    if (wants === 'more') {
      if (open.length === 0) return false;
      if (sign === ',') wants = names === undefined ? 'value' : 'name';
      else if (sign === (names === undefined ? ']' : '}')) open.pop();
      else return false;
    } else if (wants === 'name' || wants === 'name or end') {
      if (sign === '}' && wants === 'name or end') {
        open.pop();
        wants = 'more';
      } else {
        const token = sign === '"' ? stringToken(text, at, names) : undefined;
        if (token === undefined) return false;
        names?.add(token.text);
        yield token;
        const colon = endOf(SPACE, text, token.end);
        if (text[colon] !== ':') return false;
        next = colon + 1;
        wants = 'value';
      }
    } else if (sign === ']' && wants === 'value or end') {
      open.pop();
      wants = 'more';
    } else if (sign === '{' || sign === '[') {
      if (open.length === limits.filtered_levels_max) return false;
      open.push(sign === '{' ? new Set() : undefined);
      wants = sign === '{' ? 'name or end' : 'value or end';
    } else {
      wants = 'more';
      if (sign === '"') {
        const token = stringToken(text, at, undefined);
        if (token === undefined) return false;
        yield token;
        next = token.end;
      } else {
        const end = endOf(NUMBER, text, at);
        if (end > at) yield numberToken(text, at, end);
        next = end > at ? end : endOf(WORD, text, at);
        if (next === at) return false;
      }
    }
    at = endOf(SPACE, text, next);
  }
  return wants === 'more' && open.length === 0;
}

/** Replaces tokens in a JSON text. Names that become equal are numbered. */
export function withTokens(text: string, changed: Iterable<readonly [JsonToken, string]>): string {
  const out: string[] = [];
  let from = 0;
  for (const [{ start, end, names }, replacement] of changed) {
    let free = replacement;
    for (let n = 2; names?.has(free); n += 1) free = `${replacement} ${n}`;
    names?.add(free);
    out.push(text.slice(from, start), JSON.stringify(free));
    from = end;
  }
  out.push(text.slice(from));
  return out.join('');
}
