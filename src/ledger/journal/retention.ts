import { limits } from '../../limits.ts';
import { type Disk, isDiskFull } from './disk.ts';
import type { Segment } from './segment.ts';

/** How long settled segments are kept for a store that is set back, and how many bytes of journal at most for their sake. */
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
  /** Whether the store must still be sent what settled segments hold. */
  isNeeded(): boolean;
  /** Absent: the defaults of `limits`. */
  keep?: JournalKeep | undefined;
  /** Called with a settled segment that is deleted before its time because the disk is short of space. */
  onGivenUp?: ((segment: Segment) => void) | undefined;
}

/** What the disk of a directory lacks of the space that a journal needs; not above 0: nothing. */
export function lackingBytes(disk: Disk, dir: string): number {
  const { free_bytes, total_bytes } = disk.space(dir);
  return Math.min(limits.journal_free_bytes_min, total_bytes / limits.journal_free_part) - free_bytes;
}

/** Which settled segments stay: until they are old or too many, and as long as the disk has space. The oldest goes first. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #keep: JournalKeep;
  #given_up_bytes = 0;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#keep = options.keep ?? { ms: limits.journal_keep_ms, bytes: limits.journal_keep_bytes_max };
  }

  /** What was deleted before its time: a store that is set back cannot be sent it again. */
  get given_up_bytes(): number {
    return this.#given_up_bytes;
  }

  /** A segment is full at this size: small enough that a small disk holds several. */
  get segment_bytes_max(): number {
    const { total_bytes } = this.#space();
    return Math.min(limits.journal_segment_bytes_max, total_bytes / limits.journal_segments_per_disk);
  }

  /** See the function of the same name. */
  lackingBytes(): number {
    return lackingBytes(this.#options.disk, this.#options.dir);
  }

  get free_bytes(): number {
    return this.#space().free_bytes;
  }

  #space() {
    return this.#options.disk.space(this.#options.dir);
  }

  /** Deletes what is old or too much. `seenFor`: for how many milliseconds a sweep has known a segment. */
  async expire(now: number, seenFor: (segment: Segment) => number | undefined): Promise<void> {
    const { list, disk, path } = this.#options;
    let kept = list.reduce((sum, { bytes }) => sum + bytes, 0);
    for (let oldest = this.#oldest(); oldest !== undefined; oldest = this.#oldest()) {
      const age_ms = Math.min(now - (oldest.closed_at ?? 0), seenFor(oldest) ?? Number.POSITIVE_INFINITY);
      if (age_ms <= this.#keep.ms && kept <= this.#keep.bytes) return;
      list.shift();
      kept -= oldest.bytes;
      await disk.remove(path(oldest));
    }
  }

  /** Deletes settled segments as far as the disk is short of space. */
  async makeRoom(): Promise<void> {
    const { disk, path } = this.#options;
    for (let lacking = this.lackingBytes(); lacking > 0; ) {
      const segment = this.#giveUp();
      if (segment === undefined) return;
      lacking -= segment.bytes;
      await disk.remove(path(segment));
    }
  }

  /** Runs what writes to the disk; where that is full, once more when the oldest settled segment has made room. */
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
    this.#given_up_bytes += segment.bytes;
    this.#options.onGivenUp?.(segment);
    return segment;
  }
}
