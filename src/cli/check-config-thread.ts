/** The thread that reads and checks a large configuration file (`check-config.ts`). */
import { parentPort, workerData } from 'node:worker_threads';
import { readConfigFile } from '../config/read-file.ts';
import { ConfigError, loadConfig } from '../config.ts';
import type { CheckAnswer, CheckOrder } from './check-config.ts';

function answer({ environment, found }: CheckOrder): CheckAnswer {
  try {
    const { value } = readConfigFile(found.path, found.text);
    loadConfig(environment, { found: { ...found, value } });
    return { value };
  } catch (error) {
    if (error instanceof ConfigError) return { reason: error.message };
    throw error;
  }
}

parentPort?.postMessage(answer(workerData as CheckOrder));
