import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { DATABASE_FILE } from '../storage/database.ts';
import type { Logger } from '../telemetry/log.ts';

/** The bits of the file mode that give other users access. */
const OF_OTHERS = 0o077;

/** The gateway's files in its data directory. The directory itself and other files in it may belong to others. */
const KEPT = [DATABASE_FILE, `${DATABASE_FILE}-wal`, `${DATABASE_FILE}-shm`, 'changes', 'secret', 'slots'];

function modeOf(path: string): { mode: number; isFolder: boolean } | undefined {
  try {
    const stats = lstatSync(path);
    const isKnownKind = stats.isFile() || stats.isDirectory();
    return isKnownKind ? { mode: stats.mode & 0o7777, isFolder: stats.isDirectory() } : undefined;
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

/** The gateway's files that other users of this machine may read or write. None on Windows, which has no such modes. */
export function exposedFiles(dataDir: string): { path: string; mode: number }[] {
  return process.platform === 'win32' ? [] : KEPT.flatMap((name) => exposedBelow(join(dataDir, name)));
}

/** Removes the permissions of other users that former versions, or a copy, have set. Logs what was changed and what could not be. */
export function closeDataDir(dataDir: string, log: Pick<Logger, 'warn'>): void {
  const closed: string[] = [];
  for (const { path, mode } of exposedFiles(dataDir)) {
    const file = relative(dataDir, path);
    try {
      chmodSync(path, mode & ~OF_OTHERS);
      closed.push(file);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Another process of the gateway has just removed it.
      if (code !== 'ENOENT')
        log.warn(
          { data_dir: dataDir, file, code },
          "other users of this machine can read this file; make the gateway's user its owner, or remove the permissions of others",
        );
    }
  }
  if (closed.length === 0) return;
  const facts = { data_dir: dataDir, files: closed.length, first: closed.slice(0, 5) };
  log.warn(facts, 'other users of this machine could read files of the data directory; their permissions were removed');
}
