import { type Disk, nodeDisk } from './disk.ts';

/** One file of the journal. */
export interface Segment {
  /** Without extension: epoch and ordinal, so that names sort in the order of writing. */
  name: string;
  /** Of whole records, where it was read or is written. */
  bytes: number;
  /** When the last record was written; undefined while it is being written. */
  closed_at: number | undefined;
  /** Attempts of it without an outcome, and outcomes of it that the store has not acknowledged. */
  unsettled: number;
  /** Nothing in it is needed for a restart; kept for a while for a store that forgets. */
  settled: boolean;
}

export const UNSETTLED = '.journal';
export const SETTLED = '.settled';
export const OWED = 'owed.json';
export const NAME = /^(\d{8})-(\d{6})\.(journal|settled)$/;

export function segmentName(epoch: number, ordinal: number): string {
  return `${String(epoch).padStart(8, '0')}-${String(ordinal).padStart(6, '0')}`;
}

/** Whether whoever wrote this journal left something for the next one: it did not stop, or the store is owed something. */
export function isLeftUndone(dir: string, disk: Disk = nodeDisk): boolean {
  return disk.names(dir).some((name) => name === OWED || NAME.exec(name)?.[3] === 'journal');
}

export function epochOf(segment: Segment): number {
  return Number(segment.name.slice(0, 8));
}
