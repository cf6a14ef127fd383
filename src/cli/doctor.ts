import { accessSync, constants, readdirSync } from 'node:fs';
import { buildCatalog, type Catalog } from '../catalog/catalog.ts';
import { usdPerMillion } from '../catalog/price.ts';
import { type Config, loadConfig, readBundledCatalog } from '../config.ts';
import type { DataPolicy } from '../providers/provider.ts';
import { DATABASE_FILE } from '../storage/database.ts';
import { storeFault } from '../storage/store-fault.ts';
import type { CheckedProvider } from './check-providers.ts';
import { type Command, common, printJson, readArguments } from './command.ts';
import { exposedFiles } from './data-dir-modes.ts';
import { describeConfig } from './described-config.ts';
import { unservedNames } from './unserved-names.ts';
import { addSandbox } from './with-sandbox.ts';

const usage = `Usage: model-gateway doctor [--check] [--json] [--config FILE]

Prints what is configured, which providers are on, and what will not work, without any secret. Ends with 1 if anything will not.
  --check  also sends each active provider one short request to one of its cheapest models. It costs a fraction of a cent
           and is not recorded by the gateway. A provider that does not answer is a fault
`;

/** The doctor's findings outside the configuration. */
export interface Findings {
  catalog: Catalog;
  /** The catalog with the sandbox's models, if the sandbox is on. */
  served?: Catalog;
  /** The state of the data directory. */
  data_dir: string;
  /** Files in it that other users of the machine may read. */
  exposed: readonly string[];
  /** The results of calling the providers; undefined if they were not called. */
  checked?: readonly CheckedProvider[];
}

/** What will not work, one sentence each. */
function faultsOf(config: Config, findings: Findings): string[] {
  const { catalog, served = catalog, data_dir, exposed, checked = [] } = findings;
  const failed = checked.flatMap(({ provider, failure }) =>
    failure === undefined ? [] : [`Provider "${provider}" does not answer: ${failure}`],
  );
  return [
    ...unservedNames(config, served),
    ...config.warnings,
    ...(data_dir.startsWith('not usable') || data_dir === 'not writable'
      ? [`The data directory ${config.data_dir} is ${data_dir}`]
      : []),
    ...(exposed.length === 0
      ? []
      : [
          `other users of this machine may read ${exposed.length} files of the data directory, such as ${exposed[0]}; the next start of the gateway removes their permissions`,
        ]),
    ...failed,
  ];
}

/** The data policy in the words of the guide. */
function dataPolicyText({ training, retention_days }: DataPolicy): string {
  const trains = training === 'unknown' ? training : training ? 'yes' : 'no';
  const kept = retention_days === 0 ? 'none' : retention_days === 'unknown' ? retention_days : `${retention_days} days`;
  return `training: ${trains}, retention: ${kept}`;
}

/** The report as text, without any secret. */
export function doctor(config: Config, findings: Findings): string {
  const { catalog, data_dir, checked } = findings;
  const faults = faultsOf(config, findings);
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
      config.providers.map(({ slug, name, dialect, base_url, credential, data_policy }) => [
        slug,
        `${name}, ${dialect}, ${URL.parse(base_url)?.host ?? '?'}, ${credential === undefined ? 'without' : 'with'} credential, ` +
          `${counts.get(slug)?.length ?? 0} endpoints, ${dataPolicyText(data_policy)}`,
      ]),
    ),
    '',
    'Providers that are off:',
    ...table(config.providers_off.map(({ slug, reason }) => [slug, reason])),
    '',
    `Models: ${catalog.models().length}, with ${catalog.endpoints().length} endpoints` +
      `${unpriced.length === 0 ? '' : `, ${unpriced.length} of them without a known price`}`,
    ...declaredPrices(config.models),
    ...(config.sandbox ? ['The sandbox is on, with models such as sandbox/echo.'] : []),
    ...(checked === undefined
      ? []
      : ['', `Providers that were called:${checked.length === 0 ? ' none is on' : ''}`, ...table(checked.map(rowOf))]),
    '',
    ...faults.map((fault) => `Warning: ${fault}`),
    faults.length === 0
      ? 'Nothing is wrong.'
      : `${faults.length} ${faults.length === 1 ? 'thing needs' : 'things need'} attention.`,
    '',
  ].join('\n');
}

