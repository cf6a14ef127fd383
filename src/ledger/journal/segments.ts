import { join } from 'node:path';
import type { JournalRecord } from '../records.ts';
import { isBefore, type Position } from '../settle.ts';
import { type Disk, nodeDisk } from './disk.ts';
import { readSegment, scanSegment } from './journal-format.ts';
import { Retention, type RetentionOptions } from './retention.ts';
import { epochOf, NAME, OWED, SETTLED, type Segment, UNSETTLED } from './segment.ts';

interface SegmentsOptions extends Pick<RetentionOptions, 'keep' | 'onDiscard'> {
  disk?: Disk | undefined;
  /** Called with an archived file that can be read only in part. */
  onDamage?: (file: string, at: number) => void;
}

/** The segments with the open records of one generation: its attempt, and its outcome. */
interface Open {
  A: Segment | undefined;
  O: Segment | undefined;
  /** A later segment with a newer record of the attempt, which replaces the others. */
  newest: Segment | undefined;
  /** The last progress of its running attempt, as a line. */
  progress: string | undefined;
}

/**
 * The segments of one slot, and which of them a restart needs. A segment is settled when every attempt in it has its
 * outcome, every outcome in it is in the store, and all older segments are settled too. It is then renamed, so that a start
 * reads only what it must, and deleted when it is old, when too much is kept, or when the disk is short of space: the oldest
 * first.
 */
export class Segments {
  readonly dir: string;
  readonly disk: Disk;
  readonly retention: Retention;
  readonly #onDamage: SegmentsOptions['onDamage'];
  readonly #list: Segment[] = [];
  /** Monotonic time at which a sweep first saw a segment. */
  readonly #seen = new WeakMap<Segment, number>();
  /** Damaged segments that were reported. */
  readonly #damaged = new WeakSet<Segment>();
  /** By generation. Generations without open records are not in it. */
  readonly #open = new Map<string, Open>();
  #owed: Position | undefined;
  /** Everything owed was sent and acknowledged; only the note of that is missing. */
  #isResent = false;

