import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';
import { nodeDisk } from './disk.ts';

/**
 * A place for one node's journal, held by this process alone. The lock dies with the process, and not with a pause of
 * it: an SQLite file that is kept open in exclusive mode, since Node itself cannot lock files.
 */
export interface Slot {
  index: number;
  dir: string;
  /** The node id that belongs to the slot, made when the slot was. */
  node: string;
  /** May be called more than once. */
  release(): void;
}

// https://www.sqlite.org/rescode.html#busy
const SQLITE_BUSY = 5;

/** The folder of one slot of a data directory. */
export function slotDir(data_dir: string, index: number): string {
  return join(data_dir, 'slots', String(index));
}

/** Makes durable that the folders are there which were made below one. */
function syncNamesUpTo(top: string, dir: string): void {
  for (let made = dir; made !== top; made = dirname(made)) nodeDisk.syncNames(dirname(made));
}

/** Takes one slot, or undefined when another process (or another node of this one) holds it. */
export function takeSlot(data_dir: string, index: number): Slot | undefined {
  const dir = slotDir(data_dir, index);
  const first_made = mkdirSync(dir, { recursive: true });
  // The journal syncs its own names; without these, a power loss could take its whole folder.
  if (first_made !== undefined) syncNamesUpTo(dirname(first_made), dir);
  const lock = new DatabaseSync(join(dir, 'lock.db'), { timeout: 0 });
  try {
    // In this mode the lock of the first write is kept until the file is closed.
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE IF NOT EXISTS slot (node TEXT NOT NULL)');
    const known = lock.prepare('SELECT node FROM slot').get();
    const node = known ? String(known['node']) : randomUUID();
    if (!known) lock.prepare('INSERT INTO slot (node) VALUES (?)').run(node);
    lock.exec('COMMIT');
    const release = () => {
      if (lock.isOpen) lock.close();
    };
    return { index, dir, node, release };
  } catch (error) {
    lock.close();
    // The low byte; the others say more about the same.
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY) return undefined;
    throw error;
  }
}

/** Takes the first free slot of a data directory. */
export function takeFirstSlot(data_dir: string): Slot {
  for (let index = 0; index < limits.slots_max; index++) {
    const slot = takeSlot(data_dir, index);
    if (slot) return slot;
  }
  throw new Error(
    `All ${limits.slots_max} journal slots of ${data_dir} are taken; are that many gateways running on it?`,
  );
}

/** The other slots of the data directory, which may hold journals that nobody came back for. */
export function otherSlots(data_dir: string, own: number): number[] {
  const dir = join(data_dir, 'slots');
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((index) => index !== own)
    .sort((a, b) => a - b);
}