/** The declared prices of tokens, all in one unit, so that a price in a wrong unit is noticed. */
function declaredPrices(models: Config['models']): string[] {
  const rows = models.flatMap(({ id, endpoints = [] }) =>
    endpoints.flatMap(({ provider, variant, pricing }): (readonly [string, string])[] => {
      if (pricing === undefined) return [];
      const prices = (['prompt', 'completion'] as const).map((name) => {
        const pico = pricing[name];
        return `${name} ${pico === undefined ? 'unknown' : `$${usdPerMillion(pico)}`}`;
      });
      return [[`${id} at ${provider}${variant === undefined ? '' : `/${variant}`}`, prices.join(', ')]];
    }),
  );
  return rows.length === 0 ? [] : ['', 'Declared prices, in USD per million tokens:', ...table(rows), ''];
}

function rowOf({ provider, model, ms, cost, failure, skipped }: CheckedProvider): [string, string] {
  if (skipped !== undefined) return [provider, `not called: ${skipped}`];
  if (failure !== undefined) return [provider, `FAILS: ${model}: ${failure}`];
  return [provider, `answers: ${model} in ${ms} ms${cost === undefined ? '' : `, $${cost}`}`];
}

function table(rows: (readonly [string, string])[]): string[] {
  const width = Math.max(0, ...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
}

/** The report as JSON, for programs. */
function describedForPrograms(config: Config, findings: Findings) {
  const { catalog, data_dir, checked } = findings;
  return {
    settings: Object.fromEntries(describeConfig(config).map(({ title, rows }) => [title, Object.fromEntries(rows)])),
    data_directory: data_dir,
    providers_on: config.providers.map(({ slug, name, dialect, credential }) => ({
      slug,
      name,
      dialect,
      has_credential: credential !== undefined,
      endpoints: catalog.endpoints().filter(({ provider }) => provider === slug).length,
    })),
    providers_off: config.providers_off,
    models: catalog.models().length,
    endpoints: catalog.endpoints().length,
    ...(checked === undefined ? {} : { checked }),
    faults: faultsOf(config, findings),
  };
}

function catalogFor(config: Config): Catalog {
  const { providers, loaded_at: createdDefault } = config;
  return buildCatalog({ bundled: readBundledCatalog(), config, providers, created_default: createdDefault });
}

/** `model-gateway doctor`. Throws a `ConfigError` if the configuration is invalid. */
export const doctorCommand: Command = {
  usage,
  async run(args, environment) {
    const { values } = readArguments({ args, options: { ...common, check: { type: 'boolean', default: false } } });
    const config = loadConfig(environment, { config_file: values.config });
    const findings: Findings = {
      catalog: catalogFor(config),
      served: catalogFor(config.sandbox ? addSandbox(config, 'http://127.0.0.1:9') : config),
      // Checked before the store is opened, which creates files beside it.
      exposed: exposedFiles(config.data_dir).map(({ path }) => path),
      data_dir: await stateOf(config),
      ...(values.check ? { checked: await (await import('./check-providers.ts')).checkProviders(config) } : {}),
    };
    if (values.json) printJson(describedForPrograms(config, findings));
    else process.stdout.write(doctor(config, findings));
    return faultsOf(config, findings).length === 0 ? 0 : 1;
  },
};

async function stateOf({ data_dir: path, database_url }: Config): Promise<string> {
  try {
    const entries = readdirSync(path);
    accessSync(path, constants.W_OK);
    if (entries.length === 0) return 'empty';
    if (database_url !== undefined) return 'in use';
    if (!entries.includes(DATABASE_FILE)) return 'not empty, but without a store yet';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'not created yet' : 'not writable';
  }
  const fault = await storeFault(path);
  return fault === undefined ? 'in use' : `not usable. ${fault}`;
}
