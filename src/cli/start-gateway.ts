import type { Registry } from 'prom-client';
import { createSignInPath } from '../api/auth/sign-in-code.ts';
import { createChange } from '../api/change.ts';
import type { MetricsSource } from '../api/operations/metrics.ts';
import { type ActiveConfiguration, type App, createApp } from '../app.ts';
import { buildCatalog, type Catalog } from '../catalog/catalog.ts';
import { type CatalogChange, catalogChanges } from '../catalog/changes.ts';
import { type Config, readBundledCatalog } from '../config.ts';
import { watchRules } from '../errors.ts';
import type { Server } from '../http/server.ts';
import type { Clock } from '../inference/call.ts';
import { createLookup } from '../inference/observe/lookup.ts';
import { realClock } from '../ledger/ledger-clock.ts';
import { startRecorder } from '../ledger/start-recorder.ts';
import { modelQuirks } from '../providers/shared/model-quirks.ts';
import { createServices } from '../providers/transport/services.ts';
import type { Actor } from '../storage/audit.ts';
import { openDatabase } from '../storage/database.ts';
import { ledgerStore, withTime } from '../storage/ledger.ts';
import { followRevocations } from '../storage/local-revocations.ts';
import { openChangeFeed } from '../storage/open-change-feed.ts';
import { verifyLedger } from '../storage/verify-ledger.ts';
import type { Logger } from '../telemetry/log.ts';
import { createMetrics, type Metrics } from '../telemetry/metrics.ts';
import { prepareDataDir, secretOf } from './data-dir.ts';
import { closeDataDir } from './data-dir-modes.ts';
import { exampleModel } from './example-model.ts';
import { type FirstKeys, firstHome, firstKeys } from './first-start.ts';
import { followLocalModels } from './local-models.ts';
import { type Reloaded, takeOver } from './reload.ts';
import { systemClock } from './system-clock.ts';
import { unservedModels } from './unserved-models.ts';
import { unservedNames } from './unserved-names.ts';
import { addSandbox, withSandbox } from './with-sandbox.ts';
import { databaseOf } from './with-store.ts';

/** The facts that a first start shows in addition to its keys. */
export interface FirstStart {
  url: string;
  /** A model that can be called; undefined if there is none. */
  model: string | undefined;
  /** The path of a one-time link to the console; undefined if people sign in at an issuer, or the output is no place for secrets. */
  sign_in_path: string | undefined;
}

/** A running gateway. */
export interface Gateway {
  url: string;
  app: App;
  /** What its configuration lacks. */
  warnings: readonly string[];
  /** Puts another configuration in force, as far as it can while the gateway runs. If it throws, nothing has changed. */
  replace(config: Config): Reloaded;
  /** Drains, flushes the ledger, closes the store. */
  stop(): Promise<void>;
}

export interface GatewayOptions {
  config: Config;
  log: Logger;
  /** The source of `/metrics`; by default this process's own registry. */
  metrics_source?: MetricsSource | undefined;
  clock?: Clock;
  /** Random numbers from 0 to 1 for routing. */
  chance?: (() => number) | undefined;
  /** Other processes listen on the same port. */
  share_port?: boolean | undefined;
  /** Called with the keys that this start created, once it listens and nothing can fail any more. */
  onFirstKeys?: ((keys: FirstKeys, start: FirstStart) => void) | undefined;
  /** Called with the registry of this process. */
  onMetrics?: ((registry: Registry) => void) | undefined;
  /** Called if the store is lost permanently: the gateway cannot become ready again and should end. */
  onStoreLost?: ((error: Error) => void) | undefined;
  /** Called when everything is built, before the first request can arrive. */
  onBuilt?: (() => void) | undefined;
}

/** Whether an endpoint has changed: itself, or its provider. */
function hasChanged(changes: readonly CatalogChange[]): (endpointId: string) => boolean {
  const names = (kind: CatalogChange['what']) =>
    new Set(changes.flatMap(({ what, name }) => (what === kind ? name : [])));
  const [providers, endpoints] = [names('provider'), names('endpoint')];
  return (id) => endpoints.has(id) || providers.has(/^[^/|]*/.exec(id)?.[0] ?? '');
}

