import { join } from 'node:path';
import type { JournalRecord } from '../records.ts';
import type { Position } from '../settle.ts';
import { type Disk, nodeDisk } from './disk.ts';
import { readSegment, scanSegment } from './journal-format.ts';
import { Retention, type RetentionOptions } from './retention.ts';
import { epochOf, NAME, OWED, SETTLED, type Segment, UNSETTLED } from './segment.ts';

interface SegmentsOptions extends Pick<RetentionOptions, 'keep' | 'onGivenUp'> {
  disk?: Disk | undefined;
  /** Called with a kept file of which only a part can be read. */
  onDamage?: (file: string, at: number) => void;
}

/** Which files hold what is open of one generation: its attempts, and its outcome. */
interface Open {
  A: Segment | undefined;
  O: Segment | undefined;
  /** A later one, which holds the newest of its attempts: what the others say holds no more. */
  newest: Segment | undefined;
  /** What was metered last of its running attempt, as a line. */
  progress: string | undefined;
}

/**
 * The files of one slot, and which of them are still needed. A segment is settled when every attempt in it has its
 * outcome, every outcome in it is in the store, and all older segments are settled too; it is then renamed, so that a
 * start reads only what it must, and deleted when it is old, when too much is kept, or when the disk is short of space: the
 * oldest first.
 */
export class Segments {
  readonly dir: string;
  readonly disk: Disk;
  readonly retention: Retention;
  readonly #onDamage: SegmentsOptions['onDamage'];
  readonly #list: Segment[] = [];
  /** Monotonic time at which a sweep first found a segment. */
  readonly #seen = new WeakMap<Segment, number>();
  /** Those of which it was told. */
  readonly #damaged = new WeakSet<Segment>();
  /** By generation. One that has nothing open any more is not in it. */
  readonly #open = new Map<string, Open>();
  #owed: Position | undefined;
  /** All that is owed was sent and acknowledged; what is left is to note that. */
  #is_resent = false;

