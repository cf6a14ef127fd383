/** Characters of a large body that are searched or hashed before others are served. */
export const TURN_WORK_CHARS = 4 * 1024 * 1024;

/** Counts the work of one turn of the event loop, in characters that are read or hashed. */
export class TurnWork {
  #leftChars: number = TURN_WORK_CHARS;

  /** Counts `chars` more; true if other requests should be served before the work continues. */
  isDone(chars: number): boolean {
    this.#leftChars -= chars;
    if (this.#leftChars > 0) return false;
    this.#leftChars = TURN_WORK_CHARS;
    return true;
  }
}

/** Runs a generator to its end without yielding to other requests: for work that is known to be short. */
export function atOnce<T>(work: Generator<void, T, undefined>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}
