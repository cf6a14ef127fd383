import {
  closeSync,
  existsSync,
  fdatasync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { promisify } from 'node:util';

/** A file being written; opaque. */
export type OpenFile = number;

const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);

/** Whether a write failed for want of space. */
export function isDiskFull(error: unknown): boolean {
  return FULL.has((error as NodeJS.ErrnoException | undefined)?.code);
}

/** The disk, as the journal sees it: injected, so that a simulation can tear writes and take away what was not synced. */
export interface Disk {
  /** Names the machine's run, so that a start can tell a power loss from a crash. Empty where the system has no such id. */
  boot(): string;
  /** The files of a directory, in order. */
  names(dir: string): string[];
  describe(path: string): { bytes: number; modified_at: number };
  /** Of the disk that a directory is on: what this process may still write, and all; infinite where the system does not say. */
  space(dir: string): { free_bytes: number; total_bytes: number };
  /** Makes a file that is not there yet; throws where it is. */
  create(path: string): OpenFile;
  /** Opens a file that is there, to sync it. */
  reopen(path: string): OpenFile;
  /** Appends what stands from `from` on; how many bytes of it were taken. */
  write(file: OpenFile, bytes: Buffer, from: number): number;
  /** Resolves when everything written so far survives a power loss. */
  sync(file: OpenFile): Promise<void>;
  truncate(file: OpenFile, bytes: number): void;
  /** False: somebody took the file away. */
  isLinked(file: OpenFile): boolean;
  close(file: OpenFile): void;
  /** Undefined: there is no such file. */
  readNow(path: string): Buffer | undefined;
  /** As `readNow`, without holding anything else up. */
  read(path: string): Promise<Buffer | undefined>;
  /** False: there is no such file. */
  rename(from: string, to: string): boolean;
  /** Puts `text` where the file's content was, at once and durably. */
  replace(path: string, text: string): void;
  removeNow(path: string): void;
  remove(path: string): Promise<void>;
  /** Makes the names in a directory durable. */
  syncNames(dir: string): void;
}

const syncData = promisify(fdatasync);

/** Gives `undefined` for a file that is not there. */
function unlessAbsent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
  throw error;
}

const UNKNOWN_SPACE = { free_bytes: Number.POSITIVE_INFINITY, total_bytes: Number.POSITIVE_INFINITY };

/** The machine's own. */
export const nodeDisk: Disk = {
  boot: () => {
    try {
      return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    } catch {
      return '';
    }
  },
  names: (dir) => readdirSync(dir).sort(),
  describe: (path) => {
    const { size, mtimeMs } = statSync(path);
    return { bytes: size, modified_at: mtimeMs };
  },
  space: (dir) => {
    try {
      const { bavail, blocks, bsize } = statfsSync(dir);
      return { free_bytes: bavail * bsize, total_bytes: blocks * bsize };
    } catch {
      return UNKNOWN_SPACE;
    }
  },
  create: (path) => openSync(path, 'ax'),
  reopen: (path) => openSync(path, 'r+'),
  write: writeSync,
  sync: syncData,
  truncate: ftruncateSync,
  isLinked: (file) => fstatSync(file).nlink > 0,
  close: closeSync,
  readNow: (path) => (existsSync(path) ? readFileSync(path) : undefined),
  read: (path) => readFile(path).catch(unlessAbsent),
  rename: (from, to) => {
    try {
      renameSync(from, to);
      return true;
    } catch (error) {
      unlessAbsent(error);
      return false;
    }
  },
  replace: (path, text) => {
    writeFileSync(`${path}.new`, text, { flush: true });
    renameSync(`${path}.new`, path);
  },
  removeNow: (path) => rmSync(path, { force: true }),
  remove: (path) => rm(path, { force: true }),
  syncNames: (dir) => {
    const fd = openSync(dir, 'r');
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  },
};
