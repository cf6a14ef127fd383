import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { DATABASE_FILE } from '../storage/database.ts';
import type { Logger } from '../telemetry/log.ts';

/** Bits of the file mode that let other users of the machine in. */
const OF_OTHERS = 0o077;

/** What the gateway keeps in its data directory. The directory itself and other files in it may be somebody else's. */
const KEPT = [DATABASE_FILE, `${DATABASE_FILE}-wal`, `${DATABASE_FILE}-shm`, 'changes', 'secret', 'slots'];

function modeOf(path: string): { mode: number; isFolder: boolean } | undefined {
  try {
    const stats = lstatSync(path);
    const isOurs = stats.isFile() || stats.isDirectory();
    return isOurs ? { mode: stats.mode & 0o7777, isFolder: stats.isDirectory() } : undefined;
  } catch {
    return undefined;
  }
}

function exposedBelow(path: string): { path: string; mode: number }[] {
  const file = modeOf(path);
  if (file === undefined) return [];
  const own = (file.mode & OF_OTHERS) === 0 ? [] : [{ path, mode: file.mode }];
  return file.isFolder ? [...own, ...readdirSync(path).flatMap((name) => exposedBelow(join(path, name)))] : own;
}

/** What of the gateway's files other users of this machine may read or write. Windows has no such modes. */
export function exposedFiles(data_dir: string): { path: string; mode: number }[] {
  return process.platform === 'win32' ? [] : KEPT.flatMap((name) => exposedBelow(join(data_dir, name)));
}

/** Takes from other users of this machine what former versions, or a copy, let them read. */
export function closeDataDir(data_dir: string, log: Pick<Logger, 'warn'>): void {
  const closed: string[] = [];
  for (const { path, mode } of exposedFiles(data_dir)) {
    const file = relative(data_dir, path);
    try {
      chmodSync(path, mode & ~OF_OTHERS);
      closed.push(file);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Another process of the gateway has just removed it.
      if (code !== 'ENOENT')
        log.warn(
          { data_dir, file, code },
          "other users of this machine can read this file; make the gateway's user its owner, or remove the permissions of others",
        );
    }
  }
  if (closed.length === 0) return;
  const facts = { data_dir, files: closed.length, first: closed.slice(0, 5) };
  log.warn(facts, 'other users of this machine could read files of the data directory; their permissions were removed');
}
