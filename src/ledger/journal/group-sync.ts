import { type Deferred, deferred } from '../deferred.ts';
import type { LedgerClock, Timer } from '../ledger-clock.ts';
import { SYNC_COMPANY_MS, SyncPace } from './sync-pace.ts';

interface GroupSyncOptions {
  clock: LedgerClock;
  /** Syncs everything written so far. */
  sync: () => Promise<void>;
  /** A sync has failed: what the disk holds is not known. */
  onFailure: (error: Error) => void;
}

/** Syncs what was written. One sync serves all who wait when it begins. */
export class GroupSync {
  readonly #options: GroupSyncOptions;
  readonly #pace = new SyncPace();
  #waiting: Deferred[] = [];
  /** How many attempts wait. */
  #attempts = 0;
  /** Set while attempts wait for others that share their sync. */
  #company: Timer;
  #running: Promise<void> | undefined;

  constructor(options: GroupSyncOptions) {
    this.#options = options;
  }

  /** Attempts were written; `durable` is resolved or rejected when they are synced: soon, or when those that are expected at any moment were written as well. */
  attempts(count: number, durable: Deferred): void {
    const { clock } = this.#options;
    this.#waiting.push(durable);
    this.#attempts += count;
    this.#pace.note(count, clock.monotonic());
    if (this.#running !== undefined) return;
    if (this.#attempts >= this.#pace.records) this.#begin(false);
    else this.#company ??= clock.setTimeout(() => this.#begin(true), SYNC_COMPANY_MS);
  }

  /** Resolves when everything written so far is synced; begins at once. */
  now(): Promise<void> {
    const synced = deferred();
    this.#waiting.push(synced);
    this.#begin(false);
    return synced.promise;
  }

  /** Resolves when nobody waits for a sync. Never rejects. */
  async close(): Promise<void> {
    if (this.#waiting.length > 0) this.#begin(false);
    await this.#running;
  }

  /** `waited`: the attempts waited for others as long as they may. */
  #begin(waited: boolean): void {
    this.#options.clock.clearTimeout(this.#company);
    this.#company = undefined;
    if (this.#running !== undefined) return;
    this.#pace.begins(this.#attempts, waited);
    this.#running = this.#run();
  }

  /** One loop serves all who wait: a chain of promises would delay the last by tens of milliseconds. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      this.#waiting = [];
      this.#attempts = 0;
      try {
        await this.#options.sync();
        for (const { resolve } of waiting) resolve();
      } catch (error) {
        this.#options.onFailure(error as Error);
        for (const { reject } of waiting) reject(error as Error);
      }
    }
    this.#running = undefined;
  }
}
