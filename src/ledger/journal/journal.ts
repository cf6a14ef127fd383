import { limits } from '../../limits.ts';
import { type Deferred, deferred } from '../deferred.ts';
import type { LedgerClock, Timer } from '../ledger-clock.ts';
import type { JournalRecord } from '../records.ts';
import { type AttemptEntry, AttemptLines } from './attempt-line.ts';
import { type Disk, isDiskFull, type OpenFile } from './disk.ts';
import { GroupSync } from './group-sync.ts';
import { JOURNAL_FORMAT, LineBuffer, lineOf } from './journal-format.ts';
import { journalProblem } from './journal-problem.ts';
import { type Segment, segmentName } from './segment.ts';
import type { Segments } from './segments.ts';

/** The size from which, on a full disk, the current segment is closed so that it can be deleted. */
const JOURNAL_LEAVE_BYTES_MIN = 64 * 1024;

/** `group`: an attempt is synced before it is sent, and survives a power loss. `os`: it survives the end of the process. */
export type JournalSync = 'group' | 'os';

export interface JournalOptions {
  segments: Segments;
  node: string;
  epoch: number;
  boot: string;
  sync: JournalSync;
  clock: LedgerClock;
  /** The line of an outcome in parts; undefined if the store has the outcome. */
  outcomeLineOf(id: string): readonly string[] | undefined;
}

/**
 * The write-ahead journal of this node: append-only. Records of one turn of the event loop are written together; in `group`
 * mode one sync serves all who wait for it.
 */
