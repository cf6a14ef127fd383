import type { Disk, OpenFile } from '../../src/ledger/disk.ts';
import type { Random } from './random.ts';
import type { Actor, Scheduler } from './scheduler.ts';

interface MemoryFile {
  bytes: Buffer;
  used: number;
  /** So much survives a power loss. */
  synced: number;
  modified_at: number;
}

/** What a directory held before a change to it; newest last. */
type Names = Map<string, MemoryFile>;

/** One machine's disk: it keeps what was written through crashes, and through a power loss what was synced. */
export class MemoryDisk {
  #names: Names = new Map();
  /** The directory as it was last made durable, and after each change since. */
  #history: Names[] = [new Map()];
  #boots = 1;
  readonly #scheduler: Scheduler;
  readonly #random: Random;

  constructor(scheduler: Scheduler, random: Random) {
    this.#scheduler = scheduler;
    this.#random = random;
  }

  /** Some of the unsynced changes of names survive, and some of the unsynced bytes; of these the last may be torn or rubbish. */
  losePower(): void {
    this.#boots++;
    this.#names = new Map(this.#random.pick(this.#history));
    this.#history = [new Map(this.#names)];
    for (const file of this.#names.values()) {
      const kept = this.#random.whole(file.synced, file.used);
      if (kept > file.synced && this.#random.chance(0.3)) file.bytes[kept - 1] = this.#random.whole(0, 255);
      file.used = kept;
      file.synced = kept;
    }
  }

  /** As one process sees it: a process that has ended changes nothing any more. */
  of(actor: Actor): Disk {
    const files: MemoryFile[] = [];
    const file = (open: OpenFile): MemoryFile => {
      const found = files[open];
      if (found === undefined) throw new Error('That file is not open');
      return found;
    };
    const change = (names: () => void) => {
      if (actor.dead) return;
      names();
      this.#history.push(new Map(this.#names));
    };
    const content = (path: string) => {
      const found = this.#names.get(path);
      return found && Buffer.from(found.bytes.subarray(0, found.used));
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
        const found = this.#names.get(path);
        if (found === undefined) throw new Error(`There is no ${path}`);
        return { bytes: found.used, modified_at: found.modified_at };
      },
      create: (path) => {
        if (this.#names.has(path)) throw new Error(`${path} is there already`);
        const created = { ...made(Buffer.alloc(4096)), used: 0, synced: 0 };
        change(() => this.#names.set(path, created));
        return files.push(created) - 1;
      },
      reopen: (path) => {
        const found = this.#names.get(path);
        if (found === undefined) throw new Error(`There is no ${path}`);
        return files.push(found) - 1;
      },
      write: (open, bytes, from) => {
        const taken = bytes.length - from;
        if (actor.dead) return taken;
        const target = file(open);
        if (target.used + taken > target.bytes.length) {
          const larger = Buffer.alloc((target.used + taken) * 2);
          target.bytes.copy(larger, 0, 0, target.used);
          target.bytes = larger;
        }
        bytes.copy(target.bytes, target.used, from);
        target.used += taken;
        target.modified_at = this.#scheduler.now_ms;
        return taken;
      },
      sync: (open) => {
        const target = file(open);
        const until = target.used;
        return new Promise((resolve) => {
          this.#scheduler.after(this.#random.longTailed(0.2, 0.8, 20), 'disk synced', actor, () => {
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
        const found = this.#names.get(from);
        if (found === undefined) return false;
        change(() => {
          this.#names.delete(from);
          this.#names.set(to, found);
        });
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
