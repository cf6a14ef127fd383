/** The thread that reads and checks a large configuration file (`check-config.ts`). */
import { parentPort, workerData } from 'node:worker_threads';
import { readConfigFile } from '../config/read-file.ts';
import { ConfigError, loadConfig } from '../config.ts';
import type { CheckRequest, CheckResult } from './check-config.ts';

function check({ environment, file }: CheckRequest): CheckResult {
  try {
    const { value } = readConfigFile(file.path, file.text);
    loadConfig(environment, { config_file_content: { ...file, value } });
    return { value };
  } catch (error) {
    if (error instanceof ConfigError) return { reason: error.message };
    throw error;
  }
}

parentPort?.postMessage(check(workerData as CheckRequest));
