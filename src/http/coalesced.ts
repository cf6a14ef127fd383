import { limits } from '../limits.ts';

/**
 * Returns a function that shares the results of `make`. Callers during a run share that run. At most `answers_made_burst` runs follow
 * each other directly; then runs take at most a tenth of the time, but there is one at least every `answer_made_ms_max`. In between,
 * callers get the last result. A failed result is not shared with later callers.
 */
export function coalesced<T>(
  make: () => T | Promise<T>,
  nowMs: () => number = () => performance.now(),
): () => Promise<T> {
  let last: Promise<T> | undefined;
  let isMaking = false;
  let credit: number = limits.answers_made_burst;
  let creditedMs = nowMs();
  let everyMs = 1;
  const mayMake = () => {
    const earned = Math.floor((nowMs() - creditedMs) / everyMs);
    credit = Math.min(limits.answers_made_burst, credit + earned);
    creditedMs += earned * everyMs;
    if (credit === 0) return false;
    credit -= 1;
    return true;
  };
  return () => {
    if (last !== undefined && (isMaking || !mayMake())) return last;
    isMaking = true;
    const begunMs = nowMs();
    const made = (async () => make())();
    last = made;
    const end = () => {
      isMaking = false;
      everyMs = Math.min(limits.answer_made_ms_max, Math.max(1, 10 * (nowMs() - begunMs)));
    };
    made.then(end, () => {
      end();
      last = undefined;
    });
    return made;
  };
}