  constructor(dir: string, options: SegmentsOptions = {}) {
    const { disk = nodeDisk, onDamage, keep, onGivenUp } = options;
    this.dir = dir;
    this.disk = disk;
    this.#onDamage = onDamage;
    this.retention = new Retention({
      list: this.#list,
      dir,
      disk,
      path: (segment) => this.path(segment),
      isNeeded: () => this.#owed !== undefined && !this.#is_resent,
      keep,
      onGivenUp,
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

  path(segment: Segment): string {
    return join(this.dir, segment.name + (segment.settled ? SETTLED : UNSETTLED));
  }

  /** All records of a segment, for a start. */
  read(segment: Segment): JournalRecord[] {
    const path = this.path(segment);
    const bytes = this.disk.readNow(path);
    if (bytes === undefined) throw new Error(`The journal ${path} was removed while it was read`);
    const { records, whole_bytes } = readSegment(bytes, path);
    segment.bytes = whole_bytes;
    return records;
  }

  /**
   * Makes durable what a process that was killed had written and perhaps not synced: who relies on it after reading it
   * must not lose it in a power loss, when what was written because of it is kept.
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
   * Records of some kinds, read while the node serves. A damaged file that no restart needs gives what can be read of
   * it: it is kept for stores that forget, and the rest of what they forgot must not wait for it.
   */
  async records(segment: Segment, kinds: readonly JournalRecord['t'][]): Promise<JournalRecord[]> {
    const path = this.path(segment);
    // Put away between the look and the read, it has another name.
    const bytes = (await this.disk.read(path)) ?? (await this.disk.read(this.path(segment)));
    // A file that somebody took away has nothing to say.
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
   * What the store is owed: it forgot everything after this position. Survives a crash of the resending; while it stands
   * nothing is deleted.
   */
  get owed(): Position | undefined {
    return this.#owed;
  }

  owe(position: Position): void {
    this.retention.withRoom(() => this.disk.replace(join(this.dir, OWED), JSON.stringify(position)));
    this.syncNames();
    this.#owed = position;
    this.#is_resent = false;
  }

  /** The store has acknowledged all that it was owed: its segments may go, should the note of that find no space. */
  resent(): void {
    this.#is_resent = true;
  }

  owePaid(): void {
    this.disk.removeNow(join(this.dir, OWED));
    this.#owed = undefined;
  }

  add(name: string): Segment {
    const segment = { name, bytes: 0, closed_at: undefined, unsettled: 0, settled: false };
    this.#list.push(segment);
    return segment;
  }

  /** Takes back the newest segment, whose file could not be made. */
  drop(segment: Segment): void {
    if (this.#list.at(-1) === segment) this.#list.pop();
  }

  /** Takes files away that go on from what is lost. The newest first: without the one before it, one would pass for whole. */
  discard(lost: readonly Segment[]): void {
    for (const segment of lost.toReversed()) {
      this.disk.removeNow(this.path(segment));
      this.#list.splice(this.#list.indexOf(segment), 1);
    }
  }

  abandon(id: string): void {
    this.#close('A', id);
  }

  /** True where an older record of it stands in another segment: the new one counts from when it is `repeated`. */
  attempt(id: string, segment: Segment): boolean {
    this.#begin('A', id, segment);
    return this.#open.get(id)?.A !== segment;
  }

  /** So much was metered of a running attempt; undefined: it has just begun. */
  metered(id: string, line: string | undefined): void {
    const open = this.#open.get(id);
    if (open?.A !== undefined) open.progress = line;
  }

  /** What was told last to `metered`. */
  progressOf(id: string): string | undefined {
    return this.#open.get(id)?.progress;
  }

  /** The newest attempts of these stand here. */
  repeated(ids: readonly string[], segment: Segment): void {
    for (const id of ids) {
      const open = this.#open.get(id);
      if (open?.A !== undefined) open.newest = segment;
    }
  }

  /** Where the newest attempt stands of a generation that has one open. */
  newestAttempt(id: string): Segment | undefined {
    const open = this.#open.get(id);
    return open?.newest ?? open?.A;
  }

  /** An outcome is told; its attempt stays open until this is `written`, or the store has it. */
  outcome(id: string, segment: Segment): void {
    this.#begin('O', id, segment);
  }

  written(ids: readonly string[]): void {
    for (const id of ids) this.#close('A', id);
  }

  flushed(ids: readonly string[]): void {
    for (const id of ids) {
      const open = this.#open.get(id);
      if (open === undefined) continue;
      if (open.A !== undefined) open.A.unsettled--;
      if (open.O !== undefined) open.O.unsettled--;
      this.#open.delete(id);
    }
  }

  /** The oldest segment that something open keeps from being settled, if it was full before a moment. */
  oldestOpen(before: number): Segment | undefined {
    const segment = this.#list.find(({ unsettled }) => unsettled > 0);
    return segment?.closed_at !== undefined && segment.closed_at < before ? segment : undefined;
  }

  /** Whether this is a record of the segment that a restart would still need. */
  isOpen(record: { t: 'A' | 'O'; id: string }, segment: Segment): boolean {
    return this.#open.get(record.id)?.[record.t] === segment;
  }

  /** The record stands in another segment as well from now on, and is needed there. */
  move(record: { t: 'A' | 'O'; id: string }, to: Segment): void {
    const open = this.#open.get(record.id);
    const from = open?.[record.t];
    if (open === undefined || from === undefined) return;
    open[record.t] = to;
    if (open.newest === to) open.newest = undefined;
    from.unsettled--;
    to.unsettled++;
  }

  #begin(kind: 'A' | 'O', id: string, segment: Segment): void {
    const open = this.#open.get(id);
    if (open === undefined)
      this.#open.set(id, {
        A: kind === 'A' ? segment : undefined,
        O: kind === 'O' ? segment : undefined,
        newest: undefined,
        progress: undefined,
      });
    else if (open[kind] !== undefined) return;
    else open[kind] = segment;
    segment.unsettled++;
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
   * Renames what is settled, deletes what was kept long enough. The segment being written is left alone. `sync` makes
   * durable what settled them: a start looks for their attempts' outcomes in newer segments alone. With a `monotonic` time
   * nothing is old that was not seen as long here: a clock that is set forward is no passing of time.
   */
  async sweep(time: { now: number; monotonic?: number }, sync: () => Promise<void>): Promise<void> {
    const open = this.#list.findIndex(({ closed_at, unsettled }) => closed_at === undefined || unsettled > 0);
    const settled = this.#list.slice(0, open === -1 ? undefined : open).filter((segment) => !segment.settled);
    if (settled.length > 0) await sync();
    for (const segment of settled) {
      const from = this.path(segment);
      segment.settled = true;
      try {
        // A file that somebody took away keeps nothing else waiting.
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

  syncNames(): void {
    this.disk.syncNames(this.dir);
  }
}
