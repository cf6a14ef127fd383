import { join } from 'node:path';
import type { LeaseRow } from '../settle.ts';
import type { Disk } from './disk.ts';

/** How a slot's last owner stood, as far as a power loss cannot take it away; the journal alone can lose its end. */
export interface LastRun {
  /** The machine's run; '' where it has no name. */
  boot: string;
  /** It stopped on purpose, or synced before each send: nothing was sent that its journal does not tell of. */
  is_sure: boolean;
  /** Leases that earlier runs may have spent without telling: kept until an operator releases them. */
  frozen: LeaseRow[];
}

const FILE = 'last-run.json';

/** Whether requests may have been sent that no record tells of. */
export function isInDoubt(last: LastRun | undefined, boot: string): boolean {
  return last !== undefined && !last.is_sure && (last.boot !== boot || boot === '');
}

/** Undefined for a new slot. */
export function readLastRun(dir: string, disk: Disk): LastRun | undefined {
  const found = disk.readNow(join(dir, FILE));
  return found && (JSON.parse(found.toString()) as LastRun);
}

/** Durable when it returns. */
export function writeLastRun(dir: string, disk: Disk, run: LastRun): void {
  disk.replace(join(dir, FILE), JSON.stringify(run));
  disk.syncNames(dir);
}
