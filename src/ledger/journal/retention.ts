import { limits } from '../../limits.ts';
import { type Disk, isDiskFull } from './disk.ts';
import type { Segment } from './segment.ts';

/** The segments that a small disk must have room for. */
const JOURNAL_SEGMENTS_PER_DISK = 16;

/** How long settled segments are kept for a store that is set back, and the largest size of the journal because of them. */
export interface JournalKeep {
  ms: number;
  bytes: number;
}

export interface RetentionOptions {
  /** The segments of the slot, the oldest first. */
  list: Segment[];
  dir: string;
  disk: Disk;
  path(segment: Segment): string;
  /** Whether the store must still be sent the outcomes of settled segments. */
  isNeeded(): boolean;
  /** Not set: the defaults of `limits`. */
  keep?: JournalKeep | undefined;
  /** Called with a settled segment that is deleted early because the disk is short of space. */
  onDiscard?: ((segment: Segment) => void) | undefined;
}

/** How many bytes the disk of a directory lacks for the journal; 0 or less: none. */
export function lackingBytes(disk: Disk, dir: string): number {
  const { free_bytes, total_bytes } = disk.space(dir);
  return Math.min(limits.journal_free_bytes_min, total_bytes / limits.journal_free_part) - free_bytes;
}

/** Decides which settled segments are kept: until they are too old or too many, and as long as the disk has space. The oldest is deleted first. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #keep: JournalKeep;
  #discardedBytes = 0;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#keep = options.keep ?? { ms: limits.journal_keep_ms, bytes: limits.journal_keep_bytes_max };
  }

  /** Size of the segments that were deleted early: a store that is set back cannot be sent their outcomes again. */
  get discarded_bytes(): number {
    return this.#discardedBytes;
  }

  /** The size at which a segment is full: small enough that a small disk holds several. */
  get segment_bytes_max(): number {
    const { total_bytes } = this.#space();
    return Math.min(limits.journal_segment_bytes_max, total_bytes / JOURNAL_SEGMENTS_PER_DISK);
  }

  /** The free function `lackingBytes`, for this directory. */
  lackingBytes(): number {
    return lackingBytes(this.#options.disk, this.#options.dir);
  }

  get free_bytes(): number {
    return this.#space().free_bytes;
  }

  #space() {
    return this.#options.disk.space(this.#options.dir);
  }

  /** Deletes segments that are too old or too many. `seenFor`: the milliseconds since a sweep first saw a segment. */
  async expire(now: number, seenFor: (segment: Segment) => number | undefined): Promise<void> {
    const { list, disk, path } = this.#options;
    let keptBytes = list.reduce((sum, { bytes }) => sum + bytes, 0);
    for (let oldest = this.#oldest(); oldest !== undefined; oldest = this.#oldest()) {
      const ageMs = Math.min(now - (oldest.closed_at ?? 0), seenFor(oldest) ?? Number.POSITIVE_INFINITY);
      if (ageMs <= this.#keep.ms && keptBytes <= this.#keep.bytes) return;
      list.shift();
      keptBytes -= oldest.bytes;
      await disk.remove(path(oldest));
    }
  }

  /** Deletes settled segments until the disk has enough space, or none is left. */
  async makeRoom(): Promise<void> {
    const { disk, path } = this.#options;
    for (let lacking = this.lackingBytes(); lacking > 0; ) {
      const segment = this.#giveUp();
      if (segment === undefined) return;
      lacking -= segment.bytes;
      await disk.remove(path(segment));
    }
  }

  /** Runs a write; if the disk is full, deletes the oldest settled segment and runs it once more. Throws the write's error. */
  withRoom<T>(write: () => T): T {
    try {
      return write();
    } catch (error) {
      const segment = isDiskFull(error) ? this.#giveUp() : undefined;
      if (segment === undefined) throw error;
      const { disk, path } = this.#options;
      disk.removeNow(path(segment));
      return write();
    }
  }

  #oldest(): Segment | undefined {
    const [oldest] = this.#options.list;
    return oldest?.settled && oldest.closed_at !== undefined && !this.#options.isNeeded() ? oldest : undefined;
  }

  #giveUp(): Segment | undefined {
    const segment = this.#oldest();
    if (segment === undefined) return undefined;
    this.#options.list.shift();
    this.#discardedBytes += segment.bytes;
    this.#options.onDiscard?.(segment);
    return segment;
  }
}
