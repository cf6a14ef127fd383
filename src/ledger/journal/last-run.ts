import { join } from 'node:path';
import type { LeaseRow } from '../settle.ts';
import type { Disk } from './disk.ts';

/** The state of a slot's last run, stored durably: unlike the journal, it does not lose its end in a power loss. */
export interface LastRun {
  /** The machine's boot id; '' if the system has none. */
  boot: string;
  /** It stopped cleanly, or synced before each send: nothing was sent that its journal does not have. */
  is_sure: boolean;
  /** Leases that earlier runs may have spent without a record: kept until an operator releases them. */
  frozen: LeaseRow[];
}

const FILE = 'last-run.json';

/** Whether requests may have been sent that no record shows. */
export function isInDoubt(last: LastRun | undefined, boot: string): boolean {
  return last !== undefined && !last.is_sure && (last.boot !== boot || boot === '');
}

/** The state of the last run; undefined for a new slot. */
export function readLastRun(dir: string, disk: Disk): LastRun | undefined {
  const content = disk.readNow(join(dir, FILE));
  return content && (JSON.parse(content.toString()) as LastRun);
}

/** Writes the state of this run; durable when it returns. */
export function writeLastRun(dir: string, disk: Disk, run: LastRun): void {
  disk.replace(join(dir, FILE), JSON.stringify(run));
  disk.syncNames(dir);
}
