import { limits } from '../../limits.ts';
import { type Deferred, deferred } from '../deferred.ts';
import type { LedgerClock, Timer } from '../ledger-clock.ts';
import type { JournalRecord } from '../records.ts';
import { type Disk, isDiskFull, type OpenFile } from './disk.ts';
import { JOURNAL_FORMAT, LineBuffer, lineOf } from './journal-format.ts';
import { journalProblem } from './journal-problem.ts';
import { type Segment, segmentName } from './segment.ts';
import type { Segments } from './segments.ts';

/** `group`: an attempt survives a power loss before it is sent. `os`: it survives the end of the process. */
export type JournalSync = 'group' | 'os';

export interface JournalOptions {
  segments: Segments;
  node: string;
  epoch: number;
  boot: string;
  sync: JournalSync;
  clock: LedgerClock;
}

/**
 * The append-only record of what this node does, written before it is done. Records of one turn of the event loop go
 * out in one write; in `group` mode one sync serves everybody who waits for it.
 */
export class Journal {
  readonly #options: JournalOptions;
  readonly #segments: Segments;
  readonly #disk: Disk;
  readonly #lines = new LineBuffer();
  #epoch: number;
  #ordinal = 0;
  #segment!: Segment;
  #segment_bytes_max = Number.POSITIVE_INFINITY;
  /** What its file goes on from. */
  #after: [file: string, bytes: number] | undefined;
  #file: OpenFile | undefined;
  #scheduled = false;
  #written: Deferred | undefined;
  /** The outcomes among the records that are gathered. */
  #outcomes: string[] = [];
  /** The attempts among them of which an older segment tells as well. */
  #repeated: string[] = [];
  #durable: Deferred | undefined;
  #awaitingSync: Deferred[] = [];
  #syncing: Promise<void> | undefined;
  /** Files full but not synced yet. */
  #retired: OpenFile[] = [];
  #failure: Error | undefined;
  #dead = false;
  #retry: Timer;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#segments = options.segments;
    this.#disk = options.segments.disk;
    this.#epoch = options.epoch;
    this.#openSegment();
  }

  /** True while attempts are refused: the last write failed, or the disk cannot be relied on until a restart. */
  get failing(): boolean {
    return this.#dead || this.#failure !== undefined;
  }

  /** Why attempts are refused, for an operator; undefined while they are not. */
  get problem(): string | undefined {
    const facts = { dir: this.#segments.dir, failure: this.#failure, is_dead: this.#dead };
    return this.failing ? journalProblem(facts) : undefined;
  }

  /** Resolves when the attempt would survive what `sync` promises: only then may bytes go upstream. */
  attempt(id: string, json: string): Promise<void> {
    const durable = this.extend(id, json);
    this.#segments.metered(id, undefined);
    return durable;
  }

  /** As `attempt`, for one that is running: what was metered of it stands. */
  extend(id: string, json: string): Promise<void> {
    const refused = this.#append(json);
    if (refused) return Promise.reject(refused);
    if (this.#segments.attempt(id, this.#segment)) this.#repeated.push(id);
    this.#durable ??= deferred();
    return this.#durable.promise;
  }

  /** Resolves when the outcome would survive the end of the process. */
  outcome(id: string, json: string): Promise<void> {
    const refused = this.#append(json);
    if (refused) return Promise.reject(refused);
    this.#segments.outcome(id, this.#segment);
    this.#outcomes.push(id);
    this.#written ??= deferred();
    return this.#written.promise;
  }

  /** Written with the next records; nobody waits for it. */
  note(record: JournalRecord): void {
    const line = lineOf(record);
    if (this.#append(line)) return;
    if (record.t === 'P') this.#segments.metered(record.id, line);
    if (record.t === 'F') this.#segments.flushed(record.ids);
  }

  /** Takes back an attempt that could not be recorded and will not be made. */
  abandon(id: string): void {
    this.#segments.abandon(id);
  }

  /** Goes on in a new segment under another epoch; throws, and stays in the old one, where that cannot be made. */
  beginEpoch(epoch: number): void {
    this.#write();
    const before = { epoch: this.#epoch, ordinal: this.#ordinal };
    this.#epoch = epoch;
    this.#ordinal = 0;
    try {
      this.#rotate();
    } catch (error) {
      this.#epoch = before.epoch;
      this.#ordinal = before.ordinal;
      throw error;
    }
  }

  /** The segment that records go to, once those that are gathered are in their place. */
  written(): Segment {
    this.#write();
    return this.#segment;
  }

  /** Writes a line that stands in an older segment again; gives the segment that it is in now. */
  appendAgain(line: string): Segment {
    const refused = this.#append(line);
    if (refused) throw refused;
    return this.#segment;
  }

  /** Resolves when everything recorded so far would survive what the mode of syncing promises. */
  async sync(): Promise<void> {
    // A note that was lost to a full disk is not written by itself; this shows whether there is room again.
    if (this.#failure && this.#lines.used === 0) this.#append(this.#start());
    this.#write();
    if (this.#failure) throw this.#failure;
    await this.syncWritten();
  }

  /** As `sync`, for what could be written. */
  async syncWritten(): Promise<void> {
    this.#write();
    if (this.#dead && this.#failure) throw this.#failure;
    if (this.#file === undefined || this.#options.sync === 'os') return;
    const synced = deferred();
    this.#awaitingSync.push(synced);
    this.#syncing ??= this.#syncWhileAwaited();
    await synced.promise;
  }

  /** Notices that somebody took the file away: what is written to it would be lost. Goes on in a new one. */
  lookAfter(): void {
    if (this.#file === undefined || this.#disk.isLinked(this.#file)) return;
    try {
      this.#rotate();
    } catch (error) {
      this.#failure = error as Error;
      this.#dead = true;
    }
    throw new Error(
      'The journal was deleted while the gateway runs; entries that only the journal has are lost in a crash',
    );
  }

  /** Writes and syncs what is left, and closes the file. Nothing may be appended afterwards. */
  async close(): Promise<void> {
    this.#write();
    this.#dead = true;
    this.#options.clock.clearTimeout(this.#retry);
    await this.#syncing;
    const file = this.#file;
    if (file === undefined) return;
    try {
      await this.#syncAll();
    } finally {
      this.#disk.close(file);
      this.#file = undefined;
      this.#segment.closed_at = this.#options.clock.now();
    }
  }

  /** Why the record cannot be taken; undefined when it was. */
  #append(json: string): Error | undefined {
    if (this.#dead) return this.#failure ?? new Error('The journal is closed');
    if (json.length > limits.journal_record_bytes_max) {
      return new Error(`A journal record has ${json.length} characters`);
    }
    this.#lines.add(json);
    if (!this.#scheduled) {
      this.#scheduled = true;
      this.#options.clock.setImmediate(() => {
        this.#scheduled = false;
        this.#write();
      });
    }
    return undefined;
  }

  #write(): void {
    const file = this.#file;
    if (file === undefined || this.#lines.used === 0) return;
    const [written, durable, outcomes, repeated] = [this.#written, this.#durable, this.#outcomes, this.#repeated];
    this.#written = undefined;
    this.#durable = undefined;
    this.#outcomes = [];
    if (repeated.length > 0) this.#repeated = [];
    const bytes = this.#lines.take();
    this.#options.clock.clearTimeout(this.#retry);
    try {
      for (let done = 0; done < bytes.length; ) {
        const from = done;
        const taken = this.#segments.retention.withRoom(() => this.#disk.write(file, bytes, from));
        if (taken <= 0) throw new Error('The disk accepts no data');
        done += taken;
      }
      this.#segment.bytes += bytes.length;
      this.#recover();
    } catch (error) {
      written?.reject(error as Error);
      durable?.reject(error as Error);
      this.#fail(error as Error, file);
      return;
    }
    this.#segments.written(outcomes);
    this.#segments.repeated(repeated, this.#segment);
    written?.resolve();
    if (durable && this.#options.sync === 'os') durable.resolve();
    else if (durable) {
      this.#awaitingSync.push(durable);
      this.#syncing ??= this.#syncWhileAwaited();
    }
    if (this.#segment.bytes < this.#segment_bytes_max) return;
    try {
      this.#rotate();
    } catch {
      // The old file serves a little longer; the next write tries again.
    }
  }

  /** A full disk that took one line is full still: calls are let in again when there is some room. */
  #recover(): void {
    if (this.#failure === undefined) return;
    const is_full = isDiskFull(this.#failure) && this.#segments.retention.free_bytes < limits.journal_leave_bytes_min;
    if (is_full) this.#tryLater();
    else this.#failure = undefined;
  }

  /** Nobody is let in meanwhile, so nothing else would find out that the disk has room again. */
  #tryLater(): void {
    this.#retry = this.#options.clock.setTimeout(() => this.#append(this.#start()), limits.journal_retry_ms, true);
  }

  /** What was written in part is taken back, or a reader would take everything behind it for damage. */
  #fail(error: Error, file: OpenFile): void {
    this.#failure = error;
    try {
      this.#disk.truncate(file, this.#segment.bytes);
    } catch {
      this.#dead = true;
      return;
    }
    this.#tryLater();
    if (isDiskFull(error)) this.#leaveFull();
  }

  /** No settled segment is left to make room: the one being written can be the next, once it is closed. */
  #leaveFull(): void {
    if (this.#segment.bytes < limits.journal_leave_bytes_min) return;
    try {
      this.#rotate();
    } catch {
      // The old file serves a little longer.
    }
  }

  /** What a segment begins with; also written to see whether the disk takes anything. */
  #start(): string {
    const { node, boot } = this.#options;
    const start: JournalRecord = { t: 'S', node, epoch: this.#epoch, boot, format: JOURNAL_FORMAT, after: this.#after };
    return lineOf(start);
  }

  /** One loop that takes everybody who waits: a chain of promises would starve the last for tens of milliseconds. */
  async #syncWhileAwaited(): Promise<void> {
    while (this.#awaitingSync.length > 0) {
      const waiting = this.#awaitingSync;
      this.#awaitingSync = [];
      try {
        await this.#syncAll();
        for (const { resolve } of waiting) resolve();
      } catch (error) {
        // After a failed sync nobody knows what is on the disk; the next attempts must not rely on this file.
        this.#failure = error as Error;
        this.#dead = true;
        for (const { reject } of waiting) reject(error as Error);
      }
    }
    this.#syncing = undefined;
  }

  async #syncAll(): Promise<void> {
    const retired = this.#retired;
    this.#retired = [];
    // While those are synced it may be full as well: whoever waits has written to this one.
    const file = this.#file;
    for (const file of retired) {
      if (this.#options.sync === 'group') await this.#disk.sync(file);
      this.#disk.close(file);
    }
    if (file !== undefined) await this.#disk.sync(file);
  }

  /** Takes effect only when the new file is there, and its name durable; throws otherwise. */
  #openSegment(): void {
    const { sync } = this.#options;
    const before = this.#segments.list.at(-1);
    const segment = this.#segments.add(segmentName(this.#epoch, ++this.#ordinal));
    const path = this.#segments.path(segment);
    let file: OpenFile | undefined;
    try {
      file = this.#segments.retention.withRoom(() => this.#disk.create(path));
      // Rare and short; without it the whole file may be missing after a power loss.
      if (sync === 'group') this.#segments.syncNames();
    } catch (error) {
      this.#segments.drop(segment);
      if (file !== undefined) {
        this.#disk.close(file);
        this.#disk.removeNow(path);
      }
      throw error;
    }
    this.#file = file;
    this.#segment = segment;
    this.#segment_bytes_max = this.#segments.retention.segment_bytes_max;
    this.#after = before && !before.settled ? [before.name, before.bytes] : undefined;
    this.#lines.add(this.#start());
    this.#write();
  }

  #rotate(): void {
    const [full, file] = [this.#segment, this.#file];
    this.#openSegment();
    full.closed_at = this.#options.clock.now();
    if (file === undefined) return;
    if (this.#options.sync === 'group') this.#retired.push(file);
    else this.#disk.close(file);
  }
}
