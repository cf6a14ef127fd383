import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { ConfigError, type Environment, type FoundFile } from '../config.ts';
import { limits } from '../limits.ts';

/** The request to the thread. */
export interface CheckRequest {
  environment: Environment;
  file: FoundFile;
}
/** The parsed file, or why it is invalid. */
export type CheckResult = { value: unknown } | { reason: string };

/**
 * Returns the file with its parsed value. Throws a `ConfigError` if it is invalid. A large file is parsed and checked in a
 * thread, so that streams continue meanwhile; a small one is returned unparsed, for the caller to load.
 */
export async function checkedFile(environment: Environment, file: FoundFile): Promise<FoundFile> {
  if (file.text.length <= limits.config_inline_chars_max) return file;
  const workerData: CheckRequest = { environment: { ...environment }, file };
  const worker = new Worker(new URL('./check-config-thread.ts', import.meta.url), { workerData, execArgv: [] });
  const ended = once(worker, 'exit').then(() => {
    throw new Error('the thread that checks the configuration ended without an answer');
  });
  const [result] = (await Promise.race([once(worker, 'message'), ended])) as [CheckResult];
  if ('reason' in result) throw new ConfigError(result.reason);
  return { ...file, value: result.value };
}
