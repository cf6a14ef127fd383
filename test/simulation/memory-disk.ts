import type { Disk, OpenFile } from '../../src/ledger/journal/disk.ts';
import type { Random } from './random.ts';
import type { Actor, Scheduler } from './scheduler.ts';

interface MemoryFile {
  bytes: Buffer;
  used: number;
  /** This much survives a power loss. */
  synced: number;
  modified_at: number;
}

/** What a power loss removes: some of the unsynced data, all of it, or the last outcomes of each file. */
export type Loss = 'some' | 'all' | 'last outcomes';

const NEWLINE = 10;

/** The duration of a sync: minimum, usual maximum, maximum. */
type SyncMs = readonly [least: number, typical: number, most: number];

interface MemoryDiskOptions {
  sync_ms: SyncMs;
  capacity_bytes: number;
  /** A file has just been renamed. */
  onRename: (actor: Actor) => void;
}

/** The content of a directory before its changes; newest last. */
type Names = Map<string, MemoryFile>;

/** One machine's disk: it keeps written data through crashes, and synced data through a power loss. */
export class MemoryDisk {
  #names: Names = new Map();
  /** The directory when it was last made durable, and after each change since. */
  #history: Names[] = [new Map()];
  #boots = 1;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #syncMs: SyncMs;
  readonly #onRename: (actor: Actor) => void;
  readonly #capacity: number;
  /** How often a write found no space. */
  full = 0;

  constructor(scheduler: Scheduler, random: Random, { sync_ms, capacity_bytes, onRename }: MemoryDiskOptions) {
    this.#capacity = capacity_bytes;
    this.#scheduler = scheduler;
    this.#random = random;
    this.#syncMs = sync_ms;
    this.#onRename = onRename;
  }

  #usedBytes(): number {
    if (this.#capacity === Number.POSITIVE_INFINITY) return 0;
    let used = 0;
    for (const file of this.#names.values()) used += file.used;
    return used;
  }

  /** The data that a power loss could remove. */
  unsynced(): string {
    return [...this.#names.values()].map(({ bytes, synced, used }) => bytes.subarray(synced, used).toString()).join('');
  }

  /**
   * Some of the unsynced changes of names survive, and some or none of the unsynced bytes; the last line of these may
   * be torn or damaged.
   */
  losePower(taken: Loss): void {
    this.#boots++;
    if (taken === 'last outcomes') {
      this.#loseLastOutcomes();
      return;
    }
    this.#names = new Map(this.#random.pick(this.#history));
    this.#history = [new Map(this.#names)];
    for (const file of this.#names.values()) {
      const kept = taken === 'all' ? file.synced : this.#survivingOf(file);
      if (kept > file.synced && this.#random.chance(0.3)) this.#damage(file, kept);
      file.used = kept;
      file.synced = kept;
    }
  }

  #loseLastOutcomes(): void {
    this.#history = [new Map(this.#names)];
    for (const file of this.#names.values()) {
      const lastAttempt = file.bytes.subarray(0, file.used).lastIndexOf('{"t":"A"');
      const from = file.bytes.indexOf('{"t":"O"', Math.max(lastAttempt, file.synced));
      if (from !== -1 && from < file.used) file.used = from;
      file.synced = file.used;
    }
  }

  /** At a position after the synced data, as often as not at the end of a line. */
  #survivingOf({ bytes, used, synced }: MemoryFile): number {
    const kept = this.#random.whole(synced, used);
    const lineEnd = bytes.indexOf(NEWLINE, kept) + 1;
    return this.#random.chance(0.5) && lineEnd > 0 && lineEnd <= used ? lineEnd : kept;
  }

  /** In its last line, or instead of its end. */
  #damage({ bytes, synced }: MemoryFile, kept: number): void {
    const lineStart = kept < 2 ? 0 : bytes.lastIndexOf(NEWLINE, kept - 2) + 1;
    const at = this.#random.whole(Math.max(synced, lineStart), kept - 1);
    bytes[at] = this.#random.chance(0.5) ? this.#random.whole(48, 57) : this.#random.whole(0, 255);
  }

  /** The disk as one process sees it: a process that has ended changes nothing any more. */
  of(actor: Actor): Disk {
    const files: MemoryFile[] = [];
    const file = (open: OpenFile): MemoryFile => {
      const file = files[open];
      if (file === undefined) throw new Error('That file is not open');
      return file;
    };
    const change = (names: () => void) => {
      if (actor.dead) return;
      names();
      this.#history.push(new Map(this.#names));
    };
    const content = (path: string) => {
      const entry = this.#names.get(path);
      return entry && Buffer.from(entry.bytes.subarray(0, entry.used));
    };
    const made = (bytes: Buffer): MemoryFile => ({
      bytes,
      used: bytes.length,
      synced: bytes.length,
      modified_at: this.#scheduler.now_ms,
    });
    const remove = (path: string) => change(() => this.#names.delete(path));
    return {
      boot: () => `boot-${this.#boots}`,
      names: (dir) =>
        [...this.#names.keys()]
          .filter((path) => path.startsWith(`${dir}/`))
          .map((path) => path.slice(dir.length + 1))
          .sort(),
      describe: (path) => {
        const entry = this.#names.get(path);
        if (entry === undefined) throw new Error(`${path} does not exist`);
        return { bytes: entry.used, modified_at: entry.modified_at };
      },
      space: () => ({ free_bytes: this.#capacity - this.#usedBytes(), total_bytes: this.#capacity }),
      create: (path) => {
        if (this.#names.has(path)) throw new Error(`${path} already exists`);
        const created = { ...made(Buffer.alloc(4096)), used: 0, synced: 0 };
        change(() => this.#names.set(path, created));
        return files.push(created) - 1;
      },
      reopen: (path) => {
        const entry = this.#names.get(path);
        if (entry === undefined) throw new Error(`${path} does not exist`);
        return files.push(entry) - 1;
      },
      write: (open, bytes, from) => {
        const wanted = bytes.length - from;
        if (actor.dead) return wanted;
        const target = file(open);
        const taken = Math.min(wanted, this.#capacity - this.#usedBytes());
        if (taken <= 0) {
          this.full += 1;
          throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
        }
        if (target.used + taken > target.bytes.length) {
          const larger = Buffer.alloc((target.used + taken) * 2);
          target.bytes.copy(larger, 0, 0, target.used);
          target.bytes = larger;
        }
        bytes.copy(target.bytes, target.used, from, from + taken);
        target.used += taken;
        target.modified_at = this.#scheduler.now_ms;
        return taken;
      },
      sync: (open) => {
        const target = file(open);
        const until = target.used;
        return new Promise((resolve) => {
          this.#scheduler.after(this.#random.longTailed(...this.#syncMs), 'disk synced', actor, () => {
            target.synced = Math.max(target.synced, until);
            resolve();
          });
        });
      },
      truncate: (open, bytes) => {
        if (!actor.dead) file(open).used = bytes;
      },
      isLinked: () => true,
      close: () => {},
      readNow: content,
      read: (path) => Promise.resolve(content(path)),
      rename: (from, to) => {
        const entry = this.#names.get(from);
        if (entry === undefined) return false;
        change(() => {
          this.#names.delete(from);
          this.#names.set(to, entry);
        });
        this.#onRename(actor);
        return true;
      },
      replace: (path, text) => change(() => this.#names.set(path, made(Buffer.from(text)))),
      removeNow: remove,
      remove: (path) => Promise.resolve(remove(path)),
      syncNames: () => {
        if (!actor.dead) this.#history = [new Map(this.#names)];
      },
    };
  }
}
