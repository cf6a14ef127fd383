import cluster from 'node:cluster';
import { flushCompileCache } from 'node:module';
import { type Config, configPath, type Environment, findConfigFile, loadConfig } from '../config.ts';
import { createLog, standardOutput } from '../telemetry/log.ts';
import { announce, announceFirst, onceSignalled } from './announce.ts';
import { warnOfExpiry } from './expiring-models.ts';
import { followConfig } from './follow-config.ts';
import { giveBackMemory } from './give-back-memory.ts';
import { createReloader, tellReload } from './reload.ts';
import { readableOutput } from './terminal-log.ts';
import { serveWorkers, workerSide } from './workers.ts';

export interface ServeOptions {
  /** How many processes share the work; each is a node of its own. */
  workers: number;
  config_file?: string | undefined;
  /** Whether SIGHUP came before this gateway could listen for it; asked once, when it can. */
  hasReloadSignal(): boolean;
}

/** Runs a gateway until a signal ends it: in this process, or in several workers of it. */
export async function serve(environment: Environment, options: ServeOptions): Promise<void> {
  const worker = cluster.isWorker ? workerSide() : undefined;
  // What the parent has checked, not what the file has become since.
  const found = worker ? (await worker.settings()).found : findConfigFile(environment, options.config_file);
  const config = loadConfig(environment, { found });
  const log = createLog(
    config.log_level,
    process.stdout.isTTY ? readableOutput(standardOutput(), { has_colours: process.stdout.hasColors() }) : undefined,
  );
  const { path } = configPath(environment, options.config_file);
  const file = { path, is_watched: config.config_watch };
  if (options.workers > 1 && cluster.isPrimary) {
    const { workers, hasReloadSignal } = options;
    await serveWorkers({ config, log, workers, environment, file, found, hasReloadSignal });
    return;
  }
  // The parent of workers never needs it.
  const { startGateway } = await import('./start-gateway.ts');
  const lost = Promise.withResolvers<Error>();
  let has_shown = false;
  const gateway = await startGateway({
    config: worker ? await worker.adapt(config) : config,
    log,
    metrics_source: worker?.metrics_source,
    share_port: worker !== undefined,
    onMetrics: worker?.count,
    onFirstKeys(keys, start) {
      announceFirst(config, keys, start);
      has_shown = true;
    },
    onStoreLost: lost.resolve,
    onBuilt: giveBackMemory,
  });
  if (worker) {
    worker.serving({ url: gateway.url, has_shown, warnings: gateway.warnings });
    worker.onReload(environment, log, gateway.replace);
  } else {
    announce(config, { url: gateway.url, has_shown, warnings: gateway.warnings }, log);
    const warnAnew = warnOfExpiry(config, log);
    const apply = (next: Config) => {
      tellReload(log, gateway.replace(next));
      warnAnew(next);
    };
    const reload = createReloader({ environment, path, found, log, apply });
    followConfig(file, reload);
    if (options.hasReloadSignal()) void reload('signal');
  }
  flushCompileCache();
  const fail = onceSignalled(async (reason) => {
    log.info({ reason }, 'draining');
    await gateway.stop();
    log.info('stopped');
  });
  void lost.promise.then((error) => {
    log.fatal(
      { err: error },
      'the embedded store is lost; draining and exiting, so that a supervisor can restart the process',
    );
    fail('store lost');
  });
}
