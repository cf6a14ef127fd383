import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { Scheduler } from '../../test/simulation/scheduler.ts';

/** Ten o'clock of an ordinary day, so that virtual time does not start at a boundary. */
const START_MS = Date.UTC(2026, 0, 5, 10);

/** Time that passes when no work is left. Milliseconds. */
export interface VirtualTime {
  nowMs(): number;
  /** Since the start. */
  elapsedMs(): number;
  sleep(ms: number): Promise<void>;
  after(ms: number, run: () => void): void;
  /** Runs everything that is due until this time after the start. */
  runUntil(elapsedMs: number): Promise<void>;
  /** Restores the globals. */
  restore(): void;
}

/**
 * Replaces the timers and clocks of the process, so that code with timers of its own follows this time. Only one can be
 * active at a time.
 */
export function takeTime(): VirtualTime {
  const scheduler = new Scheduler(START_MS);
  const after = (ms: number, run: () => void) => scheduler.after(ms, 'timer', undefined, run);
  const elapsedMs = () => scheduler.now_ms - START_MS;
  const { setTimeout, clearTimeout, Date: RealDate } = globalThis;
  const now = performance.now;
  const dateNow = RealDate.now;

  const virtualTimeout = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
    const scheduled = after(Math.max(1, ms), () => run(...args));
    return Object.assign(scheduled, { ref: () => scheduled, unref: () => scheduled, hasRef: () => true });
  };
  const cancel = (timer: unknown) => {
    if (typeof timer === 'object' && timer !== null) (timer as { cancelled: boolean }).cancelled = true;
  };
  const realSleep = timers.setTimeout;
  const virtualSleep = <T>(ms = 0, value?: T, { signal }: { signal?: AbortSignal } = {}): Promise<T> =>
    new Promise((resolve, reject) => {
      const scheduled = after(Math.max(1, ms), () => resolve(value as T));
      signal?.addEventListener('abort', () => {
        scheduled.cancelled = true;
        reject(signal.reason);
      });
    });
  timers.setTimeout = virtualSleep as typeof realSleep;
  syncBuiltinESMExports();
  globalThis.setTimeout = virtualTimeout as unknown as typeof setTimeout;
  globalThis.clearTimeout = cancel as typeof clearTimeout;
  performance.now = elapsedMs;
  RealDate.now = () => Math.floor(scheduler.now_ms);

  return {
    nowMs: () => scheduler.now_ms,
    elapsedMs: elapsedMs,
    sleep: (ms) => new Promise((resolve) => void after(ms, resolve)),
    after: (ms, run) => void after(ms, run),
    runUntil: (elapsed) => scheduler.runUntil(START_MS + elapsed, () => true),
    restore() {
      timers.setTimeout = realSleep;
      syncBuiltinESMExports();
      globalThis.setTimeout = setTimeout;
      globalThis.clearTimeout = clearTimeout;
      performance.now = now;
      RealDate.now = dateNow;
    },
  };
}
