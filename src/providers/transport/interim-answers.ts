import { limits } from '../../limits.ts';

/** Options of a request that end it with `reason` if its server sends interim answers (100, 103) without end in place of one. */
export function boundInterim(signal: AbortSignal, reason: () => Error): { signal: AbortSignal; onInfo: () => void } {
  const ending = new AbortController();
  let answers = 0;
  return {
    signal: AbortSignal.any([signal, ending.signal]),
    onInfo() {
      answers += 1;
      if (answers > limits.upstream_interim_answers_max) ending.abort(reason());
    },
  };
}
