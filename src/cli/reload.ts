import { isDeepStrictEqual } from 'node:util';
import { type CatalogChange, changeCounts, changeLine } from '../catalog/changes.ts';
import { type FileField, fileFields } from '../config/file-schema.ts';
import { type Config, ConfigError, type ConfigText, type Environment, loadConfig, openConfigFile } from '../config.ts';
import type { Logger } from '../telemetry/log.ts';
import { checkedFile } from './check-config.ts';

/** The changes of one reload that the log lists. Further changes are counted. */
const RELOAD_LINES_MAX = 100;

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

/** The result of a reload. */
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
  const differ = (name: keyof Config) => !isDeepStrictEqual(running[name], next[name]);
  return {
    config: {
      ...running,
      // Unchanged values keep their identity, so that nothing is rebuilt from them.
      ...Object.fromEntries(live.map((name) => [name, differ(name) ? next[name] : running[name]])),
      settings: next.settings.map((setting, index) =>
        setting.takes_effect === 'at once' ? setting : (running.settings[index] ?? setting),
      ),
    },
    settings: live.filter((name) => !CATALOG_FIELDS.includes(name) && differ(name)),
    needs_restart: restart.filter(({ field }) => differ(field)).map(({ name }) => name),
    warnings: next.warnings.filter((warning) => !running.warnings.includes(warning)),
  };
}

/** Logs the result of a reload. */
export function logReload(log: Logger, { changes, settings, needs_restart, warnings }: Reloaded): void {
  const lines = changes.slice(0, RELOAD_LINES_MAX).map(changeLine);
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
  configFile: ConfigText | null;
  log: Logger;
  /** Puts a checked configuration in force. If it throws, nothing has changed. */
  apply(config: Config, configFile: ConfigText | null): void;
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
      options.apply(loadConfig(environment, { config_file_content: checked }), checked);
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

function openIfThere(path: string): ConfigText | null {
  try {
    return openConfigFile(path);
  } catch (error) {
    if ((error as { cause?: NodeJS.ErrnoException }).cause?.code === 'ENOENT') return null;
    throw error;
  }
}
