import { parseArgs } from 'node:util';
import { runBackup } from './cli/backup.ts';
import { runCatalogRefresh } from './cli/catalog-refresh.ts';
import { runDoctor } from './cli/doctor.ts';
import { runSandbox } from './cli/sandbox.ts';
import { serve } from './cli/serve.ts';
import { ConfigError, processEnvironment } from './config.ts';
import { limits } from './limits.ts';

const USAGE = `Usage: model-gateway COMMAND [options]

  serve [--workers N] [--config FILE]   run the gateway (the default command)
  doctor [--config FILE]                print what is configured, without secrets
  backup FILE                           copy the embedded store of a running gateway
  catalog refresh --from URL|FILE       rebuild the bundled model facts
  sandbox [--port N]                    run the simulated upstream alone

Settings come from the environment and gateway.yaml; README.md lists them.
`;

async function runServe(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { workers: { type: 'string', default: '1' }, config: { type: 'string' } },
  });
  const workers = Number(values.workers);
  if (!Number.isInteger(workers) || workers < 1 || workers > limits.workers_max) {
    process.stderr.write(`--workers takes a number from 1 to ${limits.workers_max}, not '${values.workers}'.\n`);
    return 2;
  }
  await serve(processEnvironment(), { workers, config_file: values.config });
  return -1;
}

const COMMANDS: Readonly<Record<string, (args: string[]) => Promise<number>>> = {
  serve: runServe,
  doctor: (args) => runDoctor(args, processEnvironment()),
  backup: (args) => runBackup(args, processEnvironment()),
  catalog: (args) => runCatalogRefresh(args),
  sandbox: runSandbox,
};

/** Runs one command. Gives its exit code, or -1 when it goes on by itself. */
async function main([name = 'serve', ...args]: string[]): Promise<number> {
  if (['help', '--help', '-h'].includes(name)) {
    process.stdout.write(USAGE);
    return 0;
  }
  const command = COMMANDS[name];
  if (command === undefined) {
    process.stderr.write(`There is no command '${name}'.\n\n${USAGE}`);
    return 2;
  }
  try {
    return await command(args);
  } catch (error) {
    const { code } = error as { code?: string };
    const told = error instanceof ConfigError || code?.startsWith('ERR_PARSE_ARGS') === true;
    process.stderr.write(`${told ? (error as Error).message : startFailure(error, code)}\n`);
    return 1;
  }
}

/** What an operator needs to know of a start that failed. */
function startFailure(error: unknown, code: string | undefined): string {
  if (code === 'EADDRINUSE')
    return `The address is in use by another process (${(error as Error).message}). Set GATEWAY_PORT to another port.`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

// A fault that escapes everything else is told and does not end the process: other requests are under way.
for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
  process.on(event, (reason: unknown) => {
    process.stderr.write(`${event}: ${reason instanceof Error ? reason.stack : String(reason)}\n`);
  });
}

const code = await main(process.argv.slice(2));
if (code >= 0) process.exitCode = code;
