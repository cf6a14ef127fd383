import { isDeepStrictEqual } from 'node:util';
import { type CatalogChange, changeCounts, changeLine } from '../catalog/changes.ts';
import { type Config, ConfigError, type Environment, type FoundFile, loadConfig, openConfigFile } from '../config.ts';
import { limits } from '../limits.ts';
import type { Logger } from '../telemetry/log.ts';
import { checkedFile } from './check-config.ts';

/**
 * What becomes of each setting when the file is read again. `live`: it is in force at once. A name: it needs a restart, and
 * is named in the log when it changed. `fixed`: it comes from the environment or the command line, which no reload changes.
 */
const settings: Record<keyof Config, 'live' | 'fixed' | { needs_restart: string }> = {
  bundled_catalog: 'live',
  providers: 'live',
  providers_own_only: 'live',
  providers_off: 'live',
  models: 'live',
  warnings: 'live',
  auth: { needs_restart: 'auth' },
  codes_by_api_key: 'live',
  timeouts: { needs_restart: 'timeouts' },
  ledger: { needs_restart: 'ledger' },
  routing: 'live',
  compatibility: 'live',
  plugins: 'live',
  guardrails: 'live',
  media: { needs_restart: 'media' },
  reasoning_state: { needs_restart: 'reasoning_state' },
  responses: { needs_restart: 'responses' },
  probes: { needs_restart: 'probes' },
  management_requests_per_minute: { needs_restart: 'limits.management_requests_per_minute' },
  rate_limits: 'live',
  http: { needs_restart: 'http' },
  metrics: { needs_restart: 'metrics' },
  memory_bytes_max: { needs_restart: 'limits.memory_bytes' },
  logging: { needs_restart: 'logging' },
  log_level: { needs_restart: 'logging.level' },
  host: 'fixed',
  port: 'fixed',
  data_dir: 'fixed',
  database_url: 'fixed',
  listen_url: 'fixed',
  database_connections: { needs_restart: 'database.connections' },
  config_file: 'fixed',
  config_watch: 'fixed',
  management_key: 'fixed',
  secret: 'fixed',
  body_bytes_max: 'fixed',
  default_model: 'fixed',
  // A model without a date is as old as the gateway's start, also where it came later: its age must not change.
  loaded_at: 'fixed',
  // Follows from the providers that are on; one that runs goes on, and none is started later.
  sandbox: 'fixed',
};

/** Live settings that no difference between catalogs tells of. */
const beside_catalog = [
  'routing',
  'compatibility',
  'rate_limits',
  'plugins',
  'guardrails',
  'codes_by_api_key',
] as const satisfies readonly (keyof Config)[];

/** What a reload did. */
export interface Reloaded {
  changes: readonly CatalogChange[];
  /** Settings beside the catalog that changed and are in force. */
  settings: readonly string[];
  /** Settings that changed and stay as they were until a restart. */
  needs_restart: readonly string[];
  /** Warnings that were not there before. */
  warnings: readonly string[];
}

/** The configuration that is in force once `next` is taken over while `running` runs. */
export function takeOver(running: Config, next: Config): { config: Config } & Omit<Reloaded, 'changes'> {
  const names = Object.keys(settings) as (keyof Config)[];
  const live = names.filter((name) => settings[name] === 'live');
  const differ = (name: keyof Config) => !isDeepStrictEqual(running[name], next[name]);
  const needs_restart = names.flatMap((name) => {
    const fate = settings[name];
    return typeof fate === 'object' && differ(name) ? [fate.needs_restart] : [];
  });
  return {
    config: {
      ...running,
      // What is the same stays the same object, so that nothing is made anew of it.
      ...Object.fromEntries(live.map((name) => [name, differ(name) ? next[name] : running[name]])),
    },
    settings: beside_catalog.filter(differ),
    needs_restart,
    warnings: next.warnings.filter((warning) => !running.warnings.includes(warning)),
  };
}

/** Tells in the log what a reload did. */
export function tellReload(log: Logger, { changes, settings, needs_restart, warnings }: Reloaded): void {
  const lines = changes.slice(0, limits.reload_lines_max).map(changeLine);
  const more = changes.length - lines.length;
  log.info(
    { ...changeCounts(changes), changes: more === 0 ? lines : [...lines, `and ${more} more`], settings },
    changes.length + settings.length === 0
      ? 'the configuration was read again; it is the same'
      : 'the configuration was reloaded',
  );
  if (needs_restart.length > 0) {
    log.warn({ needs_restart }, 'these settings have changed and stay as they were until a restart');
  }
  for (const warning of warnings) log.warn(warning);
}

/** Why the configuration is read again. */
export type ReloadCause = 'file' | 'signal';

export interface ReloaderOptions {
  environment: Environment;
  path: string;
  /** What is in force. */
  found: FoundFile | null;
  log: Logger;
  /** Puts a configuration in force that was checked. What it throws changes nothing. */
  apply(config: Config, found: FoundFile | null): void;
}

/**
 * Makes what reads the configuration again and puts it in force, or, where anything is wrong with it, changes nothing and
 * says what in the log. A file that was read once and is gone changes nothing either: an editor may be at work. One reading
 * goes on at a time; all that is asked for meanwhile is the next one.
 */
export function createReloader(options: ReloaderOptions): (cause: ReloadCause) => Promise<void> {
  const { environment, path, log } = options;
  let current = options.found;
  let is_refused = false;
  let is_reading = false;
  let wanted: ReloadCause | undefined;
  const read = async (cause: ReloadCause) => {
    try {
      // Without a file there is still the bundled catalog to read again.
      const found = current === null && cause === 'signal' ? openIfThere(path) : openConfigFile(path);
      if (cause === 'file' && found?.text === current?.text) {
        if (is_refused) log.info({ config_file: path }, 'the configuration file is again what is in force');
        is_refused = false;
        return;
      }
      const checked = found === null ? null : await checkedFile(environment, found);
      options.apply(loadConfig(environment, { found: checked }), checked);
      current = found;
      is_refused = false;
    } catch (error) {
      is_refused = true;
      const told = error instanceof ConfigError ? { reason: error.message } : { err: error };
      log.error({ config_file: path, ...told }, 'the configuration cannot be reloaded; nothing was changed');
    }
  };
  return async (cause) => {
    // A signal asks for more than the file.
    if (wanted !== 'signal') wanted = cause;
    if (is_reading) return;
    is_reading = true;
    while (wanted !== undefined) {
      const next: ReloadCause = wanted;
      wanted = undefined;
      await read(next);
    }
    is_reading = false;
  };
}

function openIfThere(path: string): FoundFile | null {
  try {
    return openConfigFile(path);
  } catch (error) {
    if ((error as { cause?: NodeJS.ErrnoException }).cause?.code === 'ENOENT') return null;
    throw error;
  }
}
