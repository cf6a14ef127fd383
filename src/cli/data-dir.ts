import { accessSync, constants, mkdirSync } from 'node:fs';

/** Makes the data directory where it is missing, for this user alone; fails where it may not be written. */
export function prepareDataDir(data_dir: string): void {
  mkdirSync(data_dir, { recursive: true, mode: 0o700 });
  accessSync(data_dir, constants.W_OK | constants.X_OK);
}
