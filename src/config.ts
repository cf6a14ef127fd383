import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { type BundledCatalog, parseBundledCatalog } from './catalog/bundled.ts';
import type { DeclaredModel } from './catalog/catalog.ts';
import { withSpeechModels } from './catalog/speech-models.ts';
import { withVectorModels } from './catalog/vector-models.ts';
import { type AuthConfig, readAuth } from './config/auth.ts';
import { ConfigError, didYouMean, readEach } from './config/config-error.ts';
import { effectiveSettings } from './config/effective.ts';
import { type ConfigFile, fileSettings } from './config/file-schema.ts';
import { type FirstKeysConfig, readFirstKeys } from './config/first-keys.ts';
import { type GuardrailsConfig, readGuardrails } from './config/guardrails.ts';
import { type HttpConfig, readHttp } from './config/http.ts';
import { type LedgerConfig, readLedger } from './config/ledger.ts';
import { type LoggingConfig, readLogging } from './config/logging.ts';
import { type MetricsConfig, readMetrics } from './config/metrics.ts';
import { modelWarnings, priceWarnings, variantWarnings } from './config/model-warnings.ts';
import { declaredModels } from './config/models.ts';
import { type PluginsConfig, readPlugins } from './config/plugins.ts';
import { type Environment, type ProviderOff, resolveProviders, variable } from './config/providers.ts';
import { readProxies } from './config/proxy.ts';
import { rateWarnings, readRateRules } from './config/rate-limits.ts';
import { type ReadFile, readConfigFile } from './config/read-file.ts';
import { readVariable } from './config/read-variable.ts';
import { type RetentionConfig, readRetention } from './config/retention.ts';
import { type RoutingConfig, routingConfig } from './config/routing.ts';
import { fileVariable } from './config/secret-files.ts';
import { type Filled, filled } from './config/settings/declare.ts';
import type { logLevels } from './config/settings/service.ts';
import { variables } from './config/settings/variables.ts';
import { limits } from './limits.ts';
import type { Provider } from './providers/provider.ts';
import { providerRows } from './providers/table.ts';
import type { MediaRules } from './providers/transport/fetch-media.ts';
import type { ProxyRules } from './providers/transport/proxy.ts';
import type { RateRules } from './schemas/rate-limit.ts';
import type { EffectiveSetting } from './schemas/system.ts';

export type { Environment };
export { ConfigError };

/** A section of the file whose settings have fixed names. */
type SectionName = Exclude<keyof typeof fileSettings, 'bundled_catalog' | 'providers' | 'models'>;
/** The settings of a section, with their defaults. */
type Values<Name extends SectionName> = Filled<(typeof fileSettings)[Name]['settings']>;
type LogLevel = (typeof logLevels)[number];
type Timeouts = Record<keyof (typeof fileSettings.timeouts)['settings'], number>;

