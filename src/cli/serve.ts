import cluster from 'node:cluster';
import { flushCompileCache } from 'node:module';
import { type Config, configPath, type Environment, findConfigFile, loadConfig } from '../config.ts';
import { createLog, standardOutput } from '../telemetry/log.ts';
import { announce, announceFirst, onceSignalled } from './announce.ts';
import { warnOfExpiry } from './expiring-models.ts';
import { followConfig } from './follow-config.ts';
import { releaseStartMemory } from './release-start-memory.ts';
import { createReloader, logReload } from './reload.ts';
import { readableOutput } from './terminal-log.ts';
import { serveWorkers, workerSide } from './workers.ts';

export interface ServeOptions {
  /** How many processes share the work; each is a node of its own. */
  workers: number;
  config_file?: string | undefined;
  /** Whether SIGHUP arrived before this gateway could listen for it; called once, when it can. */
  hasReloadSignal(): boolean;
}

/** Runs a gateway until a signal ends it: in this process, or in several workers of it. */
export async function serve(environment: Environment, options: ServeOptions): Promise<void> {
  const worker = cluster.isWorker ? workerSide() : undefined;
  // The file that the parent has checked; it may have changed since.
  const configFile = worker ? (await worker.settings()).configFile : findConfigFile(environment, options.config_file);
  const config = loadConfig(environment, { config_file_content: configFile });
  const log = createLog(
    config.log_level,
    process.stdout.isTTY ? readableOutput(standardOutput(), { hasColours: process.stdout.hasColors() }) : undefined,
  );
  const { path } = configPath(environment, options.config_file);
  const file = { path, is_watched: config.config_watch };
  if (options.workers > 1 && cluster.isPrimary) {
    const { workers, hasReloadSignal } = options;
    await serveWorkers({ config, log, workers, environment, file, configFile, hasReloadSignal });
    return;
  }
  // Imported here: the parent of workers never needs it.
  const { startGateway } = await import('./start-gateway.ts');
  const lost = Promise.withResolvers<Error>();
  let hasShown = false;
  const gateway = await startGateway({
    config: worker ? await worker.adapt(config) : config,
    log,
    metrics_source: worker?.metrics_source,
    share_port: worker !== undefined,
    onMetrics: worker?.count,
    onFirstKeys(keys, start) {
      announceFirst(config, keys, start);
      hasShown = true;
    },
    onStoreLost: lost.resolve,
    onBuilt: releaseStartMemory,
  });
  if (worker) {
    worker.serving({ url: gateway.url, has_shown: hasShown, warnings: gateway.warnings });
    worker.onReload(environment, log, gateway.replace);
  } else {
    announce(config, { url: gateway.url, has_shown: hasShown, warnings: gateway.warnings }, log);
    const warnAgain = warnOfExpiry(config, log);
    const apply = (next: Config) => {
      logReload(log, gateway.replace(next));
      warnAgain(next);
    };
    const reload = createReloader({ environment, path, configFile, log, apply });
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
