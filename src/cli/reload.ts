import { isDeepStrictEqual } from 'node:util';
import { type CatalogChange, changeCounts, changeLine } from '../catalog/changes.ts';
import { type FileField, fileFields } from '../config/file-schema.ts';
import { type Config, ConfigError, type Environment, type FoundFile, loadConfig, openConfigFile } from '../config.ts';
import { limits } from '../limits.ts';
import type { Logger } from '../telemetry/log.ts';
import { checkedFile } from './check-config.ts';

/** Fields of `Config` that follow from settings of several places. Those of the environment never change while the gateway runs. */
const LIVE_FIELDS = ['providers_own_only', 'providers_off', 'warnings'] as const satisfies readonly (keyof Config)[];
/** Live fields whose changes are reported as changes of the catalog. */
const CATALOG_FIELDS: readonly string[] = [...LIVE_FIELDS, 'bundled_catalog', 'providers', 'models'];

const fields = fileFields() as readonly (FileField & { field: keyof Config })[];
/** The fields that a reload applies. */
const live: readonly (keyof Config)[] = [
  ...LIVE_FIELDS,
  ...fields.filter(({ takesEffect }) => takesEffect === 'at once').map(({ field }) => field),
];
/** The fields whose changes are logged and apply at the next start. */
const restart = fields.filter(({ takesEffect }) => takesEffect === 'at the next start');

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
  const differ = (name: keyof Config) => !isDeepStrictEqual(running[name], next[name]);
  return {
    config: {
      ...running,
      // What is the same stays the same object, so that nothing is made anew of it.
      ...Object.fromEntries(live.map((name) => [name, differ(name) ? next[name] : running[name]])),
    },
    settings: live.filter((name) => !CATALOG_FIELDS.includes(name) && differ(name)),
    needs_restart: restart.filter(({ field }) => differ(field)).map(({ name }) => name),
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
    log.warn({ needs_restart }, 'these settings changed, but keep their previous values until a restart');
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
        if (is_refused)
          log.info({ config_file: path }, 'the configuration file is the same again as the configuration in force');
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
      log.error(
        { config_file: path, ...told },
        'the configuration cannot be reloaded; the previous one stays in force',
      );
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