/** All settings of the environment and the file, checked. It holds secrets: `cli/described-config.ts` prints it without them. */
export interface Config {
  host: string;
  port: number;
  /** Absolute path. */
  data_dir: string;
  database_url: string | undefined;
  /** The server itself, if `database_url` is that of a pooler. */
  listen_url: string | undefined;
  /** Connections of a process to PostgreSQL, beside the one for notifications. */
  database_connections: number;
  /** Absolute path of the file that was read. */
  config_file: string | undefined;
  /** Whether the file is read again when it changes. */
  config_watch: boolean;
  management_key: string | undefined;
  first_keys: FirstKeysConfig;
  secret: string | undefined;
  body_bytes_max: number;
  http: HttpConfig;
  /** The proxies for providers and services; undefined if there are none. Their addresses can contain passwords. */
  proxies: ProxyRules | undefined;
  metrics: MetricsConfig;
  /** Bounds of each process; without a setting, `memory_bytes` depends on the heap. */
  limits: Values<'limits'> & { memory_bytes: number };
  log_level: LogLevel;
  /** The model of requests that name none. */
  default_model: string | undefined;
  /** Whether the console is served at `/`. */
  console: boolean;
  /** Whether the sandbox is served: on request, or if no provider is on. */
  sandbox: boolean;
  bundled_catalog: boolean;
  /** Providers that are on. */
  providers: readonly Provider[];
  /** Providers that are enabled for organizations with a credential of their own. */
  providers_own_only: readonly Provider[];
  providers_off: readonly ProviderOff[];
  models: readonly DeclaredModel[];
  timeouts: Timeouts;
  ledger: LedgerConfig;
  /** How long old data is kept. */
  retention: RetentionConfig;
  routing: RoutingConfig;
  /** Deviations from the API for clients that expect something else. */
  compatibility: Values<'compatibility'>;
  auth: AuthConfig;
  /** Whether API keys may make authorization codes for applications. */
  codes_by_api_key: boolean;
  /** How filters of content are applied. */
  guardrails: GuardrailsConfig;
  /** Settings of plugins and server tools. */
  plugins: PluginsConfig;
  /** The addresses from which linked media may be fetched. */
  media: MediaRules & { buckets: readonly string[] };
  /** How parts of conversations are kept that clients do not send back: encrypted in the store, by each process, or not at all. */
  reasoning_state: Values<'reasoning_state'>;
  /** Whether responses are stored whose requests say so, and for how many days. */
  responses: Values<'responses'>;
  /** How long requests and answers are kept, and where calls are sent, for workspaces that enable it. */
  logging: LoggingConfig;
  /** Probes of endpoints without calls, and their daily budget; null if there are none. */
  probes: Values<'probes'> | null;
  /** Limits of requests and tokens per minute. */
  rate_limits: RateRules;
  /** Unix seconds. */
  loaded_at: number;
  /** Settings that cannot work as intended. They are logged at the start and shown by `doctor`. */
  warnings: readonly string[];
  /** Every declared setting with its value and source, for people: without any secret. */
  settings: readonly EffectiveSetting[];
}

/** The version in package.json. */
export function gatewayVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

/** The environment of this process; nothing else reads it. */
export function processEnvironment(): Environment {
  return process.env;
}

/** Builds the configuration from the environment and the YAML file; throws a `ConfigError` that lists every fault and its place. */
export function loadConfig(
  environment: Environment,
  options: {
    config_file?: string | undefined;
    /** The file, if it was opened before; null if there is none. */
    config_file_content?: ConfigText | null;
  } = {},
): Config {
  const file =
    options.config_file_content === undefined
      ? findConfigFile(environment, options.config_file)
      : options.config_file_content;
  const read = file ? readConfigFile(file.path, file.text, file.value) : undefined;
  try {
    return buildConfig(environment, read, file?.path);
  } catch (error) {
    if (!(error instanceof ConfigError) || read === undefined) throw error;
    throw new ConfigError([...error.faults, ...faultsOf(environment, read)], { cause: error });
  }
}