export class Journal {
  readonly #options: JournalOptions;
  readonly #segments: Segments;
  readonly #disk: Disk;
  readonly #lines = new LineBuffer();
  #epoch: number;
  #ordinal = 0;
  #segment!: Segment;
  #segmentBytesMax = Number.POSITIVE_INFINITY;
  /** The file that the current one continues, and its length. */
  #after: [file: string, bytes: number] | undefined;
  #file: OpenFile | undefined;
  #scheduled = false;
  #written: Deferred | undefined;
  /** The outcomes among the gathered records. */
  #outcomes: string[] = [];
  /**
   * Outcomes that the disk did not take, the oldest first. They are written before any later record: a later attempt may have
   * the money that they freed, and a replay that found the attempt without them would charge both at their full holds.
   */
  #refused: string[] = [];
  readonly #attemptLines = new AttemptLines();
  /** The attempts among the gathered records that an older segment contains as well. */
  #repeated: string[] = [];
  #durable: Deferred | undefined;
  readonly #syncs: GroupSync;
  /** Full files that are not synced yet. */
  #retired: OpenFile[] = [];
  #failure: Error | undefined;
  #dead = false;
  #retry: Timer;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#segments = options.segments;
    this.#disk = options.segments.disk;
    this.#epoch = options.epoch;
    this.#syncs = new GroupSync({
      sync: this.#syncAll,
      // Later attempts must not rely on this file.
      onFailure: (error) => {
        this.#failure = error;
        this.#dead = true;
      },
    });
    this.#openSegment();
  }

  /** True while attempts are refused: the last write failed, or the disk cannot be relied on until a restart. */
  get failing(): boolean {
    return this.#dead || this.#failure !== undefined;
  }

  /** Why attempts are refused, for an operator; undefined if they are not. */
  get problem(): string | undefined {
    const facts = { dir: this.#segments.dir, failure: this.#failure, is_dead: this.#dead };
    return this.failing ? journalProblem(facts) : undefined;
  }

  /** Resolves when the attempt is as durable as `sync` promises: only then may bytes go upstream. Rejects if it cannot be written. */
  attempt(entry: AttemptEntry): Promise<void> {
    const durable = this.extend(entry);
    this.#segments.setProgress(entry.id, undefined);
    return durable;
  }

  /** As `attempt`, for a running attempt: its progress is kept. */
  extend(entry: AttemptEntry): Promise<void> {
    const { id } = entry;
    const line = this.#attemptLines.lineOf(entry);
    // Only an attempt can be refused for its length: nothing has relied on it yet.
    const chars = line.reduce((sum, { length }) => sum + length, 0);
    const isLong = chars > limits.journal_record_bytes_max;
    const refused = isLong ? new Error(`A journal record has ${chars} characters`) : this.#append(...line);
    if (refused) {
      this.#attemptLines.clear();
      return Promise.reject(refused);
    }
    if (this.#segments.recorded('A', id, this.#segment)) this.#repeated.push(id);
    this.#durable ??= deferred();
    return this.#durable.promise;
  }

  /** Resolves when the outcome, whose line is given in parts, survives the end of the process. Rejects if it cannot be written. */
  outcome(id: string, line: readonly string[]): Promise<void> {
    const refused = this.#append(...line);
    if (refused) return Promise.reject(refused);
    this.#segments.recorded('O', id, this.#segment);
    this.#outcomes.push(id);
    this.#written ??= deferred();
    return this.#written.promise;
  }

  /** Appends a record that is written with the next ones; nobody waits for it. */
  note(record: JournalRecord): void {
    const line = lineOf(record);
    if (this.#append(line)) return;
    if (record.t === 'P') this.#segments.setProgress(record.id, line);
    if (record.t === 'F') this.#segments.flushed(record.ids);
  }

  /**
   * Takes back an attempt that could not be recorded and will not be made. False if its record may be in the file nevertheless:
   * then the next start counts it.
   */
  abandon(id: string): boolean {
    if (this.#dead && this.#segments.newestAttempt(id) !== undefined) return false;
    this.#segments.abandon(id);
    return true;
  }

  /** Continues in a new segment under another epoch. If the segment cannot be created, throws and keeps the old one. */
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

  /** Writes the gathered records. Returns the segment that the next record goes to. */
  currentSegment(): Segment {
    this.#write();
    return this.#segment;
  }

  /** Appends a line of an older segment again; returns its new segment. Throws if it cannot be taken. */
  appendAgain(line: string): Segment {
    const refused = this.#append(line);
    if (refused) throw refused;
    return this.#segment;
  }

  /** Resolves when everything recorded so far is as durable as the sync mode promises. Rejects if a write failed. */
  async sync(): Promise<void> {
    // After a failure nothing is gathered: write a start record to see whether the disk has room again.
    if (this.#failure && this.#lines.used === 0) this.#append(this.#start());
    this.#write();
    if (this.#failure) throw this.#failure;
    await this.syncWritten();
  }

  /** As `sync`, for the records that could be written. */
  async syncWritten(): Promise<void> {
    this.#write();
    if (this.#dead && this.#failure) throw this.#failure;
    if (this.#file === undefined || this.#options.sync === 'os') return;
    await this.#syncs.now();
  }

  /** Throws if the file was deleted, which would lose what is written to it; a new file is created. */
  checkLinked(): void {
    if (this.#file === undefined || this.#disk.isLinked(this.#file)) return;
    // What is gathered refers to definitions in the old file.
    this.#write();
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
    if (!this.#dead) this.#repeatRefused();
    this.#write();
    this.#dead = true;
    this.#options.clock.clearTimeout(this.#retry);
    await this.#syncs.close();
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

  /** Gathers a record. Returns the reason if it cannot be taken, undefined otherwise. */
  #append(...parts: readonly string[]): Error | undefined {
    if (this.#dead) return this.#failure ?? new Error('The journal is closed');
    if (this.#refused.length > 0) this.#repeatRefused();
    this.#lines.add(...parts);
    if (!this.#scheduled) {
      this.#scheduled = true;
      this.#options.clock.setImmediate(() => {
        this.#scheduled = false;
        this.#write();
      });
    }
    return undefined;
  }

  /** Gathers the refused outcomes again, except those that the store has by now. */
  #repeatRefused(): void {
    const refused = this.#refused;
    this.#refused = [];
    for (const id of refused) {
      const line = this.#options.outcomeLineOf(id);
      if (line === undefined) continue;
      this.#lines.add(...line);
      this.#outcomes.push(id);
      this.#segments.move({ t: 'O', id }, this.#segment);
    }
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
      if (this.#failure !== undefined) this.#recover(this.#failure);
    } catch (error) {
      // Definitions may be among the lines that are lost.
      this.#attemptLines.clear();
      this.#refused = this.#refused.concat(outcomes);
      written?.reject(error as Error);
      durable?.reject(error as Error);
      this.#fail(error as Error, file);
      return;
    }
    this.#segments.written(outcomes);
    if (repeated.length > 0) this.#segments.repeated(repeated, this.#segment);
    written?.resolve();
    if (durable && this.#options.sync === 'os') durable.resolve();
    else if (durable) this.#syncs.cover(durable);
    if (this.#segment.bytes < this.#segmentBytesMax) return;
    try {
      this.#rotate();
    } catch {
      // The old file is used a little longer; the next write tries again.
    }
  }

  /** Ends the failure after a successful write, unless the disk is still almost full. */
  #recover(failure: Error): void {
    const isFull = isDiskFull(failure) && this.#segments.retention.free_bytes < JOURNAL_LEAVE_BYTES_MIN;
    if (isFull) this.#tryLater();
    else this.#failure = undefined;
  }

  /** Schedules a test write: while no request is admitted, nothing else would notice that the disk has room again. */
  #tryLater(): void {
    this.#retry = this.#options.clock.setTimeout(() => this.#append(this.#start()), limits.journal_retry_ms, true);
  }

  /** Removes the partial write: a reader would take everything after it for damage. */
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

  /** No settled segment is left to delete: closes the current one, which can be deleted once it is settled. */
  #leaveFull(): void {
    if (this.#segment.bytes < JOURNAL_LEAVE_BYTES_MIN) return;
    try {
      this.#rotate();
    } catch {
      // The old file is used a little longer.
    }
  }

  /** The first record of a segment; also written to test whether the disk accepts data. */
  #start(): string {
    const { node, boot } = this.#options;
    const start: JournalRecord = { t: 'S', node, epoch: this.#epoch, boot, format: JOURNAL_FORMAT, after: this.#after };
    return lineOf(start);
  }

  readonly #syncAll = async (): Promise<void> => {
    const retired = this.#retired;
    this.#retired = [];
    // The journal may rotate during the syncs: those who wait have written to this file.
    const file = this.#file;
    for (const file of retired) {
      if (this.#options.sync === 'group') await this.#disk.sync(file);
      this.#disk.close(file);
    }
    if (file !== undefined) await this.#disk.sync(file);
  };

  /** Creates a segment, with a durable name in `group` mode. Throws if that fails; nothing has changed then. */
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
    this.#attemptLines.clear();
    this.#segmentBytesMax = this.#segments.retention.segment_bytes_max;
    this.#after = before && !before.settled ? [before.name, before.bytes] : undefined;
    this.#lines.add(this.#start());
    this.#repeatRefused();
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
