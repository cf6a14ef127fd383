import type { Clock } from '../inference/call.ts';

/** The machine's clocks. */
export const systemClock: Clock = { now_ms: Date.now, monotonic_ms: performance.now.bind(performance) };
