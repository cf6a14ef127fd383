import { limits } from '../limits.ts';
import type { LedgerClock, Timer } from './ledger-clock.ts';
import {
  type LedgerStore,
  type Registered,
  type Settle,
  type SettleAnswer,
  type SettleBatch,
  UnstorableData,
  type WindowRequest,
} from './settle.ts';
import { storable } from './storable-settle.ts';

/** The time between two batches for the store. */
const FLUSH_INTERVAL_MS = 250;
/** Outcomes that are flushed without waiting for `FLUSH_INTERVAL_MS`. The loop prepares a batch in one turn, so more of them delay all requests. */
const FLUSH_EAGER_RECORDS = 125;
/** The wait after a failed flush: doubled from the first value to the last. */
const FLUSH_RETRY_MS = 100;
export const FLUSH_RETRY_MS_MAX = 5_000;
/** Failures after which a batch is divided, if the store accepts other writes. */
export const FLUSH_REFUSALS_MAX = 3;
/** Outcomes of one batch that a log line names. */
const REDUCED_LOGGED_MAX = 10;

/** The ledger's log; pino's interface. */
export interface LedgerLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** The store that a pipe sends to, and its callbacks. */
export interface PipeOptions {
  store: LedgerStore;
  node: string;
  epoch: number;
  clock: LedgerClock;
  log: LedgerLog;
  /** The lease requests of a batch with these settles; called once for each batch. `isLast`: nothing is queued behind it. */
  freeze: (
    settles: readonly Settle[],
    number: number,
    isLast: boolean,
  ) => { windows: WindowRequest[]; divisor: number };
  /** The store has stored the batch. */
  onApplied: (settles: readonly Settle[], batch: number, answer: AppliedAnswer) => void;
  /**
   * The store knows another epoch, or less than it had acknowledged, or refuses a batch repeatedly. Registers the node again
   * and resolves to the registration with the new epoch; may be called again if it rejects.
   */
  onLost: (answer: LostAnswer) => Promise<Registered>;
}

/** The batch is in the store. */
export type AppliedAnswer = Extract<SettleAnswer, { is: 'applied' | 'already_applied' }>;

/** Why a node needs a new epoch. */
export type LostAnswer = Exclude<SettleAnswer, { is: 'applied' | 'already_applied' }> | { is: 'refused' };

interface Queued {
  settle: Settle;
  queued_at: number;
  /** It was refused before: it is sent in a batch of its own. */
  alone?: boolean;
}

/**
 * Sends outcomes and lease requests from this node to the store. One numbered batch is in flight at a time, and its content
 * is frozen: if an answer is lost, the same batch is sent again until its fate is known, so nothing is applied twice and
 * nothing is lost. If the data of a batch are at fault, the outcomes with values that no store accepts are sent without these. A
 * batch that the store still refuses while it accepts others is halved, under a new epoch, until the outcome at fault is alone;
 * that outcome is set aside, so that it does not hold up the others, and tried again from time to time.
 */
export class Pipe {
  readonly #options: PipeOptions;
  #epoch: number;
  #number = 0;
  #queue: Queued[] = [];
  #flying: Queued[] = [];
  #aside: Queued[] = [];
  /** The most outcomes that the next batch may carry. */
  #size: number = limits.flush_batch_records_max;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  /** A batch is due even if no outcome is queued: leases are to be requested or returned. */
  #isRequested = false;
  #isSending = false;
  #barriers: { at: number; resolve: () => void }[] = [];
  #pushed = 0;
  #acknowledged = 0;
  #batches = 0;
  #reduced = 0;
  #failures = 0;
  #failure: string | undefined;
  #stopped = false;
  #wake: (() => void) | undefined;

  constructor(options: PipeOptions) {
    this.#options = options;
    this.#epoch = options.epoch;
  }

  /** Queues one settle; it is sent within `FLUSH_INTERVAL_MS`. */
  push(settle: Settle): void {
    this.#queue.push({ settle, queued_at: this.#options.clock.now() });
    this.#pushed++;
    this.#plan();
  }

  /** Sends a batch now, or right after the one in flight, with the lease requests of `freeze`. */
  sendNow(): void {
    this.#isRequested = true;
    this.#plan();
  }

