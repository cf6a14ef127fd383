import { nextTurn } from '../next-turn.ts';

/**
 * Runs a generator one step per turn of the event loop, so that other requests are served between its yields. If `isCancelled` becomes
 * true, it stops and resolves to undefined. After work of several steps, the caller continues in a turn of its own.
 */
export async function inTurns<T>(
  work: Generator<void, T, undefined>,
  isCancelled?: () => boolean,
): Promise<T | undefined> {
  for (let steps = 1; ; steps += 1) {
    const { done, value } = work.next();
    if (done === true && steps === 1) return value;
    await nextTurn();
    if (isCancelled?.() === true) return undefined;
    if (done === true) return value;
  }
}

/** Applies `work` to each element of a list, in order, one per turn of the event loop. */
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
