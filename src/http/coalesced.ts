import { limits } from '../limits.ts';

/**
 * Bounds what making an answer from changing state costs, however many ask for it: while it is made, all who ask wait for the
 * same one, and it is made at most `answers_made_burst` times in a row, then only so often that making takes a tenth of the
 * time, or once in `answer_made_ms_max`. Between, the last one serves. One that fails serves nobody else.
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