  /** Resolves when everything pushed so far is in the store or set aside; sends it without delay. */
  flush(): Promise<void> {
    if (this.#acknowledged === this.#pushed) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#barriers.push({ at: this.#pushed, resolve });
    this.#plan();
    return promise;
  }

  /** Queues the outcome again that was set aside first. */
  retryAside(): void {
    const first = this.#aside.shift();
    if (!first) return;
    this.#acknowledged--;
    this.#queue.push({ ...first, alone: true });
    this.#plan();
  }

  state(): {
    unflushed: number;
    aside: number;
    /** Outcomes that were sent without a part of their values, since the start. */
    reduced: number;
    oldestAt: number | undefined;
    batches: number;
    failing: boolean;
    /** The store's last error for the batch in flight. */
    failure: string | undefined;
  } {
    const waiting = [this.#flying[0] ?? this.#queue[0], this.#aside[0]].flatMap((one) => one?.queued_at ?? []);
    return {
      unflushed: this.#queue.length + this.#flying.length + this.#aside.length,
      aside: this.#aside.length,
      reduced: this.#reduced,
      oldestAt: waiting.length === 0 ? undefined : Math.min(...waiting),
      batches: this.#batches,
      failing: this.#failures > 0,
      failure: this.#failures > 0 ? this.#failure : undefined,
    };
  }

  /** How many batches the store acknowledged; undefined while one is in flight, when store and node may disagree. */
  settled(): number | undefined {
    return this.#isSending ? undefined : this.#batches;
  }

  /** Flushes, for at most `flush_stop_ms_max`, and ends. True if everything is in the store. */
  async stop(): Promise<boolean> {
    const { clock } = this.#options;
    const late = Promise.withResolvers<void>();
    const timer = clock.setTimeout(late.resolve, limits.flush_stop_ms_max, true);
    await Promise.race([this.flush(), late.promise]);
    // Idle leases are returned with the last batch.
    this.sendNow();
    let isLate = false;
    void late.promise.then(() => {
      isLate = true;
    });
    while (this.#running !== undefined && !isLate) await Promise.race([this.#running, late.promise]);
    this.#stopped = true;
    clock.clearTimeout(this.#timer);
    this.#wake?.();
    await Promise.race([this.#running, late.promise]);
    clock.clearTimeout(timer);
    return this.#acknowledged === this.#pushed && this.#aside.length === 0;
  }

  /** Starts sending now or later; a batch in flight sends what is queued when it ends. */
  #plan(): void {
    if (this.#running !== undefined || this.#stopped) return;
    const hasQueued = this.#queue.length > 0;
    const isDemanded = this.#barriers.length > 0 || this.#queue.length >= FLUSH_EAGER_RECORDS;
    if (this.#isRequested || (hasQueued && isDemanded)) {
      this.#start();
    } else if (!this.#timer && hasQueued) {
      const { clock } = this.#options;
      const waitedMs = clock.now() - (this.#queue[0]?.queued_at ?? 0);
      const delayMs = Math.min(Math.max(0, FLUSH_INTERVAL_MS - waitedMs), FLUSH_INTERVAL_MS);
      this.#timer = clock.setTimeout(() => this.#start(), delayMs);
    }
  }

  /** Whether a batch should be sent without waiting for more outcomes. */
  #isDue(): boolean {
    if (this.#isRequested) return true;
    return this.#queue.length > 0 && (this.#barriers.length > 0 || this.#queue.length >= FLUSH_EAGER_RECORDS);
  }

  #start(): void {
    this.#options.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#running !== undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      this.#plan();
    });
  }

  async #run(): Promise<void> {
    // One batch carries all lease requests of this turn of the event loop.
    if (this.#isRequested) await this.#nextTurn();
    do {
      const isRequested = this.#isRequested;
      this.#isRequested = false;
      this.#flying = this.#queue.splice(0, this.#nextSize());
      const settles = this.#flying.map(({ settle }) => settle);
      const number = this.#number + 1;
      const frozen = this.#tryFreeze(settles, number);
      if (frozen === undefined) {
        await this.#pause();
        this.#isRequested ||= isRequested;
        continue;
      }
      const { windows, divisor } = frozen;
      if (settles.length === 0 && windows.length === 0) continue;
      this.#number = number;
      const { node, clock } = this.#options;
      this.#isSending = true;
      await this.#send({ node, epoch: this.#epoch, number, at: clock.now(), settles, windows, divisor });
      this.#isSending = false;
    } while (!this.#stopped && this.#isDue());
  }

  /** If freezing throws, no outcome is lost: the batch is queued again. */
  #tryFreeze(settles: readonly Settle[], number: number) {
    try {
      return this.#options.freeze(settles, number, this.#queue.length === 0);
    } catch (error) {
      this.#failures++;
      if (this.#failures === 1)
        this.#options.log.error({ err: error, batch: number }, 'a batch of outcomes cannot be built; trying again');
      this.#queue.unshift(...this.#flying);
      this.#flying = [];
      return undefined;
    }
  }

  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#options.clock.setImmediate(resolve));
  }

  #nextSize(): number {
    const alone = this.#queue.slice(0, this.#size).findIndex((queued) => queued.alone === true);
    return alone === -1 ? this.#size : Math.max(1, alone);
  }

  /** Sends one batch until its fate is known, or until it is clear that the store refuses this batch and accepts others. */
  async #send(batch: SettleBatch): Promise<void> {
    for (let refusals = 1; !this.#stopped; refusals++) {
      let answer: SettleAnswer;
      try {
        answer = await this.#options.store.settle(batch);
        if (answer.is === 'fenced' || answer.is === 'behind') {
          await this.#startOver(answer);
          this.#failures = 0;
          return;
        }
      } catch (error) {
        this.#failures++;
        this.#failure = (error as Error).message;
        if (this.#failures === 1) {
          this.#options.log.warn(
            { err: error, batch: batch.number },
            'the store does not accept outcomes; they wait in the journal',
          );
        }
        const isCertain = error instanceof UnstorableData || refusals % FLUSH_REFUSALS_MAX === 0;
        if (isCertain && (await this.#divide(error))) return;
        await this.#pause();
        continue;
      }
      this.#acknowledge(batch, answer);
      return;
    }
  }

  /** Halves the refused batch under a new epoch, which fences its late copies. False if the store accepts nothing at all: the batch is not at fault. */
  async #divide(cause: unknown): Promise<boolean> {
    try {
      const { epoch } = await this.#options.onLost({ is: 'refused' });
      this.#epoch = epoch;
      this.#number = 0;
    } catch {
      return false;
    }
    this.#failures = 0;
    if (this.#reduce(cause)) return true;
    const [only, ...others] = this.#flying;
    const single = others.length === 0;
    if (only?.alone && single) {
      const { id, cost_nano } = only.settle;
      this.#options.log.error(
        { err: cause, generation: id, cost_nano },
        'the store refuses an outcome; it stays in the journal and is tried again',
      );
      this.#aside.push(only);
      this.#acknowledged++;
      this.#reachBarriers();
    } else if (only !== undefined) {
      this.#size = Math.ceil(this.#flying.length / 2);
      this.#queue.unshift(...this.#flying.map((queued) => ({ ...queued, alone: single })));
    }
    this.#flying = [];
    return true;
  }

  /** Queues the refused batch again, its outcomes without what no store accepts. False if all their values are acceptable. */
  #reduce(cause: unknown): boolean {
    const ids: string[] = [];
    const reduced = this.#flying.map((queued): Queued => {
      const settle = storable(queued.settle);
      if (settle === queued.settle) return queued;
      ids.push(settle.id);
      return { ...queued, settle };
    });
    if (ids.length === 0) return false;
    this.#reduced += ids.length;
    this.#options.log.error(
      { err: cause, count: ids.length, generations: ids.slice(0, REDUCED_LOGGED_MAX) },
      'the store refuses values of outcomes; they are stored without these values, with their full cost',
    );
    this.#queue.unshift(...reduced);
    this.#flying = [];
    return true;
  }

  #acknowledge(batch: SettleBatch, answer: AppliedAnswer): void {
    if (this.#failures > 0) this.#options.log.info({ batch: batch.number }, 'the store accepts outcomes again');
    this.#failures = 0;
    this.#flying = [];
    this.#size = Math.min(this.#size * 2, limits.flush_batch_records_max);
    this.#batches++;
    this.#acknowledged += batch.settles.length;
    try {
      this.#options.onApplied(batch.settles, batch.number, answer);
    } catch (error) {
      // The store has the batch: sending it again would count it twice here.
      this.#options.log.error(
        { err: error, batch: batch.number },
        'a batch is stored, but the journal could not note it',
      );
    }
    this.#reachBarriers();
  }

  #reachBarriers(): void {
    const due = this.#barriers.filter(({ at }) => at <= this.#acknowledged);
    this.#barriers = this.#barriers.filter(({ at }) => at > this.#acknowledged);
    for (const { resolve } of due) resolve();
  }

  /** Sends what was in flight and what is queued again under a new epoch, from batch 1. The store drops what it has. */
  async #startOver(answer: LostAnswer): Promise<void> {
    const { epoch } = await this.#options.onLost(answer);
    this.#epoch = epoch;
    this.#number = 0;
    this.#queue.unshift(...this.#flying);
    this.#flying = [];
  }

  async #pause(): Promise<void> {
    const delayMs = Math.min(FLUSH_RETRY_MS * 2 ** (this.#failures - 1), FLUSH_RETRY_MS_MAX);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#options.clock.setTimeout(resolve, delayMs);
    this.#wake = resolve;
    await promise;
    this.#options.clock.clearTimeout(timer);
    this.#wake = undefined;
  }
}
