import { type StoreWait, StoreWaitExceeded } from '../http/store-wait.ts';
import { limits } from '../limits.ts';
import type { Announcement, ChangeFeed } from '../storage/change-feed.ts';
import type { Database } from '../storage/database.ts';
import { isUnavailable } from '../storage/unavailable.ts';

/** What of the process every memory of the store's records is made with. */
export interface StoreMemoryOptions {
  clock: Pick<Database['clock'], 'monotonic_ms' | 'is_sure'>;
  /** Tells of changes, and whether it would have. */
  changes: Pick<ChangeFeed, 'listen' | 'current' | 'heardUntil_ms'>;
  /** For how long records are used that cannot be read again, from the moment as of which they were known to be true. */
  serve_without_store_ms: number;
}

/** What the store says; rejected where it does not answer, unless what is remembered may be used all the same. */
export interface Answer<T> {
  /** Undefined: there is none. */
  value: T | undefined;
  is_served_without_store: boolean;
}

interface Remembered<T> {
  value: T;
  /** It was read from the store at this moment of the monotonic clock. */
  read_ms: number;
}

/**
 * Records of the store that requests need, read lately. They are used while the feed is sure to report changes: once its
 * `heard` has resolved, no request begins with what was changed. Where the store does not answer they go on being used for
 * `serve_without_store_ms`, and not a moment longer, counted from when the last change would have been heard.
 */
export class StoreMemory<T> {
  readonly #options: StoreMemoryOptions;
  readonly #sizeMax: number;
  readonly #sizeOf: (value: T) => number;
  readonly #known = new Map<string, Remembered<T>>();
  /** Reads that are under way, and how many changes there were when they began. */
  readonly #reading = new Map<string, { changes: number; answer: Promise<T | undefined> }>();
  #size = 0;
  /** Rises with every change: an answer to an earlier question may be older. */
  #changes = 0;

  /** `nameOf`: the name that a change makes untrue; undefined: it concerns none of them. */
  constructor(
    options: StoreMemoryOptions,
    kind: {
      size_max: number;
      sizeOf(value: T): number;
      nameOf(change: Announcement): string | 'everything' | undefined;
      /** Whether a change of another name makes a value untrue as well; absent: no change does. */
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

  /** What is known to be true now; a promise where the store is read, see `Answer`. Absent `storeWait`: the read has the store's own bounds. */
  find(name: string, ask: () => Promise<T | undefined>, storeWait?: StoreWait): T | Promise<Answer<T>> {
    const { changes, clock } = this.#options;
    // First: the feed may notice only now that everything must be forgotten.
    if (!changes.current()) return this.#answer(name, this.#read(name, ask), storeWait);
    const known = this.#known.get(name);
    if (known !== undefined && clock.monotonic_ms() - known.read_ms < limits.key_cache_ms_max) return known.value;
    // Many requests want a record that has just grown old. A read that began before a change may be older than that; and
    // whoever cannot be sure to have heard of changes asks for himself.
    const reading = this.#reading.get(name);
    if (reading?.changes === this.#changes) return this.#answer(name, reading.answer, storeWait);
    const answer = this.#read(name, ask);
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

  async #read(name: string, ask: () => Promise<T | undefined>): Promise<T | undefined> {
    const changesBefore = this.#changes;
    const readMs = this.#options.clock.monotonic_ms();
    const value = await ask();
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
    const trueAtMs = Math.max(read_ms, changes.heardUntil_ms());
    return clock.monotonic_ms() - trueAtMs < serve_without_store_ms;
  }

  /** The oldest entries leave; a Map keeps the order of insertion. */
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
