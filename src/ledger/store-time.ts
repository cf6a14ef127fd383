import { limits } from '../limits.ts';
import type { StoreWaiting } from './leases/hold.ts';
import type { LedgerClock } from './ledger-clock.ts';
import { storeRefusal } from './refusal.ts';

/** The store's clock as this node knows it: the store's last answer, carried forward by the monotonic clock. */
export class StoreTime {
  readonly #clock: LedgerClock;
  readonly #fetch: () => Promise<{ now: number }>;
  /** The store's clock minus the monotonic clock at the store's last answer, in milliseconds. */
  #storeAheadMs = 0;
  /** This machine's clock minus the monotonic clock at the same moment, in milliseconds. */
  #clockAheadMs = 0;
  #refreshing: Promise<void> | undefined;

  /** `fetch` reads the store's clock: milliseconds since 1970. */
  constructor(clock: LedgerClock, fetch: () => Promise<{ now: number }>) {
    this.#clock = clock;
    this.#fetch = fetch;
  }

  /** Milliseconds since 1970 by the store's clock. */
  now(): number {
    return this.#clock.monotonic() + this.#storeAheadMs;
  }

  /** Takes over the time that the store reports with an answer. */
  update(storeNow: number): void {
    this.#storeAheadMs = storeNow - this.#clock.monotonic();
    this.#clockAheadMs = this.#clock.now() - this.#clock.monotonic();
  }

  /** False if the machine's two clocks have diverged: it slept, or its clock was set, and the open budget window is not known. */
  isKnown(): boolean {
    const aheadMs = this.#clock.now() - this.#clock.monotonic();
    return Math.abs(aheadMs - this.#clockAheadMs) <= limits.admission_clock_ms_max;
  }

  /** Reads the store's clock, once for all concurrent callers. Rejects with a 503 if the store does not answer. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.withinBound(this.#fetch())
      .then(({ now }) => this.update(now))
      .finally(() => {
        this.#refreshing = undefined;
      });
    return this.#refreshing;
  }

  /** As `refresh`, within the time that a request may wait for the store. */
  async refreshFor(wait: StoreWaiting | undefined): Promise<void> {
    wait?.begin();
    try {
      await this.withinBound(this.refresh(), wait?.remainingMs());
    } finally {
      wait?.end();
    }
  }

  /** Awaits an answer of the store. Rejects with a 503 if the store fails or takes longer than `msMax`. */
  async withinBound<T>(answer: Promise<T>, msMax: number = limits.store_read_ms_max): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = this.#clock.setTimeout(() => reject(storeRefusal()), Math.min(msMax, limits.store_read_ms_max));
    try {
      return await Promise.race([answer.catch(() => Promise.reject(storeRefusal())), late]);
    } finally {
      this.#clock.clearTimeout(timer);
    }
  }
}
