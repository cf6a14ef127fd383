import { limits } from '../../limits.ts';
import type { RateAnswer, RateAsk, RateLimit } from '../../schemas/rate-limit.ts';

/** A node takes at most what it uses in about this time. */
const RATE_BLOCK_MS = 1_000;
/** A node returns what it does not use for this time. */
const RATE_IDLE_MS = 1_000;
/** The time after a refusal in which as much is refused without a request to the store. */
const RATE_REFUSAL_MS = 250;

/** A moment by both clocks of the machine: the wall clock may be set, the monotonic clock stops while the machine sleeps. */
export interface Moment {
  wall_ms: number;
  monotonic_ms: number;
}

/** The window that a refusal reports to the client. */
export interface RateWindow {
  remaining: number;
  /** Milliseconds since 1970, by the store. */
  ends_at_ms: number;
  /** Milliseconds after which it has certainly ended. */
  wait_ms: number;
}

const LONG_AGO: Moment = { wall_ms: 0, monotonic_ms: 0 };

/**
 * A node's share of one counter. The node uses the units that the store granted only in the window that they were granted
 * for. The end of the window is by the store's clock, which is at most its time in the answer plus the time since the request.
 */
export class RateCounter {
  /** The limit as last read: its amount may change. */
  limit: RateLimit;
  #startMs = -1;
  #openMs = 0;
  #sent = LONG_AGO;
  #received = LONG_AGO;
  #left = 0;
  /** Used of the window at the store, as of its last answer. */
  #used = 0;
  #owed = 0;
  /** The grant of the last answer to a request with a `want`. */
  #block = 0;
  #want = 0;
  #taken = 0;
  #refusedUnits = Number.POSITIVE_INFINITY;
  #refusedUntilMs = 0;

  constructor(limit: RateLimit) {
    this.limit = limit;
  }

  /** The window that the granted units are for: its start, milliseconds since 1970 by the store. */
  get start_ms(): number {
    return this.#startMs;
  }

  #isOpen({ wall_ms, monotonic_ms }: Moment): boolean {
    const passedMs = Math.max(wall_ms - this.#sent.wall_ms, monotonic_ms - this.#sent.monotonic_ms);
    return passedMs < this.#openMs;
  }

  /** Uses `units` if the node has them; false otherwise. */
  take(units: number, now: Moment): boolean {
    if (this.#left < units || !this.#isOpen(now)) return false;
    this.#left -= units;
    this.#taken += units;
    return true;
  }

  /** Whether the store has just refused `units`, or fewer. */
  isRefused(units: number, now: Moment): boolean {
    return units >= this.#refusedUnits && now.monotonic_ms < this.#refusedUntilMs && this.#isOpen(now);
  }

  /** Whether more should be requested in advance. False while grants are small: then nobody stores up. */
  isLow(): boolean {
    return this.#left * 4 <= this.#block && this.#block >= 2 * limits.rate_block_divisor;
  }

  /** A request to the store, for a request that needs `need`, of the `waiting` units that all waiting requests need. */
  ask(need: number, waiting: number, now: Moment): RateAsk {
    const has = this.#isOpen(now) ? this.#left : 0;
    const elapsedMs = Math.max(1, now.monotonic_ms - this.#sent.monotonic_ms);
    const soon = Math.ceil((this.#taken * RATE_BLOCK_MS) / elapsedMs);
    // At most doubled: the rate of the first moments is not reliable.
    this.#want = Math.min(Math.max(soon, need), 2 * Math.max(this.#want, need, 1));
    this.#taken = 0;
    const owed = this.#owed;
    this.#owed = 0;
    const missing = Math.max(0, need - has);
    return {
      ...{ id: this.limit.id, span_ms: this.limit.span_ms, amount: this.limit.amount },
      ...{ need: missing, waiting: Math.max(missing, waiting - has), want: this.#want, owed },
      ...{ back: 0, back_start_ms: 0 },
    };
  }

  /** Applies an answer, also if it arrives out of order. */
  answered(request: RateAsk, answer: RateAnswer, sent: Moment, received: Moment): void {
    const { granted, used, window_start_ms, now_ms } = answer;
    if (sent.monotonic_ms < this.#sent.monotonic_ms) {
      if (window_start_ms === this.#startMs) this.#left += granted;
      return;
    }
    if (window_start_ms !== this.#startMs) this.#left = 0;
    this.#startMs = window_start_ms;
    // The reported millisecond has begun, and may be almost over.
    this.#openMs = window_start_ms + this.limit.span_ms - now_ms - 1;
    this.#sent = sent;
    this.#received = received;
    this.#used = used;
    this.#left += granted;
    if (request.want > 0) this.#block = granted;
    const isRefused = request.need > 0 && granted === 0;
    this.#refusedUnits = isRefused ? this.#left + request.need : Number.POSITIVE_INFINITY;
    this.#refusedUntilMs = received.monotonic_ms + RATE_REFUSAL_MS;
  }

  /** No answer arrived: the owed units are reported again, since the store may not have counted them. */
  unanswered({ owed }: RateAsk): void {
    this.#owed += owed;
  }

  /** Puts units of the window `startMs` back that were not used. */
  giveBack(units: number, startMs: number): void {
    if (startMs === this.#startMs) this.#left += units;
  }

  /** Counts units that were used without a grant, in the window in which that becomes known. */
  owe(units: number, now: Moment): void {
    const paid = this.#isOpen(now) ? Math.min(units, this.#left) : 0;
    this.#left -= paid;
    this.#owed += units - paid;
  }

  /** The units that the node would not use soon at the current rate; with `all`, all that are left. */
  #idle(now: Moment, all: boolean): number {
    if (this.#left === 0 || !this.#isOpen(now)) return 0;
    if (all) return this.#left;
    const elapsedMs = now.monotonic_ms - this.#sent.monotonic_ms;
    if (elapsedMs < RATE_IDLE_MS) return 0;
    return Math.max(0, this.#left - Math.floor((this.#taken * RATE_BLOCK_MS) / elapsedMs));
  }

  /** Whether the store must be contacted although no request waits: units are owed, or idle. */
  hasLeftover(now: Moment, all: boolean): boolean {
    return this.#owed > 0 || this.#idle(now, all) > 0;
  }

  /** A request that reports owed units and returns idle ones. */
  leftover(now: Moment, all: boolean): RateAsk {
    const back = this.#idle(now, all);
    this.#left -= back;
    return { ...this.ask(0, 0, now), want: 0, back, back_start_ms: this.#startMs };
  }

  /** Whether the counter can be dropped without losing anything. */
  isSpent(now: Moment): boolean {
    return this.#owed === 0 && !this.#isOpen(now);
  }

  /** The current window. If none is open, an unused one by the machine's clock. */
  window(now: Moment): RateWindow {
    const { amount, span_ms } = this.limit;
    if (!this.#isOpen(now)) {
      const waitMs = span_ms - (now.wall_ms % span_ms);
      return { remaining: amount, ends_at_ms: now.wall_ms + waitMs, wait_ms: waitMs };
    }
    const passedMs = Math.min(now.wall_ms - this.#received.wall_ms, now.monotonic_ms - this.#received.monotonic_ms);
    return {
      remaining: Math.max(0, amount - this.#used + this.#left),
      ends_at_ms: this.#startMs + span_ms,
      wait_ms: Math.max(1, Math.ceil(this.#openMs + 1 - Math.max(0, passedMs))),
    };
  }
}
