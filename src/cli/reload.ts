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
  proxies: 'fixed',
  listen_url: 'fixed',
  database_connections: { needs_restart: 'database.connections' },
  config_file: 'fixed',
  config_watch: 'fixed',
  management_key: 'fixed',
  first_keys: 'fixed',
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

/** The configuration that is in force once `next` replaces `running`, as far as it can while the gateway runs. */
export function takeOver(running: Config, next: Config): { config: Config } & Omit<Reloaded, 'changes'> {
  const names = Object.keys(settings) as (keyof Config)[];
  const live = names.filter((name) => settings[name] === 'live');
  const differ = (name: keyof Config) => !isDeepStrictEqual(running[name], next[name]);
  const needsRestart = names.flatMap((name) => {
    const fate = settings[name];
    return typeof fate === 'object' && differ(name) ? [fate.needs_restart] : [];
  });
  return {
    config: {
      ...running,
      // Unchanged values keep their identity, so that nothing is rebuilt from them.
      ...Object.fromEntries(live.map((name) => [name, differ(name) ? next[name] : running[name]])),
    },
    settings: beside_catalog.filter(differ),
    needs_restart: needsRestart,
    warnings: next.warnings.filter((warning) => !running.warnings.includes(warning)),
  };
}

/** Logs the result of a reload. */
export function logReload(log: Logger, { changes, settings, needs_restart, warnings }: Reloaded): void {
  const lines = changes.slice(0, limits.reload_lines_max).map(changeLine);
  const more = changes.length - lines.length;
  log.info(
    { ...changeCounts(changes), changes: more === 0 ? lines : [...lines, `and ${more} more`], settings },
    changes.length + settings.length === 0
      ? 'the configuration was read again; it is the same'
      : 'the configuration was reloaded',
  );
  if (needs_restart.length > 0) {
    log.warn({ needs_restart }, 'these settings changed, but keep their previous values until a restart');
  }
  for (const warning of warnings) log.warn(warning);
}

/** Why the configuration is read again. */
export type ReloadCause = 'file' | 'signal';

export interface ReloaderOptions {
  environment: Environment;
  path: string;
  /** The file in force; null: none. */
  configFile: FoundFile | null;
  log: Logger;
  /** Puts a checked configuration in force. If it throws, nothing has changed. */
  apply(config: Config, configFile: FoundFile | null): void;
}

/**
 * Returns a function that reads the configuration again and puts it in force. If it is invalid, or if the file was deleted (an
 * editor may be at work), nothing changes and the log says why. One read runs at a time; calls during it cause one further read.
 */
export function createReloader(options: ReloaderOptions): (cause: ReloadCause) => Promise<void> {
  const { environment, path, log } = options;
  let current = options.configFile;
  let isRefused = false;
  let isReading = false;
  let pending: ReloadCause | undefined;
  const read = async (cause: ReloadCause) => {
    try {
      // Without a file there is still the bundled catalog to read again.
      const file = current === null && cause === 'signal' ? openIfThere(path) : openConfigFile(path);
      if (cause === 'file' && file?.text === current?.text) {
        if (isRefused)
          log.info({ config_file: path }, 'the configuration file is the same again as the configuration in force');
        isRefused = false;
        return;
      }
      const checked = file === null ? null : await checkedFile(environment, file);
      options.apply(loadConfig(environment, { found: checked }), checked);
      current = file;
      isRefused = false;
    } catch (error) {
      isRefused = true;
      const details = error instanceof ConfigError ? { reason: error.message } : { err: error };
      log.error(
        { config_file: path, ...details },
        'the configuration cannot be reloaded; the previous one stays in force',
      );
    }
  };
  return async (cause) => {
    // A signal causes more than a changed file does.
    if (pending !== 'signal') pending = cause;
    if (isReading) return;
    isReading = true;
    while (pending !== undefined) {
      const next: ReloadCause = pending;
      pending = undefined;
      await read(next);
    }
    isReading = false;
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
