import { limits } from '../limits.ts';

/** Counts the work of one turn of the event loop, in characters that are read or hashed. */
export class TurnWork {
  #left_chars: number = limits.turn_work_chars;

  /** Counts `chars` more; true if other requests should be served before the work continues. */
  isDone(chars: number): boolean {
    this.#left_chars -= chars;
    if (this.#left_chars > 0) return false;
    this.#left_chars = limits.turn_work_chars;
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
