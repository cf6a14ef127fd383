import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Runs work that yields where others may be served, one step a turn of the loop; ends early, with undefined, where nobody wants it any more.
 * What follows work of several steps begins with a turn of its own.
 */
export async function inTurns<T>(
  work: Generator<void, T, undefined>,
  isUnwanted?: () => boolean,
): Promise<T | undefined> {
  for (let steps = 1; ; steps += 1) {
    const { done, value } = work.next();
    if (done === true && steps === 1) return value;
    await nextTurn();
    if (isUnwanted?.() === true) return undefined;
    if (done === true) return value;
  }
}

/** Works on each of a list, in order and one a turn of the loop. */
export async function oneATurn<T, R>(
  list: readonly T[],
  work: (one: T, index: number) => R | Promise<R>,
): Promise<R[]> {
  const done: R[] = [];
  for (const [index, one] of list.entries()) {
    done.push(await work(one, index));
    await nextTurn();
  }
  return done;
}
