import { limits } from '../limits.ts';

/**
 * Returns a function that shares the results of `make`. Callers during a run share that run. At most `answers_made_burst` runs follow
 * each other directly; then runs take at most a tenth of the time, but there is one at least every `answer_made_ms_max`. In between,
 * callers get the last result. A failed result is not shared with later callers.
 */
export function coalesced<T>(
  make: () => T | Promise<T>,
  now_ms: () => number = () => performance.now(),
): () => Promise<T> {
  let last: Promise<T> | undefined;
  let isMaking = false;
  let credit: number = limits.answers_made_burst;
  let credited_ms = now_ms();
  let every_ms = 1;
  const mayMake = () => {
    const earned = Math.floor((now_ms() - credited_ms) / every_ms);
    credit = Math.min(limits.answers_made_burst, credit + earned);
    credited_ms += earned * every_ms;
    if (credit === 0) return false;
    credit -= 1;
    return true;
  };
  return () => {
    if (last !== undefined && (isMaking || !mayMake())) return last;
    isMaking = true;
    const begun_ms = now_ms();
    const made = (async () => make())();
    last = made;
    const end = () => {
      isMaking = false;
      every_ms = Math.min(limits.answer_made_ms_max, Math.max(1, 10 * (now_ms() - begun_ms)));
    };
    made.then(end, () => {
      end();
      last = undefined;
    });
    return made;
  };
}
