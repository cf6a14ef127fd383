import { limits } from '../limits.ts';

/** The two clocks of a machine: only one of them goes on while it is suspended. */
export interface MachineClock {
  now_ms(): number;
  monotonic_ms(): number;
}

/**
 * The store's time as this node knows it: measured with each answer that has it, counted on monotonically in between. All
 * nodes on one store agree on it, whatever their machines' clocks say. Before the first answer it is the machine's.
 */
export class StoreClock implements MachineClock {
  readonly #machine: MachineClock;
  readonly #onSkew: (skew_ms: number) => void;
  /** The store's time less the monotonic one; undefined: it is not known. */
  #ahead_ms: number | undefined;
  /** The machine's time less the monotonic one, when that was measured. */
  #machine_ahead_ms = 0;
  #is_skewed = false;
  #skews = 0;

  constructor(machine: MachineClock, onSkew: (skew_ms: number) => void) {
    this.#machine = machine;
    this.#onSkew = onSkew;
  }

  /** The store said `now_ms` between the sending of a question, at `sent_ms` of the monotonic clock, and this moment. */
  adjust(now_ms: number, sent_ms: number): void {
    const received_ms = this.#machine.monotonic_ms();
    // An answer that was long on its way says little; the one before says more, unless the machine slept since.
    if (this.#ahead_ms !== undefined && received_ms - sent_ms > limits.store_clock_way_ms_max && this.is_sure) return;
    this.#ahead_ms = now_ms - (sent_ms + received_ms) / 2;
    this.#machine_ahead_ms = this.#machine.now_ms() - received_ms;
    const { skew_ms } = this;
    const is_skewed = Math.abs(skew_ms) > limits.store_skew_ms;
    if (is_skewed && !this.#is_skewed) {
      this.#skews += 1;
      this.#onSkew(skew_ms);
    }
    this.#is_skewed = is_skewed;
  }

  /** How far the machine's clock was ahead of the store's, when the store last said it. */
  get skew_ms(): number {
    return this.#ahead_ms === undefined ? 0 : this.#machine_ahead_ms - this.#ahead_ms;
  }

  /** How often it was further away than `limits.store_skew_ms`. */
  get skews(): number {
    return this.#skews;
  }

  // Both are handed on by themselves.
  readonly monotonic_ms = (): number => this.#machine.monotonic_ms();

  readonly now_ms = (): number => {
    const machine_ms = this.#machine.now_ms();
    if (this.#ahead_ms === undefined) return machine_ms;
    const monotonic_ms = this.#machine.monotonic_ms();
    const counted_ms = this.#ahead_ms + monotonic_ms;
    const moved_ms = machine_ms - monotonic_ms - this.#machine_ahead_ms;
    // The machine slept, or its clock was set: the later of both, until the store is heard, accepts nothing that has expired.
    return Math.floor(moved_ms > limits.feed_clocks_ms_max ? counted_ms + moved_ms : counted_ms);
  };

  /** False: the machine slept, or its clock was set, since the store last said its time. */
  get is_sure(): boolean {
    return this.#ahead_ms === undefined || Math.abs(this.#movedBy()) <= limits.feed_clocks_ms_max;
  }

  #movedBy(): number {
    return this.#machine.now_ms() - this.#machine.monotonic_ms() - this.#machine_ahead_ms;
  }
}
