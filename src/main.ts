import { type Command, UsageError } from './cli/command.ts';
import { ConfigError, gatewayVersion, processEnvironment } from './config.ts';

const USAGE = `Usage: model-gateway COMMAND [options]

  serve      run the gateway (the default command)
  doctor     print what is configured and what will not work, without secrets
  explain    show where a running gateway would send a request, and why
  users      members of the organization: add, set, remove, list
  keys       API keys and management keys: create, list, disable, revoke
  credits    how much the organization may spend in all: grant, revoke, show
  ledger     limits and spending: verify, status, release, resolve
  console    print a link that signs you in to the console
  health     check whether a running gateway is ready
  backup     copy the embedded store of a running gateway
  catalog    rebuild the bundled model facts: refresh
  sandbox    run the simulated provider as a server of its own
  demo       run a gateway on a month of invented traffic, to look around

  --version  print the version

'model-gateway COMMAND --help' lists the options of each.
Settings come from the environment (README.md) and gateway.yaml (docs/guides/configuration.md).
Exit codes: 0 for success, 1 for a failure, 2 for wrong arguments.
`;

// Each command loads only what it needs.
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./cli/serve-command.ts')).serveCommand,
  doctor: async () => (await import('./cli/doctor.ts')).doctorCommand,
  explain: async () => (await import('./cli/explain.ts')).explainCommand,
  users: async () => (await import('./cli/users.ts')).usersCommand,
  keys: async () => (await import('./cli/keys.ts')).keysCommand,
  credits: async () => (await import('./cli/credits.ts')).creditsCommand,
  ledger: async () => (await import('./cli/ledger.ts')).ledgerCommand,
  console: async () => (await import('./cli/console.ts')).consoleCommand,
  health: async () => (await import('./cli/health.ts')).healthCommand,
  backup: async () => (await import('./cli/backup.ts')).backupCommand,
  catalog: async () => (await import('./cli/catalog-refresh.ts')).catalogCommand,
  sandbox: async () => (await import('./cli/sandbox.ts')).sandboxCommand,
  demo: async () => (await import('./cli/demo.ts')).demoCommand,
  // For `npm ci`, not for people.
  'warm-up': async () => (await import('./cli/warm-up.ts')).warmUpCommand,
};

const HELP = new Set(['--help', '-h']);

/** Runs one command. Returns its exit code, or -1 if it keeps running. */
async function main(words: string[]): Promise<number> {
  const [first, ...others] = words;
  if (first === '--version') {
    process.stdout.write(`${gatewayVersion()}\n`);
    return 0;
  }
  if (first !== undefined && (HELP.has(first) || first === 'help')) {
    process.stdout.write(USAGE);
    return 0;
  }
  const isNamed = first !== undefined && !first.startsWith('-');
  const [name, args] = isNamed ? [first, others] : ['serve', words];
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) {
    const { didYouMean } = await import('./config/config-error.ts');
    process.stderr.write(`There is no command '${name}'${didYouMean(name, Object.keys(COMMANDS))}\n\n${USAGE}`);
    return 2;
  }
  const { usage, run } = await load();
  if (args.some((word) => HELP.has(word))) {
    process.stdout.write(usage);
    return 0;
  }
  try {
    return await run(args, processEnvironment());
  } catch (error) {
    if (!(error instanceof UsageError)) {
      process.stderr.write(`${failureText(error)}\n`);
      return 1;
    }
    const message = `${error.message}\nRun 'model-gateway ${name} --help' for its options.\n`;
    process.stderr.write(error.message === '' ? usage : message);
    return 2;
  }
}

const INTERNAL_FAULTS = [TypeError, ReferenceError, RangeError, SyntaxError, EvalError];

/** The message of a failed command for an operator; the stack only if the program is at fault. */
function failureText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, path } = error as NodeJS.ErrnoException;
  if (error instanceof ConfigError) return error.message;
  switch (code) {
    case 'EADDRINUSE':
      return `The address is in use by another process (${error.message}). Set GATEWAY_PORT to another port, or start with --port.`;
    case 'EADDRNOTAVAIL':
      return `This machine does not have the address (${error.message}). Set GATEWAY_HOST to one that it has.`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The address cannot be found (${error.message}). Set GATEWAY_HOST to an address of this machine.`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return path === undefined
        ? `This user may not listen on the address (${error.message}). Set GATEWAY_PORT to a port above 1023.`
        : `This user may not write ${path} (${code}). Set GATEWAY_DATA_DIR to a folder that this user may write.`;
    case 'ENOTDIR':
    case 'EEXIST':
      return `${path ?? error.message} cannot be used as a folder (${code}). Set GATEWAY_DATA_DIR to a folder.`;
    default:
      return INTERNAL_FAULTS.some((kind) => error instanceof kind) ? (error.stack ?? error.message) : error.message;
  }
}

// A failure to write to standard error must not become an uncaught exception, which would be written there again and again.
process.stderr.on('error', () => {});

// A fault that escapes everything else is logged and does not end the process: other requests are running.
for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
  process.on(event, (reason: unknown) => {
    process.stderr.write(`${event}: ${reason instanceof Error ? reason.stack : String(reason)}\n`);
  });
}

const code = await main(process.argv.slice(2));
if (code === 0) process.exitCode = code;
// A worker that failed to start still has the channel to its parent, which would keep it alive.
if (code > 0) process.exit(code);
