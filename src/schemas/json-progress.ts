/** A value without brackets is parsed as a whole while it is not longer than this. */
const SCALAR_CHARS_MAX = 64;

/** Follows a growing text that should become JSON. Reads each character once, however often `isWhole` is called. */
export class JsonProgress {
  text = '';
  #unread = '';
  #depth = 0;
  #hasOpened = false;
  #inString = false;
  #isEscaped = false;
  /** Whether the first object or list is valid; undefined until it ends. */
  #isValid: boolean | undefined = undefined;

  add(piece: string): void {
    this.text += piece;
    this.#unread += piece;
  }

  /** Whether the text is a complete object or list, so that later text cannot belong to it. */
  get isClosed(): boolean {
    return this.isWhole && this.#hasOpened;
  }

  /** Whether the text is valid JSON. A number may still grow. */
  get isWhole(): boolean {
    if (this.#unread !== '') {
      const unread = this.#unread;
      this.#unread = '';
      const end = this.#isValid === undefined ? this.#scan(unread) : 0;
      if (this.#isValid === true && /[^ \t\r\n]/.test(unread.slice(end))) this.#isValid = false;
    }
    if (this.#isValid !== undefined || this.#hasOpened) return this.#isValid === true;
    return this.text.length <= SCALAR_CHARS_MAX && isJson(this.text);
  }

  /** Reads up to the end of the first object or list. Returns the offset behind what was read. */
  #scan(piece: string): number {
    for (let at = 0; at < piece.length; at += 1) {
      const char = piece.charCodeAt(at);
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (char === 92) this.#isEscaped = true;
        else if (char === 34) this.#inString = false;
      } else if (char === 34) this.#inString = true;
      else if (char === 123 || char === 91) {
        this.#hasOpened = true;
        this.#depth += 1;
      } else if (char === 125 || char === 93) {
        this.#depth -= 1;
        if (this.#depth > 0) continue;
        this.#isValid = isJson(this.text.slice(0, this.text.length - piece.length + at + 1));
        return at + 1;
      }
    }
    return piece.length;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