/** The faults of all sections of a file, each read separately. */
function faultsOf(environment: Environment, read: ReadFile): readonly string[] {
  const slugs = new Set([...providerRows.map(({ slug }) => slug), ...Object.keys(read.value.providers ?? {})]);
  try {
    readEach<unknown>([
      () => resolveProviders(environment, read),
      () => declaredModels(read, slugs, read.value.bundled_catalog ?? true),
      () => readLedger(read, timeoutsOf(environment, read.value.timeouts).upstream_total_ms_max),
      () => readRetention(read),
      () => readAuth(environment, read),
      () => readLogging(environment, read),
      () => readRateRules(read),
      () => readPlugins(environment, read),
      () => readHttp(read),
      () => readMetrics(environment, read, '127.0.0.1'),
      () => readGuardrails(environment, read),
      () => routingConfig(read),
    ]);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

function buildConfig(environment: Environment, read: ReadFile | undefined, configFile: string | undefined): Config {
  const providers = resolveProviders(environment, read);
  const named = read?.value.providers ?? {};
  const slugs = new Set([...providers.on, ...providers.off].map(({ slug }) => slug));
  const bundledCatalog = read?.value.bundled_catalog ?? true;
  const models = read ? declaredModels(read, slugs, bundledCatalog) : [];
  const timeouts = timeoutsOf(environment, read?.value.timeouts);
  const ledger = readLedger(read, timeouts.upstream_total_ms_max);
  const { unknown_price } = ledger;
  const { auth, warnings: authWarnings } = readAuth(environment, read);
  const { logging, warnings: loggingWarnings } = readLogging(environment, read);
  const rateLimits = readRateRules(read);
  const { plugins, warnings: pluginWarnings } = readPlugins(environment, read);
  const { host, port } = listenAddress(environment);
  const sandbox = readVariable(environment, 'GATEWAY_SANDBOX');
  const file = read?.value;
  return {
    host,
    port,
    data_dir: resolve(readVariable(environment, 'GATEWAY_DATA_DIR')),
    database_url: databaseUrl(environment, 'DATABASE_URL'),
    listen_url: listenUrl(environment),
    database_connections: filled(fileSettings.database, file?.database).connections,
    config_file: configFile,
    config_watch: readVariable(environment, 'GATEWAY_CONFIG_WATCH') === 'on',
    management_key: readVariable(environment, 'GATEWAY_MANAGEMENT_KEY'),
    first_keys: readFirstKeys(environment),
    secret: readVariable(environment, 'GATEWAY_SECRET'),
    body_bytes_max: readVariable(environment, 'GATEWAY_BODY_BYTES_MAX'),
    http: readHttp(read),
    proxies: readProxies(environment),
    metrics: readMetrics(environment, read, host),
    limits: processLimits(file?.limits),
    log_level: readVariable(environment, 'GATEWAY_LOG_LEVEL') ?? filled(fileSettings.logging, file?.logging).level,
    default_model: readVariable(environment, 'GATEWAY_DEFAULT_MODEL'),
    console: readVariable(environment, 'GATEWAY_CONSOLE') === 'on',
    sandbox: sandbox === 'on' || (sandbox === 'auto' && providers.on.length === 0),
    bundled_catalog: bundledCatalog,
    providers: providers.on,
    providers_own_only: providers.own_only,
    providers_off: providers.off,
    models,
    timeouts,
    ledger,
    retention: readRetention(read),
    routing: routingConfig(read),
    compatibility: filled(fileSettings.compatibility, file?.compatibility),
    auth,
    codes_by_api_key: filled(fileSettings.auth, file?.auth).codes_by_api_key === 'on',
    guardrails: readGuardrails(environment, read),
    plugins,
    media: mediaRules(filled(fileSettings.media, file?.media)),
    reasoning_state: filled(fileSettings.reasoning_state, file?.reasoning_state),
    responses: filled(fileSettings.responses, file?.responses),
    logging,
    probes: file?.probes === undefined ? null : filled(fileSettings.probes, file?.probes),
    rate_limits: rateLimits,
    loaded_at: Math.floor(Date.now() / 1000),
    warnings: [
      ...unknownSettings(environment),
      ...secretWarnings(environment),
      ...authWarnings,
      ...loggingWarnings,
      ...providers.warnings,
      ...pluginWarnings,
      ...priceWarnings(models),
      ...(models.length === 0
        ? []
        : modelWarnings(models, providers.on, {
            bundled: bundledCatalog ? readBundledCatalog() : { format: 1, models: [] },
            allow_unpriced: unknown_price === 'allow',
          })),
      ...(rateLimits.models.size === 0
        ? []
        : rateWarnings(
            rateLimits,
            new Set([...models, ...(bundledCatalog ? readBundledCatalog().models : [])].map(({ id }) => id)),
          )),
      ...(Object.values(named).every(({ variants }) => variants === undefined)
        ? []
        : variantWarnings(named, readBundledCatalog())),
    ],
    settings: effectiveSettings(environment, file),
  };
}

/** Where a gateway with this environment listens. */
export function listenAddress(environment: Environment): { host: string; port: number } {
  return { host: readVariable(environment, 'GATEWAY_HOST'), port: readVariable(environment, 'GATEWAY_PORT') };
}

/** The model facts that come with the program. */
export function readBundledCatalog(): BundledCatalog {
  const text = readFileSync(new URL('../catalog/models.json', import.meta.url), 'utf8');
  return withVectorModels(withSpeechModels(parseBundledCatalog(text)));
}

/** A configuration file as it was read. */
export interface ConfigText {
  path: string;
  text: string;
  /** The parsed content, if the file was read and checked before. */
  value?: unknown;
}

/** Where the configuration file is, or would be. */
export function configPath(environment: Environment, option?: string): { path: string; is_named: boolean } {
  const named = option ?? readVariable(environment, 'GATEWAY_CONFIG');
  return { path: resolve(named ?? './gateway.yaml'), is_named: named !== undefined };
}

/** The configuration file, or null if none is named and there is none at the default path; throws a `ConfigError` if it cannot be read. */
export function findConfigFile(environment: Environment, option?: string): ConfigText | null {
  const { path, is_named } = configPath(environment, option);
  return !is_named && !existsSync(path) ? null : openConfigFile(path);
}

/** The file at this path; throws a `ConfigError` if it cannot be read. */
export function openConfigFile(path: string): ConfigText {
  try {
    return { path, text: readFileSync(path, 'utf8') };
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ConfigError(`The configuration file ${path} cannot be read (${code ?? 'unknown error'})`, { cause });
  }
}

function databaseUrl(environment: Environment, name: 'DATABASE_URL' | 'DATABASE_LISTEN_URL'): string | undefined {
  const value = readVariable(environment, name);
  if (value !== undefined && !/^postgres(ql)?:\/\//.test(value)) {
    const otherwise = name === 'DATABASE_URL' ? '; leave it unset for the embedded store' : '';
    throw new ConfigError(`${name} must start with postgres:// or postgresql://${otherwise}`);
  }
  return value;
}

function listenUrl(environment: Environment): string | undefined {
  const value = databaseUrl(environment, 'DATABASE_LISTEN_URL');
  if (value !== undefined && readVariable(environment, 'DATABASE_URL') === undefined) {
    throw new ConfigError('DATABASE_LISTEN_URL is set but DATABASE_URL is not: set both, or neither');
  }
  return value;
}

/** Variables that only orchestrators set: Kubernetes, Nomad and Amazon ECS. */
const orchestrators = [
  'KUBERNETES_SERVICE_HOST',
  'NOMAD_ALLOC_ID',
  'ECS_CONTAINER_METADATA_URI',
  'ECS_CONTAINER_METADATA_URI_V4',
] as const;

function timeoutsOf(environment: Environment, section: ConfigFile['timeouts']): Timeouts {
  const isOrchestrated = orchestrators.some((name) => variable(environment, name) !== undefined);
  const { shutdown_grace_ms = isOrchestrated ? limits.shutdown_grace_ms : 0, ...rest } = filled(
    fileSettings.timeouts,
    section,
  );
  return { ...rest, shutdown_grace_ms };
}

function processLimits(section: ConfigFile['limits']): Config['limits'] {
  const { memory_bytes = Math.floor(getHeapStatistics().heap_size_limit * limits.memory_heap_share_max), ...rest } =
    filled(fileSettings.limits, section);
  return { ...rest, memory_bytes };
}

function mediaRules({ ports, private_hosts, buckets }: Values<'media'>): Config['media'] {
  return { ports, private_hosts: private_hosts.map((host) => host.toLowerCase()), buckets };
}

/** Nodes of one fleet must read each other's credentials. */
function secretWarnings(environment: Environment): string[] {
  const alone =
    readVariable(environment, 'DATABASE_URL') === undefined ||
    readVariable(environment, 'GATEWAY_SECRET') !== undefined;
  return alone
    ? []
    : [
        'DATABASE_URL is set but GATEWAY_SECRET is not: other nodes cannot read the provider credentials that this node stores, and its pages work on this node only. Set the same GATEWAY_SECRET on all nodes',
      ];
}

/** Holds an API key in the examples of the documentation, often in the shell that starts the gateway. It is not a setting. */
const EXAMPLE_VARIABLE = 'GATEWAY_KEY';

function unknownSettings(environment: Environment): string[] {
  const known = Object.keys(variables).flatMap((name) => [name, fileVariable(name) ?? name]);
  return Object.keys(environment)
    .filter((name) => name.startsWith('GATEWAY_') && name !== EXAMPLE_VARIABLE && !known.includes(name))
    .map((name) => `${name} is not a known setting${didYouMean(name, known)}`);
}
