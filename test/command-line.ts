import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startGateway } from './harness.ts';
import type { StoreVariant } from './store-variants.ts';

const MAIN = join(import.meta.dirname, '..', 'src', 'main.ts');

/** Runs the program with arguments; what it printed, and the code that it ended with. */
export async function runProgram(
  args: readonly string[],
  { env, cwd }: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  try {
    const done = await promisify(execFile)(process.execPath, [MAIN, ...args], {
      env: { ...process.env, ...env },
      ...(cwd === undefined ? {} : { cwd }),
    });
    return { code: 0, ...done };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

/** A running gateway, and `run` for commands on its store. */
export async function gatewayWithCommands({ freshUrl, yaml }: Pick<StoreVariant, 'freshUrl'> & { yaml?: string }) {
  const url = await freshUrl();
  const environment: Record<string, string> = url === undefined ? {} : { DATABASE_URL: url };
  const gateway = await startGateway({ environment, ...(yaml === undefined ? {} : { yaml }) });
  const env = { ...environment, GATEWAY_DATA_DIR: gateway.data_dir };
  const run = (...args: string[]) => runProgram(args, { env, cwd: gateway.data_dir });
  return { gateway, run, url };
}
