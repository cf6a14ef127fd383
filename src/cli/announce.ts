import type { Config } from '../config.ts';
import { limits } from '../limits.ts';
import type { Logger } from '../telemetry/log.ts';

/** Shows the management key, once in its life, as soon as there is one: nobody can read it again, whatever comes next. */
export function announceKey(management_key: string): void {
  process.stdout.write(`\n  Management key (shown only this once):\n\n    ${management_key}\n\n`);
}

/** Says where the gateway is, and what its configuration lacks. */
export function announce(config: Config, url: string, log: Logger): void {
  for (const warning of config.warnings) log.warn(warning);
  log.info({ url, providers: config.providers.map(({ slug }) => slug), sandbox: config.sandbox }, 'serving');
}

/**
 * Runs `stop` at the first SIGTERM or SIGINT, then ends the process; a second signal ends it at once, unless it is the
 * first one's echo. What it gives back ends the process in the same order, as failed.
 */
export function onceSignalled(stop: (reason: string) => Promise<void>): (reason: string) => void {
  let first_ms: number | undefined;
  const end = (reason: string, code: number) =>
    void stop(reason).then(
      () => process.exit(code),
      (error) => {
        process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
        process.exit(1);
      },
    );
  const handle = (signal: NodeJS.Signals) => {
    const now = performance.now();
    if (first_ms !== undefined) {
      if (now - first_ms > limits.signal_echo_ms) process.exit(1);
      return;
    }
    first_ms = now;
    end(signal, 0);
  };
  process.on('SIGTERM', handle);
  process.on('SIGINT', handle);
  return (reason) => {
    if (first_ms !== undefined) return;
    first_ms = performance.now();
    end(reason, 1);
  };
}
