import { randomBytes } from 'node:crypto';
import { accessSync, constants, linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { ConfigError } from '../config.ts';
import { limits } from '../limits.ts';

/**
 * Creates the data directory if it is missing, for this user only. Throws if it is not writable. From here on, all files that
 * this process creates are for its user only: SQLite and Node create the store, its change mark and the journal in many places.
 */
export function prepareDataDir(dataDir: string): void {
  // A thread cannot set the umask, and has that of its process.
  if (isMainThread) process.umask(0o077);
  try {
    makeFolder(dataDir);
    accessSync(dataDir, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ELOOP' && code !== 'ENAMETOOLONG') throw error;
    throw new ConfigError(
      `${dataDir} cannot be created (${code}). Set GATEWAY_DATA_DIR to a folder that this user can create.`,
    );
  }
}

/** Creates a folder and its parents, one by one: Node's recursive mkdir never returns for some paths, as in `/proc`. */
function makeFolder(path: string): void {
  const above = dirname(path);
  if (above !== path && statSync(above, { throwIfNoEntry: false }) === undefined) makeFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const exists = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
    if (!exists) throw error;
  }
}

/**
 * The secret that encrypts stored credentials if `GATEWAY_SECRET` is not set: created at the first start, readable for this
 * user only. Processes that start together get the same one. Throws if the file does not contain a valid secret.
 */
export function secretOf(dataDir: string): string {
  const file = join(dataDir, 'secret');
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    return readSecret(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  try {
    writeFileSync(draft, randomBytes(32).toString('hex'), { mode: 0o600, flag: 'wx', flush: true });
    // A link never replaces an existing file, and the file appears complete.
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
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
