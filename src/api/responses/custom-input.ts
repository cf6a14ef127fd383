/** The text of a custom tool out of arguments that are `{"input": "…"}`, piece by piece. */
export interface CustomInput {
  /** What more of the text a further piece of the arguments tells. */
  add(fragment: string): string;
  /** What is still to be told at the end: all of arguments that have another form. */
  end(): string;
}

/** Arguments that have not begun so by then are of another form. */
const BEGINNING_CHARS_MAX = 1_000;
const BEGINNING = /^\s*\{\s*"input"\s*:\s*"/;
const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/** Makes the reader of one call's arguments. */
export function createCustomInput(): CustomInput {
  /** The arguments so far; once the text has begun, what is not read yet of them. */
  let told = '';
  let hasBegun = false;
  let isOver = false;

  /** Up to an escape that is not whole yet. */
  function read(from: number): string {
    let text = '';
    let next = from;
    for (; next < told.length; next += 1) {
      const char = told[next]!;
      if (char === '"') {
        isOver = true;
        break;
      }
      if (char !== '\\') {
        text += char;
        continue;
      }
      const length = told[next + 1] === 'u' ? 6 : 2;
      if (next + length > told.length) break;
      const kind = told[next + 1]!;
      text +=
        kind === 'u'
          ? String.fromCharCode(Number.parseInt(told.slice(next + 2, next + 6), 16))
          : (ESCAPES[kind] ?? kind);
      next += length - 1;
    }
    told = told.slice(next);
    return text;
  }

  return {
    add(fragment) {
      if (isOver) return '';
      told += fragment;
      if (hasBegun) return read(0);
      if (told.length - fragment.length > BEGINNING_CHARS_MAX) return '';
      const beginning = BEGINNING.exec(told)?.[0];
      if (beginning === undefined) return '';
      hasBegun = true;
      return read(beginning.length);
    },
    end() {
      if (hasBegun) return '';
      try {
        const input = (JSON.parse(told) as { input?: unknown } | null)?.input;
        return typeof input === 'string' ? input : told;
      } catch {
        return told;
      }
    },
  };
}
