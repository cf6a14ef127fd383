import { limits } from '../../limits.ts';
import type { RateAnswer, RateAsk, RateLimit } from '../../schemas/rate-limit.ts';

/** A moment by both clocks of the machine: one of them steps, the other stands still while the machine sleeps. */
export interface Moment {
  wall_ms: number;
  monotonic_ms: number;
}

/** What is known of a window to whom it refuses. */
export interface RateWindow {
  remaining: number;
  /** Milliseconds since 1970, by the store. */
  ends_at_ms: number;
  /** After so long it is surely over. */
  wait_ms: number;
}

const LONG_AGO: Moment = { wall_ms: 0, monotonic_ms: 0 };

/**
 * A node's share of one counter. It uses what the store gave it, in the window that it was given for, and never after: by the
 * store's time, which it knows to be no later than that of an answer and what has passed since the question.
 */
export class RateCounter {
  /** As it was last read: its amount may change. */
  limit: RateLimit;
  #start_ms = -1;
  #open_ms = 0;
  #sent = LONG_AGO;
  #received = LONG_AGO;
  #left = 0;
  /** At the store, when it last answered. */
  #used = 0;
  #owed = 0;
  /** Given by the last answer to a wish. */
  #block = 0;
  #want = 0;
  #taken = 0;
  #refused_units = Number.POSITIVE_INFINITY;
  #refused_until_ms = 0;

  constructor(limit: RateLimit) {
    this.limit = limit;
  }

  /** The window that permits are of. */
  get start_ms(): number {
    return this.#start_ms;
  }

  #isOpen({ wall_ms, monotonic_ms }: Moment): boolean {
    const passed_ms = Math.max(wall_ms - this.#sent.wall_ms, monotonic_ms - this.#sent.monotonic_ms);
    return passed_ms < this.#open_ms;
  }

  /** Uses so many, if the node has them. */
  take(units: number, now: Moment): boolean {
    if (this.#left < units || !this.#isOpen(now)) return false;
    this.#left -= units;
    this.#taken += units;
    return true;
  }

  /** Whether the store has just said that there are not so many. */
  isRefused(units: number, now: Moment): boolean {
    return units >= this.#refused_units && now.monotonic_ms < this.#refused_until_ms && this.#isOpen(now);
  }

  /** Whether more should be asked for before it is needed. Where little is left for all, nobody stores up. */
  isLow(): boolean {
    return this.#left * 4 <= this.#block && this.#block >= 2 * limits.rate_block_divisor;
  }

  /** What to ask the store, for one who needs so many of all that wait. */
  ask(need: number, waiting: number, now: Moment): RateAsk {
    const has = this.#isOpen(now) ? this.#left : 0;
    const elapsed_ms = Math.max(1, now.monotonic_ms - this.#sent.monotonic_ms);
    const soon = Math.ceil((this.#taken * limits.rate_block_ms) / elapsed_ms);
    // No faster than twofold: the first moments tell little.
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

  /** Takes an answer, however late it comes. */
  answered(asked: RateAsk, answer: RateAnswer, sent: Moment, received: Moment): void {
    const { granted, used, window_start_ms, now_ms } = answer;
    if (sent.monotonic_ms < this.#sent.monotonic_ms) {
      if (window_start_ms === this.#start_ms) this.#left += granted;
      return;
    }
    if (window_start_ms !== this.#start_ms) this.#left = 0;
    this.#start_ms = window_start_ms;
    // The millisecond that is told has begun, and may be almost over.
    this.#open_ms = window_start_ms + this.limit.span_ms - now_ms - 1;
    this.#sent = sent;
    this.#received = received;
    this.#used = used;
    this.#left += granted;
    if (asked.want > 0) this.#block = granted;
    const is_refused = asked.need > 0 && granted === 0;
    this.#refused_units = is_refused ? this.#left + asked.need : Number.POSITIVE_INFINITY;
    this.#refused_until_ms = received.monotonic_ms + limits.rate_refusal_ms;
  }

  /** Nobody knows whether the store has heard the question: what was owed is told again. */
  unanswered({ owed }: RateAsk): void {
    this.#owed += owed;
  }

  /** Units of a window that were not used after all. */
  giveBack(units: number, start_ms: number): void {
    if (start_ms === this.#start_ms) this.#left += units;
  }

  /** Units that were used without a permit: they count in the window in which that is known. */
  owe(units: number, now: Moment): void {
    const paid = this.#isOpen(now) ? Math.min(units, this.#left) : 0;
    this.#left -= paid;
    this.#owed += units - paid;
  }

  /** What of the rest the node would not use soon, as things stand; with `all`, the rest. */
  #idle(now: Moment, all: boolean): number {
    if (this.#left === 0 || !this.#isOpen(now)) return 0;
    if (all) return this.#left;
    const elapsed_ms = now.monotonic_ms - this.#sent.monotonic_ms;
    if (elapsed_ms < limits.rate_idle_ms) return 0;
    return Math.max(0, this.#left - Math.floor((this.#taken * limits.rate_block_ms) / elapsed_ms));
  }

  /** Whether something must be told to the store although nobody asks: what is owed, and what lies idle. */
  hasLeftover(now: Moment, all: boolean): boolean {
    return this.#owed > 0 || this.#idle(now, all) > 0;
  }

  leftover(now: Moment, all: boolean): RateAsk {
    const back = this.#idle(now, all);
    this.#left -= back;
    return { ...this.ask(0, 0, now), want: 0, back, back_start_ms: this.#start_ms };
  }

  /** Whether nothing is lost with it. */
  isSpent(now: Moment): boolean {
    return this.#owed === 0 && !this.#isOpen(now);
  }

  /** Where it knows of none that is open: one that nobody has counted in, by the machine's time. */
  window(now: Moment): RateWindow {
    const { amount, span_ms } = this.limit;
    if (!this.#isOpen(now)) {
      const wait_ms = span_ms - (now.wall_ms % span_ms);
      return { remaining: amount, ends_at_ms: now.wall_ms + wait_ms, wait_ms };
    }
    const passed_ms = Math.min(now.wall_ms - this.#received.wall_ms, now.monotonic_ms - this.#received.monotonic_ms);
    return {
      remaining: Math.max(0, amount - this.#used + this.#left),
      ends_at_ms: this.#start_ms + span_ms,
      wait_ms: Math.max(1, Math.ceil(this.#open_ms + 1 - Math.max(0, passed_ms))),
    };
  }
}
