import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Registry } from 'prom-client';
import type { MetricsSource } from '../api/operations/metrics.ts';
import { type Config, type ConfigText, type Environment, loadConfig, readBundledCatalog } from '../config.ts';
import { limits } from '../limits.ts';
import { openDatabase } from '../storage/database.ts';
import type { Logger } from '../telemetry/log.ts';
import { announce, onceSignalled, type Started } from './announce.ts';
import { prepareDataDir } from './data-dir.ts';
import { closeDataDir } from './data-dir-modes.ts';
import { warnOfExpiry } from './expiring-models.ts';
import { firstHome } from './first-start.ts';
import { followConfig, onReloadSignal } from './follow-config.ts';
import { releaseStartMemory } from './release-start-memory.ts';
import { createReloader, logReload, type Reloaded } from './reload.ts';
import { systemClock } from './system-clock.ts';
import { addSandbox, withSandbox } from './with-sandbox.ts';
import { databaseOf } from './with-store.ts';
import { addUpMetrics, type CountedMetrics, type WorkersMetrics } from './workers-metrics.ts';

const METRICS_MS_MAX = 5_000;
/** A worker that lived this long did not die of its start. */
const WORKER_STABLE_MS = 5_000;
const WORKER_RESTART_MS_MIN = 100;
const WORKER_RESTART_MS_MAX = 10_000;

/** The settings that the parent decides for all its workers. */
interface Settings {
  port: number;
  sandbox_url: string | undefined;
  /** The configuration file that the parent has checked; null: none. */
  configFile: ConfigText | null;
  /** When the parent started: all workers report the same age for a model without a date. */
  loaded_at: number;
}

type ToParent =
  | { type: 'metrics'; id: number }
  | { type: 'counted'; id: number; metrics: CountedMetrics }
  | { type: 'serving'; started: Started }
  | { type: 'settings' };
type ToWorker =
  | { type: 'count'; id: number }
  | { type: 'metrics'; id: number; text: string }
  | { type: 'settings'; settings: Settings }
  /** `logs`: this worker logs the changes, for all of them. */
  | { type: 'reload'; settings: Settings; logs: boolean }
  | { type: 'drain' };

/**
 * Runs the parent of several workers: prepares the store, starts one worker and, once that serves, the others; replaces those
 * that die, and adds up their metrics. Rejects if the first cannot start.
 */
export async function serveWorkers(options: {
  config: Config;
  log: Logger;
  workers: number;
  environment: Environment;
  file: { path: string; is_watched: boolean };
  configFile: ConfigText | null;
  hasReloadSignal(): boolean;
}): Promise<void> {
  const { config, log, environment, file, configFile } = options;
  prepareDataDir(config.data_dir);
  closeDataDir(config.data_dir, log);
  const port = await freePort(config);
  await prepareStore(config);
  const sandbox = config.sandbox ? await withSandbox(config) : undefined;
  const { loaded_at } = config;
  const family = createFamily({ log, settings: { port, sandbox_url: sandbox?.url, configFile, loaded_at } });
  try {
    announce(config, await family.first(), log);
  } catch (error) {
    await sandbox?.stop();
    throw error;
  }
  for (let slot = 1; slot < options.workers; slot += 1) family.start(slot);
  releaseStartMemory();
  const warnAgain = warnOfExpiry(config, log);
  const reload = createReloader({
    environment,
    path: file.path,
    configFile,
    log,
    apply(next, reloadedFile) {
      // Read here too, so that an invalid file is refused before any worker has taken it over.
      readBundledCatalog();
      family.reload(reloadedFile);
      warnAgain(next);
    },
  });
  followConfig(file, reload);
  if (options.hasReloadSignal()) void reload('signal');

  onceSignalled(async (signal) => {
    log.info({ signal }, 'draining');
    const { shutdown_grace_ms, shutdown_ms_max } = config.timeouts;
    await family.stop(
      shutdown_grace_ms + shutdown_ms_max + limits.flush_stop_ms_max + 2 * limits.shutdown_settle_ms_max,
    );
    await sandbox?.stop();
    log.info('stopped');
  });
}

