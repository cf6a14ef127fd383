import { setImmediate as nextTurn } from 'node:timers/promises';

/** Runs work that yields where others may be served, one step a turn of the loop; ends early, with undefined, where nobody wants it any more. */
export async function inTurns<T>(
  work: Generator<void, T, undefined>,
  isUnwanted?: () => boolean,
): Promise<T | undefined> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    await nextTurn();
    if (isUnwanted?.() === true) return undefined;
  }
}
