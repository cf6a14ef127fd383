import { type StoreWait, StoreWaitExceeded } from '../http/store-wait.ts';
import { limits } from '../limits.ts';
import type { Announcement, ChangeFeed } from '../storage/change-feed.ts';
import type { Database } from '../storage/database.ts';
import { isUnavailable } from '../storage/unavailable.ts';

/** How long it is remembered that the store has no such record. Secrets are random, so none is tried before its key exists. */
export const KEY_ABSENT_MS_MAX = 2_000;
/** How many such names are remembered. */
export const KEYS_ABSENT_MAX = 10_000;
/** Without the feed, requests wait for a read in progress only if it began so recently. */
const READ_SHARED_MS_MAX = 100;
/** How many names of changes are remembered; beyond it every record is read again. */
const CHANGED_NAMES_MAX = 10_000;

/** The name under which `nameOf` reports that a record was created: only what is remembered as absent depends on it. */
export const madeName = (name: string): string => `made:${name}`;

/** Dependencies that all caches of store records share. */
export interface StoreMemoryOptions {
  clock: Pick<Database['clock'], 'monotonicMs' | 'is_sure'>;
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
  /** Undefined if the store has no such record. */
  value: T | undefined;
  /** When it was read from the store, on the monotonic clock. */
  read_ms: number;
  /** The number of changes that it is known to be newer than. */
  changes: number;
  /** Whether it was used since it was last considered for removal. */
  is_used: boolean;
}

interface Reading<T> {
  /** The number of changes when it began. */
  changes: number;
  begun_ms: number;
  answer: Promise<T | undefined>;
}

/**
 * A cache of store records that requests need. Records are used while the change feed is connected: once its `deliver` has resolved, no
 * request begins with a stale record. If the store does not answer, they are used for another `serve_without_store_ms`, counted from the
 * last time at which a change would have been reported. That a record does not exist is remembered too, for `KEY_ABSENT_MS_MAX`.
 */
export class StoreMemory<T> {
  readonly #options: StoreMemoryOptions;
  readonly #sizeMax: number;
  readonly #sizeOf: (value: T) => number;
  readonly #namesOf: (value: T) => readonly string[] | 'everything';
  readonly #known = new Map<string, Remembered<T>>();
  readonly #absent = new Map<string, Remembered<T>>();
  /** Reads in progress. */
  readonly #reading = new Map<string, Reading<T>>();
  /** While the feed is disconnected: reads that begin when the one in progress has ended. */
  readonly #next = new Map<string, Promise<T | undefined>>();
  #size = 0;
  #changes = 0;
  /** The last change of each name: records that depend on it and were read before are stale. */
  readonly #changed = new Map<string, number>();
  /** All records that were read before this change are stale. */
  #changedAll = 0;

  constructor(
    options: StoreMemoryOptions,
    kind: {
      size_max: number;
      sizeOf(value: T): number;
      /** The name of a record or of what records depend on; undefined if the change concerns no record. */
      nameOf(change: Announcement): string | undefined;
      /** The names that a record depends on, besides its own. `everything` if each change makes it stale. Undefined if it depends on no others. */
      namesOf?(value: T): readonly string[] | 'everything';
    },
  ) {
    this.#options = options;
    this.#sizeMax = kind.size_max;
    this.#sizeOf = kind.sizeOf;
    this.#namesOf = kind.namesOf ?? (() => []);
    options.changes.listen((change) => {
      const name = change === 'everything' ? change : kind.nameOf(change);
      if (name === undefined) return;
      this.#changes += 1;
      if (name === 'everything' || this.#changed.size >= CHANGED_NAMES_MAX) {
        this.#changedAll = this.#changes;
        this.#changed.clear();
        this.#known.clear();
        this.#absent.clear();
        this.#size = 0;
      } else {
        this.#changed.set(name, this.#changes);
      }
    });
  }