  constructor(dir: string, options: SegmentsOptions = {}) {
    const { disk = nodeDisk, onDamage, keep, onDiscard } = options;
    this.dir = dir;
    this.disk = disk;
    this.#onDamage = onDamage;
    this.retention = new Retention({
      list: this.#list,
      dir,
      disk,
      path: (segment) => this.path(segment),
      isNeeded: () => this.#owed !== undefined && !this.#isResent,
      keep,
      onDiscard,
    });
    const owed = disk.readNow(join(dir, OWED));
    if (owed !== undefined) this.#owed = JSON.parse(owed.toString()) as Position;
    for (const name of disk.names(dir)) {
      const [, epoch, ordinal, extension] = NAME.exec(name) ?? [];
      if (epoch === undefined || ordinal === undefined) continue;
      const { bytes, modified_at } = disk.describe(join(dir, name));
      this.#list.push({
        name: `${epoch}-${ordinal}`,
        bytes,
        closed_at: modified_at,
        unsettled: 0,
        settled: extension === 'settled',
      });
    }
  }

  get list(): readonly Segment[] {
    return this.#list;
  }

  get bytes(): number {
    return this.#list.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  get epoch(): number {
    return Math.max(0, ...this.#list.map(epochOf));
  }

  /** The current path of a segment's file. */
  path(segment: Segment): string {
    return join(this.dir, segment.name + (segment.settled ? SETTLED : UNSETTLED));
  }

  /** All records of a segment, for a start. Throws if the file is damaged or missing. */
  read(segment: Segment): JournalRecord[] {
    const path = this.path(segment);
    const bytes = this.disk.readNow(path);
    if (bytes === undefined) throw new Error(`The journal ${path} was removed while it was read`);
    const { records, whole_bytes } = readSegment(bytes, path);
    segment.bytes = whole_bytes;
    return records;
  }

  /**
   * Makes the unsettled segments durable, which a killed process may have written and not synced: a start relies on what it
   * reads, so a power loss must not take that when it keeps what was written because of it.
   */
  async sync(): Promise<void> {
    for (const segment of this.#list) {
      if (segment.settled) continue;
      const file = this.disk.reopen(this.path(segment));
      try {
        await this.disk.sync(file);
      } finally {
        this.disk.close(file);
      }
    }
  }

  /**
   * Records of some kinds, read while the node serves. Of a damaged file that no restart needs, the readable records: the
   * rest of what a store forgot must not wait for it. Rejects if an unsettled file is damaged.
   */
  async records(segment: Segment, kinds: readonly JournalRecord['t'][]): Promise<JournalRecord[]> {
    const path = this.path(segment);
    // If it is archived between the two reads, its name has changed.
    const bytes = (await this.disk.read(path)) ?? (await this.disk.read(this.path(segment)));
    // Empty if the file was deleted.
    if (bytes === undefined) return [];
    if (!segment.settled) return readSegment(bytes, path, kinds).records;
    const { records, damaged_at } = scanSegment(bytes, kinds);
    if (damaged_at !== undefined && !this.#damaged.has(segment)) {
      this.#damaged.add(segment);
      this.#onDamage?.(path, damaged_at);
    }
    return records;
  }

  /**
   * The position after which the store forgot everything; undefined if it forgot nothing. Survives a crash of the resend;
   * nothing is deleted while it is set.
   */
  get owed(): Position | undefined {
    return this.#owed;
  }

  /** Records that the store forgot everything after `position`, unless it is owed more already. Durable when it returns. */
  oweFrom(position: Position): void {
    if (this.#owed !== undefined && !isBefore(position, this.#owed)) return;
    this.retention.withRoom(() => this.disk.replace(join(this.dir, OWED), JSON.stringify(position)));
    this.syncNames();
    this.#owed = position;
    this.#isResent = false;
  }

  /** The store has acknowledged everything that it was owed: its segments may be deleted if the disk has no space for the note of that. */
  markResent(): void {
    this.#isResent = true;
  }

  /** The store is owed nothing any more. */
  clearOwed(): void {
    this.disk.removeNow(join(this.dir, OWED));
    this.#owed = undefined;
  }

  /** Adds a new segment, which becomes the newest. */
  add(name: string): Segment {
    const segment = { name, bytes: 0, closed_at: undefined, unsettled: 0, settled: false };
    this.#list.push(segment);
    return segment;
  }

  /** Removes the newest segment, whose file could not be created. */
  drop(segment: Segment): void {
    if (this.#list.at(-1) === segment) this.#list.pop();
  }

  /** Deletes files that continue a lost end. The newest first: without its predecessor, a file would pass for whole. */
  discard(lost: readonly Segment[]): void {
    for (const segment of lost.toReversed()) {
      this.disk.removeNow(this.path(segment));
      this.#list.splice(this.#list.indexOf(segment), 1);
    }
  }

  /** The attempt will not be made. */
  abandon(id: string): void {
    this.#close('A', id);
  }

  /**
   * An attempt or an outcome is recorded. An attempt stays open until its outcome is `written`, or the store has it. True if an older
   * segment has such a record: a newer one of an attempt counts once it is `repeated`.
   */
  recorded(kind: 'A' | 'O', id: string, segment: Segment): boolean {
    const open = this.#open.get(id);
    if (open === undefined)
      this.#open.set(id, {
        A: kind === 'A' ? segment : undefined,
        O: kind === 'O' ? segment : undefined,
        newest: undefined,
        progress: undefined,
      });
    else if (open[kind] !== undefined) return open[kind] !== segment;
    else open[kind] = segment;
    segment.unsettled++;
    return false;
  }

  /** Sets the progress line of a running attempt; undefined: it has just begun. */
  setProgress(id: string, line: string | undefined): void {
    const open = this.#open.get(id);
    if (open?.A !== undefined) open.progress = line;
  }

  /** The last progress line of a running attempt. */
  progressOf(id: string): string | undefined {
    return this.#open.get(id)?.progress;
  }

  /** The newest records of these attempts are in `segment`. */
  repeated(ids: readonly string[], segment: Segment): void {
    for (const id of ids) {
      const open = this.#open.get(id);
      if (open?.A !== undefined) open.newest = segment;
    }
  }

  /** The segment with the newest record of a generation's open attempt. */
  newestAttempt(id: string): Segment | undefined {
    const open = this.#open.get(id);
    return open?.newest ?? open?.A;
  }

  /** These outcomes are in the file. */
  written(ids: readonly string[]): void {
    for (const id of ids) this.#close('A', id);
  }

  /** The store has these outcomes. */
  flushed(ids: readonly string[]): void {
    for (const id of ids) {
      const open = this.#open.get(id);
      if (open === undefined) continue;
      if (open.A !== undefined) open.A.unsettled--;
      if (open.O !== undefined) open.O.unsettled--;
      this.#open.delete(id);
    }
  }

  /** The oldest segment with open records, if it was closed before `before`. */
  oldestOpen(before: number): Segment | undefined {
    const segment = this.#list.find(({ unsettled }) => unsettled > 0);
    return segment?.closed_at !== undefined && segment.closed_at < before ? segment : undefined;
  }

  /** Whether a restart would still need this record of the segment. */
  isOpen(record: { t: 'A' | 'O'; id: string }, segment: Segment): boolean {
    return this.#open.get(record.id)?.[record.t] === segment;
  }

  /** The record is in `to` as well from now on, and is needed there. */
  move(record: { t: 'A' | 'O'; id: string }, to: Segment): void {
    const open = this.#open.get(record.id);
    const from = open?.[record.t];
    if (open === undefined || from === undefined) return;
    open[record.t] = to;
    if (record.t === 'A' && open.newest === to) open.newest = undefined;
    from.unsettled--;
    to.unsettled++;
  }

  #close(kind: 'A' | 'O', id: string): void {
    const open = this.#open.get(id);
    const segment = open?.[kind];
    if (open === undefined || segment === undefined) return;
    open[kind] = undefined;
    segment.unsettled--;
    if (open.A === undefined && open.O === undefined) this.#open.delete(id);
  }

  /**
   * Renames what is settled, deletes what was kept long enough. The segment being written is not touched. `sync` makes durable
   * what settled them: a start looks for their attempts' outcomes in newer segments only. With a `monotonic` time a segment is
   * old only if it was seen here for as long: setting the clock forward does not age it.
   */
  async sweep(time: { now: number; monotonic?: number }, sync: () => Promise<void>): Promise<void> {
    const open = this.#list.findIndex(({ closed_at, unsettled }) => closed_at === undefined || unsettled > 0);
    const settled = this.#list.slice(0, open === -1 ? undefined : open).filter((segment) => !segment.settled);
    if (settled.length > 0) await sync();
    for (const segment of settled) {
      const from = this.path(segment);
      segment.settled = true;
      try {
        // If the file was deleted, nothing else waits for it.
        this.disk.rename(from, this.path(segment));
      } catch (error) {
        segment.settled = false;
        throw error;
      }
    }
    const { now, monotonic } = time;
    for (const segment of this.#list) if (!this.#seen.has(segment)) this.#seen.set(segment, monotonic ?? 0);
    const seenFor = (segment: Segment) =>
      monotonic === undefined ? undefined : monotonic - (this.#seen.get(segment) ?? 0);
    await this.retention.expire(now, seenFor);
  }

  /** Makes the names of the files durable. */
  syncNames(): void {
    this.disk.syncNames(this.dir);
  }
}
