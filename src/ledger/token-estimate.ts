/**
 * Counts the tokens of a text without a tokenizer: for upstreams that report no usage. An estimate, and marked so.
 * Rules of thumb of byte-pair encodings: a Latin word of up to seven letters is one token with its leading space, digits
 * go in threes, ideographs are a little under one each, other scripts about three letters each.
 */
export function estimateTokens(text: string): number {
  let tokens = 0;
  let index = 0;
  while (index < text.length) {
    const code = text.charCodeAt(index);
    const kind = classOf(code);
    let end = index + 1;
    while (end < text.length && classOf(text.charCodeAt(end)) === kind) end += 1;
    tokens += tokensOfRun(kind, end - index, text, index);
    index = end;
  }
  return Math.ceil(tokens);
}

type CharacterClass = 'latin' | 'digit' | 'space' | 'newline' | 'ideograph' | 'letter' | 'mark';

function classOf(code: number): CharacterClass {
  if ((code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 0xc0 && code <= 0x24f)) return 'latin';
  if (code >= 48 && code <= 57) return 'digit';
  if (code === 32 || code === 9) return 'space';
  if (code === 10 || code === 13) return 'newline';
  if (code >= 0x2e80 && code <= 0xd7ff) return 'ideograph';
  return code < 0x80 || (code >= 0x2000 && code < 0x2e80) ? 'mark' : 'letter';
}

function tokensOfRun(kind: CharacterClass, length: number, text: string, start: number): number {
  switch (kind) {
    case 'latin':
      return 1 + Math.floor((length - 1) / 9) + capitals(text, start, length);
    case 'digit':
      return Math.ceil(length / 3);
    case 'space':
      return length === 1 ? 0 : 1;
    case 'newline':
      return 1;
    case 'ideograph':
      return length * 0.75;
    case 'letter':
      return length / 3.2;
    case 'mark':
      return Math.ceil(length / 2);
  }
}

/** An inner capital (`camelCase`) starts a new token. */
function capitals(text: string, start: number, length: number): number {
  let found = 0;
  for (let index = start + 1; index < start + length; index += 1) {
    const code = text.charCodeAt(index);
    const before = text.charCodeAt(index - 1);
    if (code >= 65 && code <= 90 && before >= 97 && before <= 122) found += 1;
  }
  return found;
}
