import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';
import { nodeDisk } from './disk.ts';

/**
 * A folder for one node's journal, locked by this process. The lock ends with the process, and not while the process is
 * paused: it is an SQLite file that is kept open in exclusive mode, since Node itself cannot lock files.
 */
export interface Slot {
  index: number;
  dir: string;
  /** The node id of the slot, created with it. */
  node: string;
  /** May be called more than once. */
  release(): void;
}

// https://www.sqlite.org/rescode.html#busy
const SQLITE_BUSY = 5;

/** The folder of one slot of a data directory. */
export function slotDir(dataDir: string, index: number): string {
  return join(dataDir, 'slots', String(index));
}

/** Makes the names of newly created folders durable, from `dir` up to `top`. */
function syncNamesUpTo(top: string, dir: string): void {
  for (let created = dir; created !== top; created = dirname(created)) nodeDisk.syncNames(dirname(created));
}

/** Takes one slot; undefined if another process (or another node of this one) holds it. */
export function takeSlot(dataDir: string, index: number): Slot | undefined {
  const dir = slotDir(dataDir, index);
  const firstCreated = mkdirSync(dir, { recursive: true });
  // The journal syncs its own names; without these, a power loss could take its whole folder.
  if (firstCreated !== undefined) syncNamesUpTo(dirname(firstCreated), dir);
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
    // The low byte; the others give details of the same error.
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY) return undefined;
    throw error;
  }
}

/** Takes the first free slot of a data directory. Throws if all are taken. */
export function takeFirstSlot(dataDir: string): Slot {
  for (let index = 0; index < limits.slots_max; index++) {
    const slot = takeSlot(dataDir, index);
    if (slot) return slot;
  }
  throw new Error(
    `All ${limits.slots_max} journal slots of ${dataDir} are taken; are that many gateways running on it?`,
  );
}

/** The other slots of the data directory, which may have journals that nobody has replayed. */
export function otherSlots(dataDir: string, own: number): number[] {
  const dir = join(dataDir, 'slots');
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((index) => index !== own)
    .sort((a, b) => a - b);
}