/** The listener's actual address, which has the port if the configured one is 0. */
function urlOf(address: ReturnType<Server['addresses']>[number] | undefined, config: Config): string {
  if (address === undefined || typeof address === 'string') return `http://${config.host}:${config.port}`;
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${host}:${address.port}`;
}

/** The catalog of a configuration, with the quirks that the names of models imply. */
export function catalogOf(
  config: Config,
  providers = config.providers,
  bundled = readBundledCatalog(),
  more: Pick<Parameters<typeof buildCatalog>[0], 'unserved' | 'discovered'> = {},
): Catalog {
  return buildCatalog({
    bundled,
    config,
    providers,
    created_default: config.loaded_at,
    modelQuirks,
    ...more,
  });
}

/** The longest statement of a verification that a person waits for in the console. */
const VERIFY_MS_MAX = 60_000;

/** What a configuration serves, with the models that local servers list. */
function servedOf(config: Config, discovered: readonly string[]): ActiveConfiguration {
  let whole: Catalog | undefined;
  const bundled = readBundledCatalog();
  const more = { unserved: unservedModels(config, bundled), discovered };
  return {
    config,
    catalog: catalogOf(config, config.providers, bundled, more),
    wholeCatalog() {
      whole ??= catalogOf(config, [...config.providers, ...config.providers_own_only], bundled, more);
      return whole;
    },
  };
}

function logReach(log: Logger, { ledger }: Config, awayMs: number | undefined): void {
  const serveForS = ledger.serve_without_store_ms / 1000;
  if (awayMs !== undefined) log.info({ away_ms: Math.round(awayMs) }, 'the store answers again');
  else if (serveForS === 0) log.error('the store does not answer; requests are refused with 503 until it does');
  else
    log.error(
      { serve_for_s: serveForS },
      'the store does not answer; recently used keys are served for serve_for_s seconds',
    );
}

/** Counts broken rules of money and streams, and logs the first of each. */
function brokenRules(log: Logger, metrics: Pick<Metrics, 'brokenRule'>): Parameters<typeof watchRules>[0] {
  const logged = new Set<string>();
  return (rule, facts) => {
    metrics.brokenRule(rule);
    if (logged.has(rule)) return;
    logged.add(rule);
    log.error(
      { rule, ...facts },
      'a rule of money or streams is broken: a fault of the gateway; the money that was reserved stays reserved',
    );
  };
}

/** Opens the store, replays the journal, builds the service and listens. If the start fails, closes what it opened. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const opened = new AsyncDisposableStack();
  try {
    const { app, config, catalog, replace, makeFirstKeys, makeSignInPath } = await build(options, opened);
    const listeningUrl = () => urlOf(app.server.addresses()[0], config);
    options.onBuilt?.();
    // On Linux the kernel distributes connections to workers that each listen. Elsewhere the parent passes them on, and a
    // client whose connection is passed to a worker that dies waits for ever.
    const reusePort = options.share_port === true && process.platform === 'linux';
    await app.listen({ host: config.host, port: config.port, reusePort }, async () => {
      const keys = await makeFirstKeys();
      if (keys === undefined) return;
      const path = await makeSignInPath();
      options.onFirstKeys?.(keys, {
        url: listeningUrl(),
        model: exampleModel(config, catalog),
        sign_in_path: path,
      });
    });
    return {
      url: listeningUrl(),
      app,
      warnings: [...config.warnings, ...unservedNames(config, catalog)],
      replace,
      stop: () => opened.disposeAsync(),
    };
  } catch (error) {
    await opened
      .disposeAsync()
      .catch((err: unknown) => options.log.warn({ err }, 'some resources could not be closed'));
    throw error;
  }
}

/** Builds everything but the listener. What is opened goes onto the stack, so that it is closed in reverse order. */
async function build(
  options: GatewayOptions,
  opened: AsyncDisposableStack,
): Promise<
  Pick<Gateway, 'app' | 'replace'> & {
    config: Config;
    /** The catalog at the start. */
    catalog: Catalog;
    makeFirstKeys(): Promise<FirstKeys | undefined>;
    /** Undefined if a first start prints no link. */
    makeSignInPath(): Promise<string | undefined>;
  }
> {
  const { log, clock: machine = systemClock } = options;
  const sandbox = options.config.sandbox ? await withSandbox(options.config) : undefined;
  if (sandbox) opened.defer(() => sandbox.stop());
  const config = sandbox?.config ?? options.config;
  prepareDataDir(config.data_dir);
  closeDataDir(config.data_dir, log);
  const database = await openDatabase({
    data_dir: config.data_dir,
    ...databaseOf(config),
    clock: machine,
    onConnectionLost: (error) =>
      log.warn({ err: error }, 'a connection to the store broke; it is replaced when it is needed'),
    onReach: (awayMs) => logReach(log, config, awayMs),
    onSkew: (skewMs) =>
      log.warn(
        { skew_ms: Math.round(skewMs) },
        "the clock of this machine differs by more than two seconds from the store's, which is used; synchronize it with NTP",
      ),
    onLost: options.onStoreLost,
  });
  opened.defer(() => database.close());
  const { clock } = database;
  const home = await firstHome(database, clock);
  const changes = await openChangeFeed({
    data_dir: config.data_dir,
    database_url: config.listen_url ?? config.database_url,
    through: config.listen_url === undefined ? undefined : database.queries,
    is_restless: config.ledger.serve_without_store_ms > 0,
    onRefused: () => database.shedConnection(),
    onTime: (storeMs, sentMs) => clock.adjust(storeMs, sentMs),
    listens: true,
    onSilence: (reason) =>
      log.warn({ reason }, 'change feed disconnected; key cache bypassed, every request reads the store'),
    onReturn: () => log.info('change feed connected again; key cache in use'),
  });
  opened.defer(() => changes.stop());
  const services = createServices(config.proxies);
  opened.defer(() => services.close());
  let discovered: readonly string[] = [];
  let served = servedOf(config, discovered);
  const store = ledgerStore(database.queries, database.engine);
  const recorder = await startRecorder({
    data_dir: config.data_dir,
    store: database.engine === 'postgres' ? withTime(store, clock) : store,
    journal_sync: config.ledger.journal_sync,
    journal_keep: { ms: config.ledger.journal_keep_hours * 3_600_000, bytes: config.ledger.journal_keep_bytes },
    unknown_outcome: config.ledger.unknown_outcome,
    isStoreAway: () => !database.isReachable(),
    lookup: createLookup({ catalog: served.catalog, providers: config.providers, services }),
    // The recorder reads the store's time itself, and notices if the machine's clock is set.
    clock: realClock(machine.nowMs),
    log,
  });
  opened.defer(() => recorder.stop());
  const revocations = followRevocations(config.data_dir, (err) =>
    log.error({ err }, 'the list of keys revoked on this node cannot be read; keys read before stay revoked'),
  );
  opened.defer(() => revocations.stop());
  const metrics = createMetrics();
  opened.defer(watchRules(brokenRules(log, metrics)));
  const own: MetricsSource = { content_type: metrics.registry.contentType, text: () => metrics.registry.metrics() };
  options.onMetrics?.(metrics.registry);
  const app = await createApp({
    served: () => served,
    database,
    changes,
    home,
    secret: config.secret ?? secretOf(config.data_dir),
    recorder,
    async verify(signal) {
      const { data_dir } = config;
      const own = await openDatabase({
        data_dir,
        ...databaseOf(config),
        connections_max: 1,
        statement_ms_max: VERIFY_MS_MAX,
      });
      try {
        return await verifyLedger(own.queries, signal);
      } finally {
        await own.close();
      }
    },
    isRevokedHere: revocations.has,
    clock,
    chance: options.chance,
    log,
    metrics,
    metrics_source: options.metrics_source ?? own,
  });
  opened.defer(() => app.drain());
  const local = followLocalModels({
    providers: () => served.config.providers,
    log,
    onChange(ids) {
      discovered = ids;
      served = servedOf(served.config, ids);
    },
  });
  opened.defer(() => local.stop());
  return {
    app,
    config,
    catalog: served.catalog,
    makeFirstKeys: () => firstKeys(config, database, { home, clock }),
    async makeSignInPath() {
      if (!config.console || config.auth.issuer !== undefined || !config.first_keys.are_printed) return undefined;
      const { organization_id, owner_user_id: userId } = home;
      const actor: Actor = { organization_id, actor: 'command', key_hash: null, user_id: userId, request_id: null };
      const change = createChange({ database, changes, now: clock.nowMs });
      return change(actor, (work) => createSignInPath(work, { organization_id, user_id: userId }));
    },
    replace(next) {
      const adapted = sandbox === undefined ? next : addSandbox(next, sandbox.url);
      const taken = takeOver(served.config, adapted);
      const replaced = servedOf(taken.config, discovered);
      const changes = catalogChanges(served.catalog, replaced.catalog);
      const known = unservedNames(served.config, served.catalog);
      const unserved = unservedNames(replaced.config, replaced.catalog).filter((warning) => !known.includes(warning));
      // From here on the new configuration is in force.
      served = replaced;
      app.forgetFailures(hasChanged(changes));
      return { ...taken, changes, warnings: [...taken.warnings, ...unserved] };
    },
  };
}
