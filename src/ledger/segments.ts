import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '../limits.ts';
import { readSegment } from './journal-format.ts';
import type { JournalRecord } from './records.ts';

/** One file of the journal. */
export interface Segment {
  /** Without extension: epoch and ordinal, so that names sort in the order of writing. */
  name: string;
  bytes: number;
  /** When the last record was written; undefined while it is being written. */
  closed_at: number | undefined;
  /** Attempts of it without an outcome, and outcomes of it that the store has not acknowledged. */
  unsettled: number;
  /** Nothing in it is needed for a restart; kept for a while for a store that forgets. */
  settled: boolean;
}

const UNSETTLED = '.journal';
const SETTLED = '.settled';
const NAME = /^(\d{8})-(\d{6})\.(journal|settled)$/;

export function segmentName(epoch: number, ordinal: number): string {
  return `${String(epoch).padStart(8, '0')}-${String(ordinal).padStart(6, '0')}`;
}

export function epochOf(segment: Segment): number {
  return Number(segment.name.slice(0, 8));
}

/** Makes the names in a directory durable. */
function syncDirectory(dir: string): void {
  const fd = openSync(dir, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * The files of one slot, and which of them are still needed. A segment is settled when every attempt in it has its
 * outcome, every outcome in it is in the store, and all older segments are settled too; it is then renamed, so that a
 * start reads only what it must, and deleted when `journal_keep_ms` is over or too much is kept.
 */
export class Segments {
  readonly dir: string;
  readonly #list: Segment[] = [];
  readonly #attempts = new Map<string, Segment>();
  readonly #outcomes = new Map<string, Segment>();

  constructor(dir: string) {
    this.dir = dir;
    for (const file of readdirSync(dir).sort()) {
      const [, epoch, ordinal, extension] = NAME.exec(file) ?? [];
      if (epoch === undefined || ordinal === undefined) continue;
      const { size, mtimeMs } = statSync(join(dir, file));
      this.#list.push({
        name: `${epoch}-${ordinal}`,
        bytes: size,
        closed_at: mtimeMs,
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

  read(segment: Segment): JournalRecord[] {
    const path = this.path(segment);
    return readSegment(readFileSync(path), path);
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

  abandon(id: string): void {
    this.#close(this.#attempts, id);
  }

  attempt(id: string, segment: Segment): void {
    if (this.#attempts.has(id)) return;
    this.#attempts.set(id, segment);
    segment.unsettled++;
  }

  outcome(id: string, segment: Segment): void {
    if (this.#outcomes.has(id)) return;
    this.#outcomes.set(id, segment);
    segment.unsettled++;
    this.#close(this.#attempts, id);
  }

  flushed(ids: readonly string[]): void {
    for (const id of ids) this.#close(this.#outcomes, id);
  }

  #close(open: Map<string, Segment>, id: string): void {
    const segment = open.get(id);
    if (!segment) return;
    open.delete(id);
    segment.unsettled--;
  }

  /** Renames what is settled, deletes what was kept long enough. The segment being written is left alone. */
  async sweep(now: number): Promise<void> {
    for (const segment of this.#list) {
      if (segment.closed_at === undefined || segment.unsettled > 0) break;
      if (segment.settled) continue;
      const from = this.path(segment);
      segment.settled = true;
      renameSync(from, this.path(segment));
    }
    let kept = this.bytes;
    for (;;) {
      const [oldest] = this.#list;
      if (!oldest?.settled || oldest.closed_at === undefined) return;
      const expired = now - oldest.closed_at > limits.journal_keep_ms;
      if (!expired && kept <= limits.journal_keep_bytes_max) return;
      this.#list.shift();
      kept -= oldest.bytes;
      await rm(this.path(oldest), { force: true });
    }
  }

  syncDirectory(): void {
    syncDirectory(this.dir);
  }
}
