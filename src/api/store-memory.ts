import { type StoreWait, StoreWaitExceeded } from '../http/store-wait.ts';
import { limits } from '../limits.ts';
import type { Announcement, ChangeFeed } from '../storage/change-feed.ts';
import type { Database } from '../storage/database.ts';
import { isUnavailable } from '../storage/unavailable.ts';

/** Dependencies that all caches of store records share. */
export interface StoreMemoryOptions {
  clock: Pick<Database['clock'], 'monotonic_ms' | 'is_sure'>;
  /** Reports changes, and whether its reports are complete. */
  changes: Pick<ChangeFeed, 'listen' | 'current' | 'currentUntilMs'>;
  /** How long records are used that cannot be read again, from the time when they were last known to be current. */
  serve_without_store_ms: number;
}

/** The result of a read. Rejected if the store does not answer, unless the remembered record may be used. */
export interface Answer<T> {
  /** Undefined if there is no such record. */
  value: T | undefined;
  is_served_without_store: boolean;
}

interface Remembered<T> {
  value: T;
  /** When it was read from the store, on the monotonic clock. */
  read_ms: number;
}

/**
 * A cache of store records that requests need. Records are used while the change feed is connected: once its `deliver` has resolved, no
 * request begins with a stale record. If the store does not answer, they are used for another `serve_without_store_ms`, counted from the
 * last time at which a change would have been reported.
 */
export class StoreMemory<T> {
  readonly #options: StoreMemoryOptions;
  readonly #sizeMax: number;
  readonly #sizeOf: (value: T) => number;
  readonly #known = new Map<string, Remembered<T>>();
  /** Reads in progress, with the number of changes at their begin. */
  readonly #reading = new Map<string, { changes: number; answer: Promise<T | undefined> }>();
  #size = 0;
  /** Number of changes so far: a result of a read that began earlier may be stale. */
  #changes = 0;

  /** `nameOf` returns the name that a change makes stale; undefined if the change concerns none of the records. */
  constructor(
    options: StoreMemoryOptions,
    kind: {
      size_max: number;
      sizeOf(value: T): number;
      nameOf(change: Announcement): string | 'everything' | undefined;
      /** Whether a change of another name makes a value stale as well. Not set: no change does. */
      dependsOn?(value: T, name: string): boolean;
    },
  ) {
    this.#options = options;
    this.#sizeMax = kind.size_max;
    this.#sizeOf = kind.sizeOf;
    options.changes.listen((change) => {
      const name = change === 'everything' ? change : kind.nameOf(change);
      if (name === undefined) return;
      this.#changes += 1;
      if (name !== 'everything') {
        this.forget(name);
        const { dependsOn } = kind;
        if (dependsOn === undefined) return;
        for (const [other, { value }] of this.#known) if (dependsOn(value, name)) this.forget(other);
        return;
      }
      this.#known.clear();
      this.#size = 0;
    });
  }

  /** The current record, or a promise if it must be read (`Answer`). Without `storeWait`, the store's own timeouts apply. */
  find(name: string, load: () => Promise<T | undefined>, storeWait?: StoreWait): T | Promise<Answer<T>> {
    const { changes, clock } = this.#options;
    // First: the feed may notice only now that everything must be forgotten.
    if (!changes.current()) return this.#answer(name, this.#read(name, load), storeWait);
    const known = this.#known.get(name);
    if (known !== undefined && clock.monotonic_ms() - known.read_ms < limits.key_cache_ms_max) return known.value;
    // Many requests may need a record that has just expired: they share one read. A read that began before a change may be stale, and
    // without a connected feed each request reads for itself.
    const reading = this.#reading.get(name);
    if (reading?.changes === this.#changes) return this.#answer(name, reading.answer, storeWait);
    const answer = this.#read(name, load);
    const own = { changes: this.#changes, answer };
    this.#reading.set(name, own);
    const end = () => this.#reading.get(name) === own && this.#reading.delete(name);
    answer.then(end, end);
    return this.#answer(name, answer, storeWait);
  }

  async #answer(name: string, reading: Promise<T | undefined>, storeWait: StoreWait | undefined): Promise<Answer<T>> {
    try {
      const value = await (storeWait === undefined ? reading : storeWait.within(reading));
      return { value, is_served_without_store: false };
    } catch (error) {
      const known = this.#known.get(name);
      const isAway = error instanceof StoreWaitExceeded || isUnavailable(error);
      if (known === undefined || !isAway || !this.#holds(known)) throw error;
      return { value: known.value, is_served_without_store: true };
    }
  }

  async #read(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    const changesBefore = this.#changes;
    const readMs = this.#options.clock.monotonic_ms();
    const value = await load();
    if (value === undefined) this.forget(name);
    else if (this.#changes === changesBefore) this.#remember(name, { value, read_ms: readMs });
    return value;
  }

  forget(name: string): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    this.#size -= this.#sizeOf(known.value);
    this.#known.delete(name);
  }

  #holds({ read_ms }: Remembered<T>): boolean {
    const { clock, changes, serve_without_store_ms } = this.#options;
    if (serve_without_store_ms === 0 || !clock.is_sure) return false;
    const trueAtMs = Math.max(read_ms, changes.currentUntilMs());
    return clock.monotonic_ms() - trueAtMs < serve_without_store_ms;
  }

  /** Removes the oldest entries; a Map keeps insertion order. */
  #remember(name: string, remembered: Remembered<T>): void {
    this.forget(name);
    const size = this.#sizeOf(remembered.value);
    for (const oldest of this.#known.keys()) {
      if (this.#size + size <= this.#sizeMax) break;
      this.forget(oldest);
    }
    this.#known.set(name, remembered);
    this.#size += size;
  }
}
