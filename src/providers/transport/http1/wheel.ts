/** A limit of time is met at most two ticks late. */
const TICK_MS = 250;

export interface Timed {
  /** The tick at which its time is over; `Infinity` if it is not limited. */
  dueTick: number;
  expire(): void;
}

/** One timer for all limits of time. It counts ticks: a blocked event loop, which has not read what arrived, ends nothing. */
export class Wheel {
  readonly members = new Set<Timed>();
  #tick = 0;
  #timer: NodeJS.Timeout | undefined;

  add(member: Timed): void {
    this.members.add(member);
    this.#timer ??= setInterval(() => this.#turn(), TICK_MS).unref();
  }

  /** The first tick at which `ms` milliseconds are over. */
  after(ms: number): number {
    return this.#tick + Math.ceil(ms / TICK_MS) + 1;
  }

  #turn(): void {
    this.#tick += 1;
    for (const member of this.members) if (member.dueTick <= this.#tick) member.expire();
    if (this.members.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
