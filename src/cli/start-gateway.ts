import { mkdirSync } from 'node:fs';
import { AggregatorRegistry } from 'prom-client';
import type { MetricsSource } from '../api/operations/metrics.ts';
import { type App, createApp } from '../app.ts';
import { buildCatalog, type Catalog } from '../catalog/catalog.ts';
import { type Config, readBundledCatalog } from '../config.ts';
import type { Server } from '../http/server.ts';
import type { Clock } from '../inference/call.ts';
import { startRecorder } from '../ledger/recorder.ts';
import { anthropicModelQuirks } from '../providers/anthropic-messages/model-quirks.ts';
import { openDatabase } from '../storage/database.ts';
import { ledgerStore } from '../storage/ledger.ts';
import type { Logger } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { firstStart } from './first-start.ts';
import { withSandbox } from './with-sandbox.ts';

/** A gateway that serves. */
export interface Gateway {
  url: string;
  /** The management key that this start made; undefined when there was one already. */
  management_key: string | undefined;
  app: App;
  /** Drains, flushes the ledger, closes the store. */
  stop(): Promise<void>;
}

export interface GatewayOptions {
  config: Config;
  log: Logger;
  /** Where `/metrics` reads; by default this process's own registry. */
  metrics_source?: MetricsSource | undefined;
  clock?: Clock;
}

export const systemClock: Clock = { now_ms: Date.now, monotonic_ms: () => performance.now() };

/** The listener's own address, which tells the port when it was asked to take any. */
function urlOf(address: ReturnType<Server['addresses']>[number] | undefined, config: Config): string {
  if (address === undefined || typeof address === 'string') return `http://${config.host}:${config.port}`;
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${host}:${address.port}`;
}

/** The catalog of a configuration; models of the Anthropic wire bring what their names tell about them. */
export function catalogOf(config: Config): Catalog {
  return buildCatalog({
    bundled: readBundledCatalog(),
    config,
    providers: config.providers,
    created_default: config.loaded_at,
    modelQuirks: (wire, upstream_model) => (wire === 'anthropic-messages' ? anthropicModelQuirks(upstream_model) : {}),
  });
}

/** Opens the store, replays the journal, builds the service and listens. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { log, clock = systemClock } = options;
  const sandbox = options.config.sandbox ? await withSandbox(options.config) : undefined;
  const config = sandbox?.config ?? options.config;
  mkdirSync(config.data_dir, { recursive: true, mode: 0o700 });
  const database = await openDatabase({
    data_dir: config.data_dir,
    database_url: config.database_url,
    onConnectionLost: (error) => log.warn({ err: error }, 'a connection to the store broke'),
  });
  const { home, management_key } = await firstStart(config, database, clock);
  const recorder = await startRecorder({
    data_dir: config.data_dir,
    store: ledgerStore(database.queries),
    journal_sync: config.ledger.journal_sync,
    now: clock.now_ms,
    log,
  });
  const metrics = createMetrics();
  const own: MetricsSource = { content_type: metrics.registry.contentType, text: () => metrics.registry.metrics() };
  AggregatorRegistry.setRegistries(metrics.registry);
  const catalog = catalogOf(config);
  const app = await createApp({
    config,
    catalog,
    database,
    home,
    recorder,
    clock,
    log,
    metrics,
    metrics_source: options.metrics_source ?? own,
  });
  await app.server.listen({ host: config.host, port: config.port });
  const [address] = app.server.addresses();
  return {
    url: urlOf(address, config),
    management_key,
    app,
    async stop() {
      await app.drain();
      await recorder.stop();
      await database.close();
      await sandbox?.stop();
    },
  };
}
