import { limits } from '../../limits.ts';

type CharacterClass = 'latin' | 'digit' | 'space' | 'newline' | 'ideograph' | 'letter' | 'mark';

function classOf(code: number): CharacterClass {
  if ((code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 0xc0 && code <= 0x24f)) return 'latin';
  if (code >= 48 && code <= 57) return 'digit';
  if (code === 32 || code === 9) return 'space';
  if (code === 10 || code === 13) return 'newline';
  if (code >= 0x2e80 && code <= 0xd7ff) return 'ideograph';
  return code < 0x80 || (code >= 0x2000 && code < 0x2e80) ? 'mark' : 'letter';
}

/** The classes of the characters of ASCII, most of any text. */
const ASCII = Array.from({ length: 128 }, (_, code) => classOf(code));

/** The weight of a mark that repeats the one before it: lines and boxes are few tokens. */
const REPEATED_MARK = 1 / 8;

function tokensOfRun(kind: CharacterClass, length: number): number {
  switch (kind) {
    case 'latin':
      return 1 + Math.floor((length - 1) / 9);
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

/**
 * Estimates the tokens of a text that arrives in pieces, without a tokenizer; how it is split makes no difference. Rules of
 * thumb of byte-pair encodings: a Latin word of up to nine letters is one token with its leading space, an inner capital
 * starts a new one, digits are grouped in threes, ideographs are a little under one each, other scripts about three letters
 * each.
 */
export class TokenCount {
  #finished = 0;
  #kind: CharacterClass | undefined;
  #length = 0;
  #before = 0;

  /** Adds a piece. A very long piece is estimated from samples of it. */
  add(text: string): void {
    if (text.length > limits.estimated_chars_max) {
      this.#finished += estimateTokens(text);
      return;
    }
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      const kind = ASCII[code] ?? classOf(code);
      if (kind !== this.#kind) {
        if (this.#kind !== undefined) this.#finished += tokensOfRun(this.#kind, this.#length);
        this.#kind = kind;
        this.#length = 1;
      } else {
        this.#length += kind === 'mark' && code === this.#before ? REPEATED_MARK : 1;
        const isInner = code >= 65 && code <= 90 && this.#before >= 97 && this.#before <= 122;
        if (isInner) this.#finished += 1;
      }
      this.#before = code;
    }
  }

  get total(): number {
    const open = this.#kind === undefined ? 0 : tokensOfRun(this.#kind, this.#length);
    return Math.ceil(this.#finished + open);
  }
}

/** The number of samples of a text that is too long to be counted whole, evenly spread. */
const PIECES = 16;

/** The estimated tokens of a whole text; see `TokenCount`. A very long one is estimated from samples of it. */
export function estimateTokens(text: string): number {
  const count = new TokenCount();
  if (text.length <= limits.estimated_chars_max) {
    count.add(text);
    return count.total;
  }
  const pieceChars = Math.floor(limits.estimated_chars_max / PIECES);
  const apartChars = (text.length - pieceChars) / (PIECES - 1);
  for (let nth = 0; nth < PIECES; nth += 1) {
    const from = Math.floor(nth * apartChars);
    count.add(text.slice(from, from + pieceChars));
  }
  return Math.ceil((count.total / (PIECES * pieceChars)) * text.length);
}
