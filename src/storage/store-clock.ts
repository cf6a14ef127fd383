import { limits } from '../limits.ts';

/** The longest round trip of an answer of the store that adjusts an already known time. */
const STORE_CLOCK_WAY_MS_MAX = 500;

/** The two clocks of a machine: the monotonic one stops while the machine is suspended. */
export interface MachineClock {
  nowMs(): number;
  monotonicMs(): number;
}

/**
 * The store's time as this node knows it: measured with each answer that contains it, and counted with the monotonic clock in
 * between. All nodes on one store agree on it, whatever their machines' clocks show. Before the first answer it is the machine's.
 */
export class StoreClock implements MachineClock {
  readonly #machine: MachineClock;
  readonly #onSkew: (skewMs: number) => void;
  readonly monotonicMs: () => number;
  /** The store's time minus the monotonic clock; undefined until it is known. */
  #aheadMs: number | undefined;
  /** The machine's time minus the monotonic clock at that measurement. */
  #machineAheadMs = 0;
  #isSkewed = false;
  #skews = 0;

  constructor(machine: MachineClock, onSkew: (skewMs: number) => void) {
    this.#machine = machine;
    this.monotonicMs = machine.monotonicMs;
    this.#onSkew = onSkew;
  }

  /** The store's time was `nowMs` at some moment between the sending of a request, `sentMs` by the monotonic clock, and now. */
  adjust(nowMs: number, sentMs: number): void {
    const receivedMs = this.#machine.monotonicMs();
    // A slow answer is inexact; the previous one is better, unless the machine was suspended since.
    if (this.#aheadMs !== undefined && receivedMs - sentMs > STORE_CLOCK_WAY_MS_MAX && this.is_sure) return;
    this.#aheadMs = nowMs - (sentMs + receivedMs) / 2;
    this.#machineAheadMs = this.#machine.nowMs() - receivedMs;
    const { skew_ms } = this;
    const isSkewed = Math.abs(skew_ms) > limits.store_skew_ms;
    if (isSkewed && !this.#isSkewed) {
      this.#skews += 1;
      this.#onSkew(skew_ms);
    }
    this.#isSkewed = isSkewed;
  }

  /** The machine's clock minus the store's at the last measurement, in milliseconds. */
  get skew_ms(): number {
    return this.#aheadMs === undefined ? 0 : this.#machineAheadMs - this.#aheadMs;
  }

  /** How often the skew has exceeded `limits.store_skew_ms`. */
  get skews(): number {
    return this.#skews;
  }

  // Passed on without the object.
  readonly nowMs = (): number => {
    const machineMs = this.#machine.nowMs();
    if (this.#aheadMs === undefined) return machineMs;
    const monotonicMs = this.#machine.monotonicMs();
    const countedMs = this.#aheadMs + monotonicMs;
    const movedMs = machineMs - monotonicMs - this.#machineAheadMs;
    // The machine was suspended, or its clock was set: with the later of the two times nothing expired is accepted until the store answers.
    return Math.floor(movedMs > limits.feed_clocks_ms_max ? countedMs + movedMs : countedMs);
  };

  /** False if the machine was suspended or its clock was set since the last measurement. */
  get is_sure(): boolean {
    return this.#aheadMs === undefined || Math.abs(this.#movedBy()) <= limits.feed_clocks_ms_max;
  }

  #movedBy(): number {
    return this.#machine.nowMs() - this.#machine.monotonicMs() - this.#machineAheadMs;
  }
}
