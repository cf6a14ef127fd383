import { parseArgs } from 'node:util';
import { keepTaskShape } from './cli/keep-task-shape.ts';
import { ConfigError, gatewayVersion, processEnvironment } from './config.ts';
import { limits } from './limits.ts';

const USAGE = `Usage: model-gateway COMMAND [options]

  serve [--workers N] [--config FILE]   run the gateway (the default command)
  doctor [--config FILE]                print what is configured, without secrets
  users add|set|list                    members of the organization
  keys create|list|disable              API keys and management keys
  credits grant|revoke|show             what the organization may spend in all
  ledger verify|status|release|resolve  budgets and what was spent, put to the test
  health [--live]                       ask a running gateway whether it is ready; exit code 0 or 1
  backup FILE                           copy the embedded store of a running gateway
  catalog refresh --from URL|FILE       rebuild the bundled model facts
  sandbox [--port N]                    run the simulated upstream alone
  --version                             print the version

COMMAND --help tells what users, keys, credits, ledger, catalog, health and sandbox take.
Settings come from the environment (README.md) and gateway.yaml (docs/guides/configuration.md).
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
  const hasReloadSignal = (await import('./cli/follow-config.ts')).holdReloadSignal();
  keepTaskShape();
  const { serve } = await import('./cli/serve.ts');
  await serve(processEnvironment(), { workers, config_file: values.config, hasReloadSignal });
  return -1;
}

// Each command loads only what it needs.
const COMMANDS: Readonly<Record<string, (args: string[]) => Promise<number>>> = {
  serve: runServe,
  doctor: async (args) => (await import('./cli/doctor.ts')).runDoctor(args, processEnvironment()),
  users: async (args) => (await import('./cli/users.ts')).runUsers(args, processEnvironment()),
  keys: async (args) => (await import('./cli/keys.ts')).runKeys(args, processEnvironment()),
  credits: async (args) => (await import('./cli/credits.ts')).runCredits(args, processEnvironment()),
  ledger: async (args) => (await import('./cli/ledger.ts')).runLedger(args, processEnvironment()),
  health: async (args) => (await import('./cli/health.ts')).runHealth(args, processEnvironment()),
  backup: async (args) => (await import('./cli/backup.ts')).runBackup(args, processEnvironment()),
  catalog: async (args) => (await import('./cli/catalog-refresh.ts')).runCatalogRefresh(args, processEnvironment()),
  sandbox: async (args) => (await import('./cli/sandbox.ts')).runSandbox(args),
  // For `npm ci`, not for people.
  'warm-up': async () => (await import('./cli/warm-up.ts')).runWarmUp(),
};

/** Commands with a text of their own for `--help`. */
const EXPLAINED_BY_THEMSELVES: ReadonlySet<string> = new Set([
  'users',
  'keys',
  'credits',
  'ledger',
  'catalog',
  'health',
  'sandbox',
]);

/** Runs one command. Gives its exit code, or -1 when it goes on by itself. */
async function main(given: string[]): Promise<number> {
  const named = given[0] !== undefined && (!given[0].startsWith('-') || ['--help', '-h'].includes(given[0]));
  const [name = 'serve', ...args] = named ? given : ['serve', ...given];
  if (given[0] === '--version') {
    process.stdout.write(`${gatewayVersion()}\n`);
    return 0;
  }
  const asked = !EXPLAINED_BY_THEMSELVES.has(name) && args.some((word) => word === '--help' || word === '-h');
  if (['help', '--help', '-h'].includes(name) || (asked && COMMANDS[name] !== undefined)) {
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
    process.stderr.write(`${failureText(error)}\n`);
    return 1;
  }
}

const FAULTS_OF_OURS = [TypeError, ReferenceError, RangeError, SyntaxError, EvalError];

/** What an operator needs to know of a command that failed: a sentence; the stack only where the program is at fault. */
function failureText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, path } = error as NodeJS.ErrnoException;
  if (error instanceof ConfigError || code?.startsWith('ERR_PARSE_ARGS')) return error.message;
  switch (code) {
    case 'EADDRINUSE':
      return `The address is in use by another process (${error.message}). Set GATEWAY_PORT to another port.`;
    case 'EADDRNOTAVAIL':
      return `This machine does not have the address (${error.message}). Set GATEWAY_HOST to one that it has.`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The address cannot be found (${error.message}). Set GATEWAY_HOST to an address of this machine.`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return path === undefined
        ? `The address may not be listened on (${error.message}). Set GATEWAY_PORT to a port above 1023.`
        : `${path} may not be written by this user (${code}). Set GATEWAY_DATA_DIR to a folder that may.`;
    case 'ENOTDIR':
    case 'EEXIST':
      return `${path ?? error.message} cannot be a folder (${code}). Set GATEWAY_DATA_DIR to a folder.`;
    default:
      return FAULTS_OF_OURS.some((kind) => error instanceof kind) ? (error.stack ?? error.message) : error.message;
  }
}

// Where it cannot be written either, that is no fault to be told there: it would be told for ever, and nobody served meanwhile.
process.stderr.on('error', () => {});

// A fault that escapes everything else is told and does not end the process: other requests are under way.
for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
  process.on(event, (reason: unknown) => {
    process.stderr.write(`${event}: ${reason instanceof Error ? reason.stack : String(reason)}\n`);
  });
}

const code = await main(process.argv.slice(2));
if (code === 0) process.exitCode = code;
// A worker that failed to start still has its parent's channel, which would keep it.
if (code > 0) process.exit(code);