/** The workers of this process. Each has a slot, which is filled again when its worker dies. */
function createFamily({ log, settings: first }: { log: Logger; settings: Settings }) {
  let settings = first;
  const metrics = addUpMetrics((worker, id) => send(worker, { type: 'count', id }));
  let stopping = false;

  const fork = (): Worker => {
    const worker = cluster.fork();
    worker.on('message', (message: ToParent) => {
      if (message?.type === 'metrics') void answerMetrics(metrics, worker, message.id, log);
      else if (message?.type === 'counted') metrics.answer(message.id, message.metrics);
      else if (message?.type === 'settings') send(worker, { type: 'settings', settings });
      else if (message?.type === 'serving') metrics.add(worker);
    });
    // Sending to a worker that is dying fails here too; its exit is handled.
    worker.on('error', (error) => log.warn({ err: error }, 'a worker could not be reached'));
    return worker;
  };
  const supervise = (worker: Worker, slot: number, delayMs: number) => {
    const startedMs = performance.now();
    worker.on('exit', (code, signal) => {
      if (stopping) return;
      // A worker that dies at once is not restarted in a tight loop.
      const livedMs = performance.now() - startedMs;
      const nextMs = livedMs > WORKER_STABLE_MS ? WORKER_RESTART_MS_MIN : Math.min(delayMs * 2, WORKER_RESTART_MS_MAX);
      log.error({ worker: slot, code, signal, restart_in_ms: nextMs }, 'a worker ended');
      setTimeout(() => {
        if (!stopping) supervise(fork(), slot, nextMs);
      }, nextMs);
    });
  };
  return {
    /** Starts the first worker and waits until it serves. Rejects if it ends before; the worker itself reports why. */
    first: () =>
      new Promise<Started>((resolve, reject) => {
        const worker = fork();
        const failed = () => reject(new Error('No worker could start.'));
        worker.once('exit', failed);
        worker.on('message', (message: ToParent) => {
          if (message?.type !== 'serving') return;
          worker.off('exit', failed);
          supervise(worker, 0, WORKER_RESTART_MS_MIN);
          resolve(message.started);
        });
      }),
    start: (slot: number) => supervise(fork(), slot, WORKER_RESTART_MS_MIN),
    /** Sends another configuration to the running workers, and to all that start from now on. */
    reload(configFile: ConfigText | null) {
      settings = { ...settings, configFile };
      for (const [index, worker] of Object.values(cluster.workers ?? {}).entries()) {
        if (worker) send(worker, { type: 'reload', settings, logs: index === 0 });
      }
    },
    /** Drains all workers; those that have not ended after `boundMs` are killed. */
    async stop(boundMs: number) {
      stopping = true;
      const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
      const exits = workers.map((worker) => (worker.isDead() ? undefined : once(worker, 'exit')));
      for (const worker of workers) send(worker, { type: 'drain' });
      await Promise.race([Promise.all(exits), sleep(boundMs, undefined, { ref: false })]);
      for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL');
    },
  };
}

function send(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message);
}

/**
 * The port that the workers will share: the configured one, or a free one if that is 0. Rejects if another process listens
 * there already: workers that share the port would not notice.
 */
async function freePort({ host, port }: Config): Promise<number> {
  const probe = createServer().listen({ host, port });
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return address !== null && typeof address === 'object' ? address.port : port;
}

/** Migrates the store and creates the first organization before any worker runs. */
async function prepareStore(config: Config): Promise<void> {
  const database = await openDatabase({ data_dir: config.data_dir, ...databaseOf(config) });
  try {
    await firstHome(database, systemClock);
  } finally {
    await database.close();
  }
}

async function answerMetrics(metrics: WorkersMetrics, worker: Worker, id: number, log: Logger): Promise<void> {
  try {
    send(worker, { type: 'metrics', id, text: await metrics.text() });
  } catch (error) {
    log.warn({ err: error }, 'the metrics of the workers could not be combined');
  }
}

