import { limits } from '../../limits.ts';

/** Request options that abort with `reason` if the server keeps sending interim answers (100, 103) instead of a final one. */
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
