import type { LedgerClock } from '../../src/ledger/ledger-clock.ts';
import type { Random } from './random.ts';

/** An actor whose events stop when it dies and wait while it is paused. */
export interface Actor {
  dead: boolean;
  /** Virtual milliseconds. */
  paused_until: number;
}

interface Scheduled {
  at: number;
  order: number;
  label: string;
  actor: Actor | undefined;
  run: () => void;
  cancelled: boolean;
}

function isBefore(a: Scheduled, b: Scheduled): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** All pending work of promises happens in microtasks: it is done when a macrotask runs. */
function drained(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Virtual time: one event after another, each with all of its immediate consequences. */
export class Scheduler {
  now_ms: number;
  events = 0;
  /** A digest that distinguishes runs with any difference. */
  hash = 0x811c9dc5;
  readonly #heap: Scheduled[] = [];
  #order = 0;

  constructor(nowMs: number) {
    this.now_ms = nowMs;
  }

  at(at: number, label: string, actor: Actor | undefined, run: () => void): Scheduled {
    const scheduled = { at: Math.max(at, this.now_ms), order: this.#order++, label, actor, run, cancelled: false };
    this.#push(scheduled);
    return scheduled;
  }

  after(delayMs: number, label: string, actor: Actor | undefined, run: () => void): Scheduled {
    return this.at(this.now_ms + delayMs, label, actor, run);
  }

  /** Runs everything until a time; `goesOn` sees the state after every event, and returns whether to continue. */
  async runUntil(endMs: number, goesOn: (label: string) => boolean): Promise<void> {
    for (let next = this.#heap[0]; next !== undefined && next.at <= endMs; next = this.#heap[0]) {
      this.#pop();
      if (next.cancelled || next.actor?.dead) continue;
      if (next.actor !== undefined && next.actor.paused_until > next.at) {
        next.at = next.actor.paused_until;
        next.order = this.#order++;
        this.#push(next);
        continue;
      }
      this.now_ms = next.at;
      this.events++;
      this.note(next.label, next.at);
      next.run();
      await drained();
      if (!goesOn(next.label)) return;
    }
    this.now_ms = endMs;
  }

  note(label: string, value: number): void {
    let hash = this.hash;
    for (let at = 0; at < label.length; at++) hash = Math.imul(hash ^ label.charCodeAt(at), 0x01000193);
    hash = Math.imul(hash ^ Math.floor(value), 0x01000193);
    this.hash = Math.imul(hash ^ Math.floor((value % 1) * 4_294_967_296), 0x01000193) >>> 0;
  }

  #push(scheduled: Scheduled): void {
    const heap = this.#heap;
    let at = heap.push(scheduled) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(scheduled, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = scheduled;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      let below = heap[child];
      const other = heap[child + 1];
      if (below !== undefined && other !== undefined && isBefore(other, below)) {
        child++;
        below = other;
      }
      if (below === undefined || !isBefore(below, last)) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
  }
}

/** The clock of one process. Its timers are slightly late, its wall clock is off by `skew`. */
export function clockOf(scheduler: Scheduler, actor: Actor, skew: () => number, random: Random): LedgerClock {
  const startedAt = scheduler.now_ms;
  let lastImmediate = 0;
  const timer = (run: () => void, delayMs: number) =>
    scheduler.after(Math.max(1, delayMs) + random.between(0, 1), 'timer', actor, run);
  return {
    now: () => Math.floor(scheduler.now_ms + skew()),
    monotonic: () => scheduler.now_ms - startedAt,
    setTimeout: timer,
    clearTimeout: (set) => {
      if (set !== undefined) (set as Scheduled).cancelled = true;
    },
    setInterval: (run, intervalMs) => {
      const interval = { cancelled: false };
      const plan = () =>
        timer(() => {
          if (interval.cancelled) return;
          run();
          plan();
        }, intervalMs);
      plan();
      return interval;
    },
    clearInterval: (interval) => {
      if (interval !== undefined) (interval as { cancelled: boolean }).cancelled = true;
    },
    setImmediate: (run) => {
      // In order among themselves, with room for others between them.
      lastImmediate = Math.max(lastImmediate, scheduler.now_ms + random.between(0, 0.05));
      scheduler.at(lastImmediate, 'immediate', actor, run);
    },
  };
}
