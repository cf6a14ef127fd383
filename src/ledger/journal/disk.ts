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

/** The descriptor of an open file; opaque. */
export type OpenFile = number;

const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);

/** Whether a write failed because the disk or the quota is full. */
export function isDiskFull(error: unknown): boolean {
  return FULL.has((error as NodeJS.ErrnoException | undefined)?.code);
}

/** The disk of the journal: injected, so that a simulation can tear writes and drop what was not synced. */
export interface Disk {
  /** Identifies the machine's boot, so that a start can distinguish a power loss from a crash. Empty if the system has no such id. */
  boot(): string;
  /** The names of a directory's files, sorted. */
  names(dir: string): string[];
  describe(path: string): { bytes: number; modified_at: number };
  /** Space of a directory's disk: what this process may still write, and the total; infinite if the system does not say. */
  space(dir: string): { free_bytes: number; total_bytes: number };
  /** Creates a file; throws if it exists. */
  create(path: string): OpenFile;
  /** Opens an existing file, to sync it. */
  reopen(path: string): OpenFile;
  /** Appends the bytes from `from` on; returns how many were written. */
  write(file: OpenFile, bytes: Buffer, from: number): number;
  /** Resolves when everything written so far survives a power loss. */
  sync(file: OpenFile): Promise<void>;
  truncate(file: OpenFile, bytes: number): void;
  /** False if the file was deleted. */
  isLinked(file: OpenFile): boolean;
  close(file: OpenFile): void;
  /** The file's content; undefined if there is no such file. */
  readNow(path: string): Buffer | undefined;
  /** As `readNow`, without blocking. */
  read(path: string): Promise<Buffer | undefined>;
  /** False if there is no such file. */
  rename(from: string, to: string): boolean;
  /** Replaces a file's content atomically and durably. */
  replace(path: string, text: string): void;
  removeNow(path: string): void;
  remove(path: string): Promise<void>;
  /** Makes the names in a directory durable. */
  syncNames(dir: string): void;
}

const syncData = promisify(fdatasync);

/** Undefined if the error says that the file does not exist; throws it otherwise. */
function unlessAbsent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
  throw error;
}

const UNKNOWN_SPACE = { free_bytes: Number.POSITIVE_INFINITY, total_bytes: Number.POSITIVE_INFINITY };

/** The disk of this machine. */
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
