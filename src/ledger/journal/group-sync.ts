import { type Deferred, deferred } from '../deferred.ts';

interface GroupSyncOptions {
  /** Syncs everything written so far. */
  sync: () => Promise<void>;
  /** A sync has failed: what the disk holds is not known. */
  onFailure: (error: Error) => void;
}

/**
 * Syncs what was written. A sync begins at once if none is running; what is written while one runs is covered by the next, which serves all
 * who wait when it begins.
 */
export class GroupSync {
  readonly #options: GroupSyncOptions;
  #waiting: Deferred[] = [];
  #running: Promise<void> | undefined;

  constructor(options: GroupSyncOptions) {
    this.#options = options;
  }

  /** `durable` is resolved when everything written so far is synced, or rejected if that fails. */
  cover(durable: Deferred): void {
    this.#waiting.push(durable);
    this.#running ??= this.#run();
  }

  /** Resolves when everything written so far is synced. */
  now(): Promise<void> {
    const synced = deferred();
    this.cover(synced);
    return synced.promise;
  }

  /** Resolves when nobody waits for a sync. Never rejects. */
  async close(): Promise<void> {
    await this.#running;
  }

  /** One loop serves all who wait: a chain of promises would delay the last by tens of milliseconds. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      this.#waiting = [];
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
