import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { startGateway } from './harness.ts';
import type { StoreVariant } from './ledger/store-variants.ts';
import { inTier } from './tier.ts';

const MAIN = join(import.meta.dirname, '..', 'src', 'main.ts');

interface RunOptions {
  env?: NodeJS.ProcessEnv;
  cwd?: string;
}

/** The output and the exit code of a program. */
interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * Runs the program with arguments: in the second tier as a process of its own, otherwise in this process, which is ten
 * times as fast.
 */
export const runProgram: (args: readonly string[], options?: RunOptions) => Promise<Ended> = inTier(runHere, runApart);

async function runApart(args: readonly string[], { env, cwd }: RunOptions = {}): Promise<Ended> {
  try {
    const done = await promisify(execFile)(process.execPath, [MAIN, ...args], {
      env: { ...process.env, ...env },
      ...(cwd === undefined ? {} : { cwd }),
    });
    return { code: 0, ...done };
  } catch (error) {
    return error as Ended;
  }
}

let runs = 0;
let last: Promise<unknown> = Promise.resolve();

/** One after the other, because they share the process. */
function runHere(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const ended = last.then(() => runNow(args, options));
  last = ended.catch(() => undefined);
  return ended;
}

/** The address of the main module's server. */
const WATCHED_EVENTS: readonly (readonly [NodeJS.EventEmitter, string])[] = [
  [process, 'unhandledRejection'],
  [process, 'uncaughtException'],
  [process.stdout, 'error'],
  [process.stderr, 'error'],
];

async function runNow(args: readonly string[], { env, cwd }: RunOptions): Promise<Ended> {
  const { argv, env: environment, exit, exitCode, stdout, stderr } = process;
  const folder = process.cwd();
  const writes = [stdout.write, stderr.write] as const;
  const listeners = WATCHED_EVENTS.map(([emitter, event]) => emitter.listeners(event));
  const ended: Ended = { code: 0, stdout: '', stderr: '' };
  const into = (name: 'stdout' | 'stderr') => (text: string | Uint8Array) => {
    ended[name] += String(text);
    return true;
  };
  try {
    process.argv = [process.execPath, MAIN, ...args];
    process.env = { ...environment, ...env };
    if (cwd !== undefined) process.chdir(cwd);
    stdout.write = into('stdout') as typeof stdout.write;
    stderr.write = into('stderr') as typeof stderr.write;
    process.exit = ((code: number) => {
      ended.code = code;
    }) as typeof process.exit;
    // Its main module is loaded again each time; all others stay loaded.
    await import(`${pathToFileURL(MAIN).href}?run=${++runs}`);
    return ended;
  } finally {
    [stdout.write, stderr.write] = writes;
    WATCHED_EVENTS.forEach(([emitter, event], i) => {
      const added = emitter.listeners(event).filter((listener) => !listeners[i]!.includes(listener));
      for (const listener of added) emitter.removeListener(event, listener as () => void);
    });
    process.chdir(folder);
    Object.assign(process, { argv, env: environment, exit, exitCode });
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
