import { limits } from '../limits.ts';
import type { LedgerClock, Timer } from './ledger-clock.ts';
import type { LedgerStore, Registered, Settle, SettleAnswer, SettleBatch, WindowAsk } from './settle.ts';

/** Where the ledger's warnings go; pino's shape. */
export interface LedgerLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

export interface PipeOptions {
  store: LedgerStore;
  node: string;
  epoch: number;
  clock: LedgerClock;
  log: LedgerLog;
  /** What a batch of these settles says to the windows; called once a batch. `is_last`: nothing waits behind it. */
  freeze: (settles: readonly Settle[], number: number, is_last: boolean) => { windows: WindowAsk[]; divisor: number };
  /** The store has these, for good. */
  onApplied: (settles: readonly Settle[], batch: number, answer: AppliedAnswer) => void;
  /**
   * The store knows another epoch, or less than it had acknowledged, or refuses a batch again and again. Registers anew
   * and gives back the new epoch; may be called again when that fails.
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
  /** It was refused before: it goes in a batch of its own. */
  alone?: boolean;
}

/**
 * The one way from this node to the store. One numbered batch is in flight at a time and its content is frozen: when an
 * answer is lost the same batch goes again until its fate is known, so nothing is applied twice and nothing is lost.
 * A batch that a store refuses while it takes other things is halved, under a new epoch, until the outcome at fault is
 * alone; that one is put aside, so that it does not hold up the others, and tried again from time to time.
 */
export class Pipe {
  readonly #options: PipeOptions;
  #epoch: number;
  #number = 0;
  #queue: Queued[] = [];
  #flying: Queued[] = [];
  #aside: Queued[] = [];
  /** How many outcomes the next batch may carry. */
  #size: number = limits.flush_batch_records_max;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  /** Something is asked of the store besides settles. */
  #asking = false;
  #is_sending = false;
  #barriers: { at: number; resolve: () => void }[] = [];
  #pushed = 0;
  #acknowledged = 0;
  #batches = 0;
  #failures = 0;
  #failure: string | undefined;
  #stopped = false;
  #wake: (() => void) | undefined;

  constructor(options: PipeOptions) {
    this.#options = options;
    this.#epoch = options.epoch;
  }

  /** Queues one settle; it is on its way within `flush_interval_ms`. */
  push(settle: Settle): void {
    this.#queue.push({ settle, queued_at: this.#options.clock.now() });
    this.#pushed++;
    this.#plan();
  }

  /** Sends a batch now, or right after the one in flight, with whatever `freeze` has to say. */
  ask(): void {
    this.#asking = true;
    this.#plan();
  }

