/** A timer that was set; opaque. */
export type Timer = unknown;

/** The time, and what happens later, as the ledger sees them: injected, so that a simulation can run years in seconds. */
export interface LedgerClock {
  /** Milliseconds since 1970. */
  now(): number;
  monotonic(): number;
  /** `background`: does not keep the process alive. */
  setTimeout(run: () => void, delay_ms: number, background?: boolean): Timer;
  clearTimeout(timer: Timer): void;
  /** Does not keep the process alive. */
  setInterval(run: () => void, interval_ms: number): Timer;
  clearInterval(timer: Timer): void;
  setImmediate(run: () => void): void;
}

/** This process's own time, with `now` of the caller's. */
export function realClock(now: () => number): LedgerClock {
  return {
    now,
    monotonic: () => performance.now(),
    setTimeout: (run, delay_ms, background = false) => {
      const timer = setTimeout(run, delay_ms);
      return background ? timer.unref() : timer;
    },
    clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
    setInterval: (run, interval_ms) => setInterval(run, interval_ms).unref(),
    clearInterval: (timer) => clearInterval(timer as NodeJS.Timeout | undefined),
    setImmediate: (run) => void setImmediate(run),
  };
}
