import { type Disk, nodeDisk } from './disk.ts';

/** One file of the journal. */
export interface Segment {
  /** Without extension: epoch and ordinal, so that names sort in the order of writing. */
  name: string;
  /** Size of its whole records, if it was read or is being written. */
  bytes: number;
  /** When the last record was written; undefined while it is being written. */
  closed_at: number | undefined;
  /** How many attempts without an outcome it has, and outcomes that the store has not acknowledged. */
  unsettled: number;
  /** A restart does not need it; it is kept for a while in case the store is set back. */
  settled: boolean;
}

/** Extension of a segment that a restart needs. */
export const UNSETTLED = '.journal';
/** Extension of an archived segment. */
export const SETTLED = '.settled';
/** File with the position after which the store forgot everything. */
export const OWED = 'owed.json';
/** The name of a segment's file: epoch, ordinal, extension. */
export const NAME = /^(\d{8})-(\d{6})\.(journal|settled)$/;
/** The name of a segment, without extension. */
export function segmentName(epoch: number, ordinal: number): string {
  return `${String(epoch).padStart(8, '0')}-${String(ordinal).padStart(6, '0')}`;
}

/** Whether the journal of a slot must be replayed: its last owner did not stop cleanly, or the store is owed outcomes. */
export function needsReplay(dir: string, disk: Disk = nodeDisk): boolean {
  return disk.names(dir).some((name) => name === OWED || NAME.exec(name)?.[3] === 'journal');
}

/** The epoch in a segment's name. */
export function epochOf(segment: Segment): number {
  return Number(segment.name.slice(0, 8));
}
