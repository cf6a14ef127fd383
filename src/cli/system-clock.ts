import type { Clock } from '../inference/call.ts';

/** The machine's clocks. */
export const systemClock: Clock = { nowMs: Date.now, monotonicMs: performance.now.bind(performance) };
