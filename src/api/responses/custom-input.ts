import { lookupTable } from '../../schemas/lookup-table.ts';

/** Extracts the text of a custom tool from arguments of the form `{"input": "…"}`, piece by piece. */
export interface CustomInput {
  /** Adds a piece of the arguments. Returns the text that it adds. */
  add(fragment: string): string;
  /** The remaining text at the end: all of the arguments if they have another form. */
  end(): string;
}

/** Arguments that do not begin in this form within this many characters have another form. */
const BEGINNING_CHARS_MAX = 1_000;
const BEGINNING = /^\s*\{\s*"input"\s*:\s*"/;
const ESCAPES: Readonly<Record<string, string>> = lookupTable({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' });

/** Makes the reader of the arguments of one call. */
export function createCustomInput(): CustomInput {
  /** The arguments so far; once the text has begun, the part that was not read yet. */
  let pending = '';
  let hasBegun = false;
  let isOver = false;

  /** Reads up to the end, or to an incomplete escape. */
  function read(from: number): string {
    let text = '';
    let next = from;
    for (; next < pending.length; next += 1) {
      const char = pending[next]!;
      if (char === '"') {
        isOver = true;
        break;
      }
      if (char !== '\\') {
        text += char;
        continue;
      }
      const length = pending[next + 1] === 'u' ? 6 : 2;
      if (next + length > pending.length) break;
      const kind = pending[next + 1]!;
      text +=
        kind === 'u'
          ? String.fromCharCode(Number.parseInt(pending.slice(next + 2, next + 6), 16))
          : (ESCAPES[kind] ?? kind);
      next += length - 1;
    }
    pending = pending.slice(next);
    return text;
  }

  return {
    add(fragment) {
      if (isOver) return '';
      pending += fragment;
      if (hasBegun) return read(0);
      if (pending.length - fragment.length > BEGINNING_CHARS_MAX) return '';
      const beginning = BEGINNING.exec(pending)?.[0];
      if (beginning === undefined) return '';
      hasBegun = true;
      return read(beginning.length);
    },
    end() {
      if (hasBegun) return '';
      try {
        const input = (JSON.parse(pending) as { input?: unknown } | null)?.input;
        return typeof input === 'string' ? input : pending;
      } catch {
        return pending;
      }
    },
  };
}
