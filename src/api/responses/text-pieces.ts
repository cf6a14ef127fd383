import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';

/** A long text that grows, in pieces that are never joined: one string would be made in one turn, and take as much memory again. */
export class TextPieces {
  readonly #pieces: string[] = [];
  #last = '';

  add(text: string): void {
    this.#last += text;
    if (this.#last.length < limits.json_piece_chars) return;
    this.#pieces.push(this.#last);
    this.#last = '';
  }

  /** All pieces so far, of which the last may be empty. */
  all(): readonly string[] {
    return [...this.#pieces, this.#last];
  }

  /** The same text, which grows on its own. The pieces are shared. */
  copy(): TextPieces {
    const copy = new TextPieces();
    append(copy.#pieces, this.#pieces);
    copy.#last = this.#last;
    return copy;
  }
}