/** A worker's connection to its parent. */
export interface WorkerSide {
  /** The settings that the parent decided. */
  settings(): Promise<Settings>;
  /** The configuration with the parent's port, and its sandbox in place of one of its own. */
  adapt(config: Config): Promise<Config>;
  /** Reports to the parent that this worker serves. */
  serving(started: Started): void;
  /** Passes each configuration that the parent sends, now and later, to `replace`. */
  onReload(environment: Environment, log: Logger, replace: (config: Config) => Reloaded): void;
  metrics_source: MetricsSource;
  /** Sends the parent the metrics of this registry whenever it requests them. */
  count(registry: Registry): void;
}

/** The connection of this worker to its parent, which decides the port and the sandbox and adds up the metrics. */
export function workerSide(): WorkerSide {
  // While the worker starts, nothing listens for the signal: there is nothing to drain yet.
  const drain = () => {
    if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(0);
  };
  const waiting = new Map<number, (text: string) => void>();
  let lastId = 0;
  const settled = Promise.withResolvers<Settings>();
  let registry: Registry | undefined;
  type Reload = Extract<ToWorker, { type: 'reload' }>;
  /** A reload that arrived before this worker was ready for it. */
  let missed: Reload | undefined;
  let handleReload = (message: Reload) => {
    missed = message;
  };
  process.on('message', (message: ToWorker) => {
    if (message?.type === 'metrics') {
      waiting.get(message.id)?.(message.text);
      waiting.delete(message.id);
    } else if (message?.type === 'count') {
      void registry?.getMetricsAsJSON().then((metrics) => {
        const answer = { type: 'counted', id: message.id, metrics: metrics as CountedMetrics } satisfies ToParent;
        if (process.connected) process.send?.(answer);
      });
    } else if (message?.type === 'drain') {
      drain();
    } else if (message?.type === 'settings') {
      settled.resolve(message.settings);
    } else if (message?.type === 'reload') {
      handleReload(message);
    }
  });
  // The parent handles the signal; a terminal sends it to all of them.
  onReloadSignal(() => {});
  // A worker must not outlive its parent: nobody would stop it. Without this Node would end it at once, with all running requests.
  cluster.worker?.once('disconnect', () => {
    if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
    drain();
  });
  process.send?.({ type: 'settings' } satisfies ToParent);
  const adapted = (config: Config, { port, sandbox_url, loaded_at }: Settings): Config => ({
    ...(sandbox_url === undefined ? config : addSandbox(config, sandbox_url)),
    port,
    sandbox: false,
    loaded_at,
  });
  return {
    settings: () => settled.promise,
    adapt: async (config) => adapted(config, await settled.promise),
    onReload(environment, log, replace) {
      handleReload = ({ settings, logs }) => {
        try {
          const reloaded = replace(
            adapted(loadConfig(environment, { config_file_content: settings.configFile }), settings),
          );
          if (logs) logReload(log, reloaded);
        } catch (error) {
          log.error({ err: error }, 'this worker cannot reload the configuration and keeps the previous one');
        }
      };
      if (missed !== undefined) handleReload(missed);
    },
    serving(started) {
      process.send?.({ type: 'serving', started } satisfies ToParent);
    },
    count(counted) {
      registry = counted;
    },
    metrics_source: {
      content_type: Registry.PROMETHEUS_CONTENT_TYPE,
      text: () =>
        new Promise((resolve, reject) => {
          lastId += 1;
          const id = lastId;
          const late = setTimeout(() => {
            waiting.delete(id);
            reject(new Error('the parent process did not answer with metrics'));
          }, METRICS_MS_MAX);
          waiting.set(id, (text) => {
            clearTimeout(late);
            resolve(text);
          });
          process.send?.({ type: 'metrics', id } satisfies ToParent);
        }),
    },
  };
}