  /** Resolves when everything pushed so far is in the store, or put aside; sends it without waiting for company. */
  flush(): Promise<void> {
    if (this.#acknowledged === this.#pushed) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#barriers.push({ at: this.#pushed, resolve });
    this.#plan();
    return promise;
  }

  /** Gives the one that was put aside first another try. */
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
    oldest_at: number | undefined;
    batches: number;
    failing: boolean;
    /** What the store last said against a batch that waits. */
    failure: string | undefined;
  } {
    const waiting = [this.#flying[0] ?? this.#queue[0], this.#aside[0]].flatMap((one) => one?.queued_at ?? []);
    return {
      unflushed: this.#queue.length + this.#flying.length + this.#aside.length,
      aside: this.#aside.length,
      oldest_at: waiting.length === 0 ? undefined : Math.min(...waiting),
      batches: this.#batches,
      failing: this.#failures > 0,
      failure: this.#failures > 0 ? this.#failure : undefined,
    };
  }

  /** How many batches are through; undefined while one is on its way, so that store and node may say different things. */
  settled(): number | undefined {
    return this.#is_sending ? undefined : this.#batches;
  }

  /** Flushes, for at most `flush_stop_ms_max`, and ends. True when nothing was left behind. */
  async stop(): Promise<boolean> {
    const { clock } = this.#options;
    const late = Promise.withResolvers<void>();
    const timer = clock.setTimeout(late.resolve, limits.flush_stop_ms_max, true);
    await Promise.race([this.flush(), late.promise]);
    // What is idle goes back with the last batch.
    this.ask();
    let is_late = false;
    void late.promise.then(() => {
      is_late = true;
    });
    while (this.#running !== undefined && !is_late) await Promise.race([this.#running, late.promise]);
    this.#stopped = true;
    clock.clearTimeout(this.#timer);
    this.#wake?.();
    await Promise.race([this.#running, late.promise]);
    clock.clearTimeout(timer);
    return this.#acknowledged === this.#pushed && this.#aside.length === 0;
  }

  /** Starts sending now, or later, or leaves it to the batch in flight. */
  #plan(): void {
    if (this.#running !== undefined || this.#stopped) return;
    if (this.#isDue()) {
      this.#start();
    } else if (!this.#timer && this.#queue.length > 0) {
      const { clock } = this.#options;
      const waited = clock.now() - (this.#queue[0]?.queued_at ?? 0);
      const delay_ms = Math.min(Math.max(0, limits.flush_interval_ms - waited), limits.flush_interval_ms);
      this.#timer = clock.setTimeout(() => this.#start(), delay_ms);
    }
  }

  /** Whether a batch should go without waiting for company. */
  #isDue(): boolean {
    if (this.#asking) return true;
    return this.#queue.length > 0 && (this.#barriers.length > 0 || this.#queue.length >= limits.flush_eager_records);
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
    // All that wants to ask in this turn of the event loop goes in one batch.
    if (this.#asking) await this.#nextTurn();
    do {
      const asked = this.#asking;
      this.#asking = false;
      this.#flying = this.#queue.splice(0, this.#nextSize());
      const settles = this.#flying.map(({ settle }) => settle);
      const number = this.#number + 1;
      const said = this.#tryFreeze(settles, number);
      if (said === undefined) {
        await this.#pause();
        this.#asking ||= asked;
        continue;
      }
      const { windows, divisor } = said;
      if (settles.length === 0 && windows.length === 0) continue;
      this.#number = number;
      const { node, clock } = this.#options;
      this.#is_sending = true;
      await this.#send({ node, epoch: this.#epoch, number, at: clock.now(), settles, windows, divisor });
      this.#is_sending = false;
    } while (!this.#stopped && this.#isDue());
  }

  /** A fault of ours in it loses no outcome: what was in flight waits again. */
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

  /** Sends one batch until its fate is known, or until it is plain that the store takes others and not this one. */
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
        if (refusals % limits.flush_refusals_max === 0 && (await this.#divide(error))) return;
        await this.#pause();
        continue;
      }
      this.#acknowledge(batch, answer);
      return;
    }
  }

  /** False when the store takes nothing at all: then the batch is not at fault. A new epoch fences its late copies. */
  async #divide(cause: unknown): Promise<boolean> {
    try {
      const { epoch } = await this.#options.onLost({ is: 'refused' });
      this.#epoch = epoch;
      this.#number = 0;
    } catch {
      return false;
    }
    this.#failures = 0;
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
      // The store has the batch, whatever becomes of the word of it: sent again, it would be counted twice here.
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

  /** Under a new epoch, from batch 1: what was in flight, then what waits. The store drops what it has. */
  async #startOver(answer: LostAnswer): Promise<void> {
    const { epoch } = await this.#options.onLost(answer);
    this.#epoch = epoch;
    this.#number = 0;
    this.#queue.unshift(...this.#flying);
    this.#flying = [];
  }

  async #pause(): Promise<void> {
    const delay_ms = Math.min(limits.flush_retry_ms * 2 ** (this.#failures - 1), limits.flush_retry_ms_max);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#options.clock.setTimeout(resolve, delay_ms);
    this.#wake = resolve;
    await promise;
    this.#options.clock.clearTimeout(timer);
    this.#wake = undefined;
  }
}
