/** What a text of JSON may hold. */
export interface JsonBounds {
  levels_max: number;
  /** Absent: any number. */
  values_max?: number;
}

const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;

/**
 * Which bound a text of JSON is beyond; undefined: none. Looks at brackets and commas alone, without recursion and without making
 * anything, so it may come before a text is parsed. A short text costs nothing. What is no JSON is for the parser to say.
 */
export function jsonExcess(
  text: string,
  { levels_max, values_max = Number.POSITIVE_INFINITY }: JsonBounds,
): 'levels' | 'values' | undefined {
  // A level takes two characters, and a value with its comma as many.
  if (text.length <= 2 * levels_max) return undefined;
  if (values_max === Number.POSITIVE_INFINITY && !hasOpenings(text, levels_max)) return undefined;
  let levels = 0;
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      at = endOfString(text, at);
    } else if (char === COMMA) {
      values += 1;
      if (values > values_max) return 'values';
    } else if (char === 91 || char === 123) {
      levels += 1;
      values += 1;
      if (levels > levels_max) return 'levels';
      if (values > values_max) return 'values';
    } else if (char === 93 || char === 125) levels -= 1;
  }
  return undefined;
}

/** Whether a text has more than so many opening brackets, wherever they stand: fewer are no more levels. */
function hasOpenings(text: string, count: number): boolean {
  let found = 0;
  for (const bracket of ['[', '{']) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      found += 1;
      if (found > count) return true;
    }
  }
  return false;
}

/** Where the string that begins at `from` has its closing quote; the end of the text where it has none. */
function endOfString(text: string, from: number): number {
  let end = text.indexOf('"', from + 1);
  while (end !== -1) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return text.length;
}
