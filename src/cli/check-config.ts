import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { ConfigError, type Environment, type FoundFile } from '../config.ts';
import { limits } from '../limits.ts';

/** What the thread is given, and what it answers: what the file holds, or what is wrong with it. */
export interface CheckOrder {
  environment: Environment;
  found: FoundFile;
}
export type CheckAnswer = { value: unknown } | { reason: string };

/**
 * The file with what it holds, checked; throws a `ConfigError` for a wrong one. A large file is read and checked by a thread, so
 * that streams go on meanwhile; a small one is left to who loads it.
 */
export async function checkedFile(environment: Environment, found: FoundFile): Promise<FoundFile> {
  if (found.text.length <= limits.config_inline_chars_max) return found;
  const workerData: CheckOrder = { environment: { ...environment }, found };
  const worker = new Worker(new URL('./check-config-thread.ts', import.meta.url), { workerData, execArgv: [] });
  const ended = once(worker, 'exit').then(() => {
    throw new Error('the thread that checks the configuration ended without an answer');
  });
  const [answer] = (await Promise.race([once(worker, 'message'), ended])) as [CheckAnswer];
  if ('reason' in answer) throw new ConfigError(answer.reason);
  return { ...found, value: answer.value };
}