  /** The current record, or a promise if it must be read (`Answer`). Without `storeWait`, the store's own timeouts apply. */
  find(name: string, load: () => Promise<T | undefined>, storeWait?: StoreWait): T | Promise<Answer<T>> {
    const { changes, clock } = this.#options;
    // First: the feed may notice only now that everything must be forgotten.
    if (!changes.current()) return this.#answer(name, this.#readNext(name, load), storeWait);
    const known = this.#known.get(name);
    if (known?.value !== undefined && (known.changes === this.#changes || this.#isCurrent(name, known))) {
      if (clock.monotonicMs() - known.read_ms < limits.key_cache_ms_max) {
        known.is_used = true;
        return known.value;
      }
    }
    const absent = this.#absent.get(name);
    if (absent !== undefined && this.#isCurrent(name, absent)) {
      if (clock.monotonicMs() - absent.read_ms < KEY_ABSENT_MS_MAX) {
        return Promise.resolve({ value: undefined, is_served_without_store: false });
      }
    }
    // Many requests may need a record that is not known yet: they share one read, unless it began before a change.
    const reading = this.#reading.get(name);
    if (reading?.changes === this.#changes) return this.#answer(name, reading.answer, storeWait);
    return this.#answer(name, this.#read(name, load), storeWait);
  }

  async #answer(name: string, reading: Promise<T | undefined>, storeWait: StoreWait | undefined): Promise<Answer<T>> {
    try {
      const value = await (storeWait === undefined ? reading : storeWait.within(reading));
      return { value, is_served_without_store: false };
    } catch (error) {
      const known = this.#known.get(name);
      const isAway = error instanceof StoreWaitExceeded || isUnavailable(error);
      if (known === undefined || !isAway || !this.#isCurrent(name, known) || !this.#holds(known)) throw error;
      return { value: known.value, is_served_without_store: true };
    }
  }

  /**
   * A read that begins no earlier than now, for requests that cannot rely on the feed: a read in progress may have begun before a change.
   * All requests that arrive during it share the next one, unless it takes so long that its connection may be dead.
   */
  #readNext(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    const reading = this.#reading.get(name);
    const isLate = (begunMs: number) => this.#options.clock.monotonicMs() - begunMs > READ_SHARED_MS_MAX;
    if (reading === undefined || isLate(reading.begun_ms)) return this.#read(name, load);
    const waiting = this.#next.get(name);
    if (waiting !== undefined) return waiting;
    const begin = () => {
      this.#next.delete(name);
      return this.#read(name, load);
    };
    const next = reading.answer.then(begin, begin);
    this.#next.set(name, next);
    return next;
  }

  #read(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    const reading = {
      changes: this.#changes,
      begun_ms: this.#options.clock.monotonicMs(),
      answer: this.#load(name, load),
    };
    this.#reading.set(name, reading);
    const end = () => void (this.#reading.get(name) === reading && this.#reading.delete(name));
    reading.answer.then(end, end);
    return reading.answer;
  }

  async #load(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    const record = { read_ms: this.#options.clock.monotonicMs(), changes: this.#changes, is_used: false };
    const value = await load();
    this.forget(name);
    if (this.#isCurrent(name, { ...record, value })) this.#remember(name, { ...record, value });
    return value;
  }

  forget(name: string): void {
    this.#absent.delete(name);
    const known = this.#known.get(name);
    if (known?.value === undefined) return;
    this.#size -= this.#sizeOf(known.value);
    this.#known.delete(name);
  }

  /** Whether nothing that the record depends on has changed since it was read. */
  #isCurrent(name: string, record: Remembered<T>): boolean {
    if (record.changes === this.#changes) return true;
    if (record.changes < this.#changedAll) return false;
    const isUnchanged = (other: string) => (this.#changed.get(other) ?? 0) <= record.changes;
    if (!isUnchanged(name)) return false;
    const names = record.value === undefined ? [madeName(name)] : this.#namesOf(record.value);
    if (names === 'everything' || !names.every(isUnchanged)) return false;
    record.changes = this.#changes;
    return true;
  }

  #holds({ read_ms }: Remembered<T>): boolean {
    const { clock, changes, serve_without_store_ms } = this.#options;
    if (serve_without_store_ms === 0 || !clock.is_sure) return false;
    const trueAtMs = Math.max(read_ms, changes.currentUntilMs());
    return clock.monotonicMs() - trueAtMs < serve_without_store_ms;
  }

  /** Removes entries that were not used for longest to make room; a Map keeps insertion order. */
  #remember(name: string, record: Remembered<T>): void {
    if (record.value === undefined) {
      const [oldest] = this.#absent.keys();
      if (this.#absent.size >= KEYS_ABSENT_MAX && oldest !== undefined) this.#absent.delete(oldest);
      this.#absent.set(name, record);
      return;
    }
    const size = this.#sizeOf(record.value);
    for (const [oldest, candidate] of this.#known) {
      if (this.#size + size <= this.#sizeMax) break;
      if (candidate.is_used) {
        // A second chance: it moves to the end, and is removed if it is not used until its next turn.
        candidate.is_used = false;
        this.#known.delete(oldest);
        this.#known.set(oldest, candidate);
      } else {
        this.forget(oldest);
      }
    }
    this.#known.set(name, record);
    this.#size += size;
  }
}
