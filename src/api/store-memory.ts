import { limits } from '../limits.ts';
import type { Announcement, ChangeFeed } from '../storage/change-feed.ts';
import type { Database } from '../storage/database.ts';
import { inTime, isUnavailable } from '../storage/unavailable.ts';

/** What of the process every memory of the store's records is made with. */
export interface StoreMemoryOptions {
  clock: Pick<Database['clock'], 'monotonic_ms' | 'is_sure'>;
  /** Tells of changes, and whether it would have. */
  changes: Pick<ChangeFeed, 'listen' | 'current' | 'heardUntil_ms'>;
  /** What a read may take; undefined: as long as the store's own bounds allow. */
  read_ms_max: number | undefined;
  /** For how long records are used that cannot be read again, from the moment as of which they were known to be true. */
  serve_without_store_ms: number;
}

export interface Remembered<T> {
  value: T;
  /** The store was asked for it at this moment of the monotonic clock. */
  read_ms: number;
}

/**
 * Records of the store that requests need, read lately. They are used while the feed is sure to tell of changes: once its
 * `heard` has resolved, no request begins with what was changed. Where the store does not answer they go on being used for
 * `serve_without_store_ms`, and not a moment longer, counted from when the last change would have been heard.
 */
export class StoreMemory<T> {
  readonly #options: StoreMemoryOptions;
  readonly #size_max: number;
  readonly #sizeOf: (value: T) => number;
  readonly #known = new Map<string, Remembered<T>>();
  #size = 0;
  /** Rises with every change: an answer of the store that was asked for before may be older. */
  #changes = 0;

  /** `nameOf`: the name that a change makes untrue; undefined: it concerns none of them. */
  constructor(
    options: StoreMemoryOptions,
    kind: {
      size_max: number;
      sizeOf(value: T): number;
      nameOf(change: Announcement): string | 'everything' | undefined;
    },
  ) {
    this.#options = options;
    this.#size_max = kind.size_max;
    this.#sizeOf = kind.sizeOf;
    options.changes.listen((change) => {
      const name = change === 'everything' ? change : kind.nameOf(change);
      if (name === undefined) return;
      this.#changes += 1;
      if (name !== 'everything') {
        this.forget(name);
        return;
      }
      this.#known.clear();
      this.#size = 0;
    });
  }

  /** What is known to be true now. */
  find(name: string): T | undefined {
    const { changes, clock } = this.#options;
    // First: the feed may notice only now that everything must be forgotten.
    const current = changes.current();
    const known = this.#known.get(name);
    if (!current || known === undefined) return undefined;
    return clock.monotonic_ms() - known.read_ms < limits.key_cache_ms_max ? known.value : undefined;
  }

  /**
   * What the store says; undefined: there is none. Rejects where the store does not answer, unless what is remembered may
   * be used all the same: then `is_served_without_store`.
   */
  async read(
    name: string,
    ask: () => Promise<T | undefined>,
  ): Promise<{ value: T | undefined; is_served_without_store: boolean }> {
    const { clock, read_ms_max } = this.#options;
    const changes_before = this.#changes;
    const read_ms = clock.monotonic_ms();
    let value: T | undefined;
    try {
      value = await (read_ms_max === undefined ? ask() : inTime(ask(), read_ms_max));
    } catch (error) {
      const known = this.#known.get(name);
      if (known === undefined || !isUnavailable(error) || !this.#holds(known)) throw error;
      return { value: known.value, is_served_without_store: true };
    }
    if (value === undefined) this.forget(name);
    else if (this.#changes === changes_before) this.#remember(name, { value, read_ms });
    return { value, is_served_without_store: false };
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
    const true_at_ms = Math.max(read_ms, changes.heardUntil_ms());
    return clock.monotonic_ms() - true_at_ms < serve_without_store_ms;
  }

  /** The oldest entries leave; a Map keeps the order of insertion. */
  #remember(name: string, remembered: Remembered<T>): void {
    this.forget(name);
    const size = this.#sizeOf(remembered.value);
    for (const oldest of this.#known.keys()) {
      if (this.#size + size <= this.#size_max) break;
      this.forget(oldest);
    }
    this.#known.set(name, remembered);
    this.#size += size;
  }
}
