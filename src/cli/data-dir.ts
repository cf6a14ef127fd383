import { randomBytes } from 'node:crypto';
import { accessSync, constants, linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { ConfigError } from '../config.ts';
import { limits } from '../limits.ts';

/**
 * Makes the data directory where it is missing, for this user alone; fails where it may not be written. From here on all files
 * that this process makes are for its user alone: the store, its log of changes and the journal are made by SQLite and Node in many places.
 */
export function prepareDataDir(data_dir: string): void {
  // A thread cannot set it, and has that of its process.
  if (isMainThread) process.umask(0o077);
  try {
    makeFolder(data_dir);
    accessSync(data_dir, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ELOOP' && code !== 'ENAMETOOLONG') throw error;
    throw new ConfigError(
      `${data_dir} cannot be created (${code}). Set GATEWAY_DATA_DIR to a folder that this user can create.`,
    );
  }
}

/** Makes a folder and those above it, one by one: Node's own way never ends where there can be none, as in `/proc`. */
function makeFolder(path: string): void {
  const above = dirname(path);
  if (above !== path && statSync(above, { throwIfNoEntry: false }) === undefined) makeFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const is_there = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
    if (!is_there) throw error;
  }
}

/**
 * The secret that stored credentials are encrypted with, where `GATEWAY_SECRET` names none: made at the first start,
 * readable for this user alone. Processes that start together get the same one.
 */
export function secretOf(data_dir: string): string {
  const file = join(data_dir, 'secret');
  const own = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    return readSecret(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  try {
    writeFileSync(own, randomBytes(32).toString('hex'), { mode: 0o600, flag: 'wx', flush: true });
    // A link is never made over an existing file, and shows the file only when it is whole.
    linkSync(own, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(own, { force: true });
  }
  return readSecret(file);
}

function readSecret(file: string): string {
  const secret = readFileSync(file, 'utf8').trim();
  if (secret.length < limits.management_key_chars_min) {
    throw new Error(
      `${file} does not contain a secret of ${limits.management_key_chars_min} characters or more. Restore it from a backup, ` +
        'or remove it: stored BYOK credentials can then no longer be read.',
    );
  }
  return secret;
}
