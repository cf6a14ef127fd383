import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { ConfigError, type ConfigText, type Environment } from '../config.ts';

/** A larger file is read in a separate thread while the gateway serves: reading takes 0.6 s for each MB. */
export const CONFIG_INLINE_CHARS_MAX = 32 * 1024;

/** The request to the thread. */
export interface CheckRequest {
  environment: Environment;
  file: ConfigText;
}
/** The parsed file, or why it is invalid. */
export type CheckResult = { value: unknown } | { reason: string };

/**
 * Returns the file with its parsed value. Throws a `ConfigError` if it is invalid. A large file is parsed and checked in a
 * thread, so that streams continue meanwhile; a small one is returned unparsed, for the caller to load.
 */
export async function checkedFile(environment: Environment, file: ConfigText): Promise<ConfigText> {
  if (file.text.length <= CONFIG_INLINE_CHARS_MAX) return file;
  const workerData: CheckRequest = { environment: { ...environment }, file };
  const worker = new Worker(new URL('./check-config-thread.ts', import.meta.url), { workerData, execArgv: [] });
  const ended = once(worker, 'exit').then(() => {
    throw new Error('the thread that checks the configuration ended without an answer');
  });
  const [result] = (await Promise.race([once(worker, 'message'), ended])) as [CheckResult];
  if ('reason' in result) throw new ConfigError(result.reason);
  return { ...file, value: result.value };
}
