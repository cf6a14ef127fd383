/**
 * A token of the sandbox is at most six characters without white space, together with the white space before them.
 * The joined tokens are the text, and every streamed piece is one token of the usage.
 */
const token_chars = 6;

function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}

/** The end of the token that starts at `start`. It never divides a surrogate pair. */
function tokenEnd(text: string, start: number): number {
  let end = start;
  while (end < text.length && isSpace(text.charCodeAt(end))) end += 1;
  for (let chars = 0; chars < token_chars && end < text.length; chars += 1) {
    const code = text.codePointAt(end)!;
    if (isSpace(code)) break;
    end += code > 0xffff ? 2 : 1;
  }
  return end;
}

/** Divides a text into its tokens. */
export function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  for (let start = 0; start < text.length; ) {
    const end = tokenEnd(text, start);
    tokens.push(text.slice(start, end));
    start = end;
  }
  return tokens;
}

/** The number of tokens of a text. */
export function countTokens(text: string): number {
  let count = 0;
  for (let start = 0; start < text.length; count += 1) start = tokenEnd(text, start);
  return count;
}
