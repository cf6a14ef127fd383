import { limits } from '../../src/limits.ts';
import type { RateAnswer, RateAsk } from '../../src/schemas/rate-limit.ts';

interface Row {
  start: number;
  used: number;
}

/**
 * The counters of rate limits as a table in memory, with the answers of the store, for simulations that cannot wait for
 * one.
 */
export function createRateModel() {
  const rows = new Map<string, Row>();
  return {
    ask(asks: readonly RateAsk[], now: number): RateAnswer[] {
      return asks.map(({ id, span_ms, amount, need, waiting, want, owed, back, back_start_ms }) => {
        const row = rows.get(id) ?? { start: 0, used: 0 };
        const begun = now - (now % span_ms);
        const start = row.start >= begun && row.start <= begun + span_ms ? row.start : begun;
        let used = row.start === start ? row.used : 0;
        if (row.start === start && back_start_ms === start) used -= back;
        used += owed;
        const free = amount - used;
        const share = Math.min(want, Math.trunc(free / limits.rate_block_divisor));
        const granted = free <= 0 || free < need ? 0 : Math.min(free, Math.max(share, waiting));
        rows.set(id, { start, used: used + granted });
        return { id, granted, used: used + granted, window_start_ms: start, now_ms: now };
      });
    },
  };
}
