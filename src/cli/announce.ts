import type { Config } from '../config.ts';
import type { Logger } from '../telemetry/log.ts';

/** Says where the gateway is, and, once in its life, the management key. */
export function announce(
  config: Config,
  { url, management_key }: { url: string; management_key: string | undefined },
  log: Logger,
): void {
  for (const warning of config.warnings) log.warn(warning);
  log.info({ url, providers: config.providers.map(({ slug }) => slug), sandbox: config.sandbox }, 'serving');
  if (management_key === undefined) return;
  process.stdout.write(
    `\n  Management key (shown only this once):\n\n    ${management_key}\n\n` +
      `  It makes API keys: curl ${url}/api/v1/keys -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" -d '{"name":"first"}'\n\n`,
  );
}

/** Runs `stop` at the first SIGTERM or SIGINT, then ends the process; a second signal ends it at once. */
export function onceSignalled(stop: (signal: string) => Promise<void>): void {
  let stopping = false;
  const handle = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1);
    stopping = true;
    stop(signal).then(
      () => process.exit(0),
      (error) => {
        process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', handle);
  process.on('SIGINT', handle);
}
