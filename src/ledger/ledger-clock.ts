/** An opaque timer. */
export type Timer = unknown;

/** Time and timers of the ledger: injected, so that a simulation can run years in seconds. */
export interface LedgerClock {
  /** Milliseconds since 1970. */
  now(): number;
  monotonic(): number;
  /** `background`: does not keep the process alive. */
  setTimeout(run: () => void, delayMs: number, background?: boolean): Timer;
  clearTimeout(timer: Timer): void;
  /** Does not keep the process alive. */
  setInterval(run: () => void, intervalMs: number): Timer;
  clearInterval(timer: Timer): void;
  setImmediate(run: () => void): void;
}

/** The clock of this process, with `now` as the wall clock. */
export function realClock(now: () => number): LedgerClock {
  return {
    now,
    monotonic: performance.now.bind(performance),
    setTimeout: (run, delayMs, background = false) => {
      const timer = setTimeout(run, delayMs);
      return background ? timer.unref() : timer;
    },
    clearTimeout: clearTimeout as LedgerClock['clearTimeout'],
    setInterval: (run, intervalMs) => setInterval(run, intervalMs).unref(),
    clearInterval: (timer) => clearInterval(timer as NodeJS.Timeout | undefined),
    setImmediate,
  };
}
