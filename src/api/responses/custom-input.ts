/** The text of a custom tool out of arguments that are `{"input": "…"}`, piece by piece. */
export interface CustomInput {
  /** What more of the text a further piece of the arguments tells. */
  add(fragment: string): string;
  /** What is still to be told at the end: all of arguments that have another form. */
  end(): string;
}

const BEGINNING = /^\s*\{\s*"input"\s*:\s*"/;
const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/** Makes the reader of one call's arguments. */
export function createCustomInput(): CustomInput {
  let told = '';
  /** Where in the arguments the text goes on; undefined until it has begun. */
  let at: number | undefined;
  let is_over = false;

  /** Up to an escape that is not whole yet. */
  function read(from: number): string {
    let text = '';
    let next = from;
    for (; next < told.length; next += 1) {
      const char = told[next]!;
      if (char === '"') {
        is_over = true;
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
    at = next;
    return text;
  }

  return {
    add(fragment) {
      if (is_over) return '';
      told += fragment;
      if (at !== undefined) return read(at);
      const beginning = BEGINNING.exec(told)?.[0];
      return beginning === undefined ? '' : read(beginning.length);
    },
    end() {
      if (at !== undefined) return '';
      try {
        const input = (JSON.parse(told) as { input?: unknown } | null)?.input;
        return typeof input === 'string' ? input : told;
      } catch {
        return told;
      }
    },
  };
}
