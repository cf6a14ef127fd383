import { limits } from '../limits.ts';

/** Counts work, in characters that are read or hashed, up to what one turn of the loop takes. */
export class TurnWork {
  #left_chars: number = limits.turn_work_chars;

  /** Counts more of it; whether others are to be served before it goes on. */
  isDone(chars: number): boolean {
    this.#left_chars -= chars;
    if (this.#left_chars > 0) return false;
    this.#left_chars = limits.turn_work_chars;
    return true;
  }
}

/** Runs work that yields where others may be served, and serves nobody: for work that is known to be short. */
export function atOnce<T>(work: Generator<void, T, undefined>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}
