import { accessSync, constants, readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { buildCatalog, type Catalog } from '../catalog/catalog.ts';
import { type Config, type Environment, loadConfig, readBundledCatalog } from '../config.ts';
import { DATABASE_FILE } from '../storage/database.ts';
import { storeFault } from '../storage/store-fault.ts';
import { exposedFiles } from './data-dir-modes.ts';
import { describeConfig } from './described-config.ts';
import { unservedNames } from './unserved-names.ts';

/** What the doctor found outside the configuration. */
export interface Findings {
  catalog: Catalog;
  /** What is to be said of it. */
  data_dir: string;
  /** Files in it that other users of the machine may read. */
  exposed: readonly string[];
}

/** What is configured and what will not work, as text, without any secret. */
export function doctor(config: Config, { catalog, data_dir, exposed }: Findings): string {
  const counts = Map.groupBy(catalog.endpoints(), ({ provider }) => provider);
  const unpriced = catalog
    .endpoints()
    .filter(({ pricing }) => pricing.prompt === undefined || pricing.completion === undefined);
  return [
    ...describeConfig(config).flatMap(({ title, rows }) => [title, ...table(rows), '']),
    `Data directory: ${data_dir}`,
    '',
    `Providers that are on:${config.providers.length === 0 ? ' none' : ''}`,
    ...table(
      config.providers.map(({ slug, name, dialect, base_url, credential }) => [
        slug,
        `${name}, ${dialect}, ${URL.parse(base_url)?.host ?? '?'}, ${credential === undefined ? 'without' : 'with'} credential, ` +
          `${counts.get(slug)?.length ?? 0} endpoints`,
      ]),
    ),
    '',
    'Providers that are off:',
    ...table(config.providers_off.map(({ slug, reason }) => [slug, reason])),
    '',
    `Models: ${catalog.models().length}, with ${catalog.endpoints().length} endpoints` +
      `${unpriced.length === 0 ? '' : `, ${unpriced.length} of them without a known price`}`,
    ...(config.sandbox ? ['The sandbox is served: its models are sandbox/echo and others.'] : []),
    ...unservedNames(config, catalog).map((warning) => `Warning: ${warning}`),
    ...config.warnings.map((warning) => `Warning: ${warning}`),
    ...(exposed.length === 0
      ? []
      : [
          `Warning: other users of this machine may read ${exposed.length} files of the data directory, such as ${exposed[0]}; the next start of the gateway takes their rights`,
        ]),
    '',
  ].join('\n');
}

function table(rows: (readonly [string, string])[]): string[] {
  const width = Math.max(0, ...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
}

/** The command `doctor`. Gives the exit code; throws a `ConfigError` when the configuration is wrong. */
export async function runDoctor(args: string[], environment: Environment): Promise<number> {
  const { values } = parseArgs({ args, options: { config: { type: 'string' } } });
  const config = loadConfig(environment, values.config === undefined ? {} : { config_file: values.config });
  const catalog = buildCatalog({
    bundled: readBundledCatalog(),
    config,
    providers: config.providers,
    created_default: config.loaded_at,
  });
  const exposed = exposedFiles(config.data_dir).map(({ path }) => path);
  process.stdout.write(doctor(config, { catalog, data_dir: await stateOf(config), exposed }));
  return 0;
}

async function stateOf({ data_dir: path, database_url }: Config): Promise<string> {
  try {
    const entries = readdirSync(path);
    accessSync(path, constants.W_OK);
    if (entries.length === 0) return 'empty';
    if (database_url !== undefined) return 'in use';
    if (!entries.includes(DATABASE_FILE)) return 'not empty, and without a store yet';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'not there yet' : 'not writable';
  }
  const fault = await storeFault(path);
  return fault === undefined ? 'in use' : `not usable. ${fault}`;
}
