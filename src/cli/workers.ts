import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Registry } from 'prom-client';
import type { MetricsSource } from '../api/operations/metrics.ts';
import { type Config, type Environment, type FoundFile, loadConfig, readBundledCatalog } from '../config.ts';
import { limits } from '../limits.ts';
import { openDatabase } from '../storage/database.ts';
import type { Logger } from '../telemetry/log.ts';
import { announce, onceSignalled, type Started } from './announce.ts';
import { prepareDataDir } from './data-dir.ts';
import { closeDataDir } from './data-dir-modes.ts';
import { warnOfExpiry } from './expiring-models.ts';
import { firstHome } from './first-start.ts';
import { followConfig, onReloadSignal } from './follow-config.ts';
import { giveBackMemory } from './give-back-memory.ts';
import { createReloader, type Reloaded, tellReload } from './reload.ts';
import { systemClock } from './system-clock.ts';
import { addSandbox, withSandbox } from './with-sandbox.ts';
import { databaseOf } from './with-store.ts';
import { addUpMetrics, type CountedMetrics, type WorkersMetrics } from './workers-metrics.ts';

/** What the parent settles for all its workers. */
interface Settings {
  port: number;
  sandbox_url: string | undefined;
  /** The configuration file that the parent has checked; null: there is none. */
  found: FoundFile | null;
  /** When the parent started, so that all workers say the same of a model without a date. */
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
  /** One worker tells for all what changed. */
  | { type: 'reload'; settings: Settings; tells: boolean }
  | { type: 'drain' };

/**
 * The parent of several workers: makes the store ready, starts one worker and, once that serves, the others; replaces
 * those that die, adds up their metrics. Fails when the first cannot start.
 */
export async function serveWorkers(options: {
  config: Config;
  log: Logger;
  workers: number;
  environment: Environment;
  file: { path: string; is_watched: boolean };
  found: FoundFile | null;
  hasReloadSignal(): boolean;
}): Promise<void> {
  const { config, log, environment, file, found } = options;
  prepareDataDir(config.data_dir);
  closeDataDir(config.data_dir, log);
  const port = await freePort(config);
  await prepareStore(config);
  const sandbox = config.sandbox ? await withSandbox(config) : undefined;
  const { loaded_at } = config;
  const family = createFamily({ log, settings: { port, sandbox_url: sandbox?.url, found, loaded_at } });
  try {
    announce(config, await family.first(), log);
  } catch (error) {
    await sandbox?.stop();
    throw error;
  }
  for (let slot = 1; slot < options.workers; slot += 1) family.start(slot);
  giveBackMemory();
  const warnAnew = warnOfExpiry(config, log);
  const reload = createReloader({
    environment,
    path: file.path,
    found,
    log,
    apply(next, found) {
      // Read here too, so that a file that is wrong stops before any worker has taken it.
      readBundledCatalog();
      family.reload(found);
      warnAnew(next);
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

/** The workers of this process, each in a slot that is filled again when its worker dies. */
function createFamily({ log, settings: first }: { log: Logger; settings: Settings }) {
  let settings = first;
  const metrics = addUpMetrics((worker, id) => tell(worker, { type: 'count', id }));
  let stopping = false;

  const fork = (): Worker => {
    const worker = cluster.fork();
    worker.on('message', (message: ToParent) => {
      if (message?.type === 'metrics') void answerMetrics(metrics, worker, message.id, log);
      else if (message?.type === 'counted') metrics.answer(message.id, message.metrics);
      else if (message?.type === 'settings') tell(worker, { type: 'settings', settings });
      else if (message?.type === 'serving') metrics.add(worker);
    });
    // A message to a worker that is just dying fails here too; its exit is what counts.
    worker.on('error', (error) => log.warn({ err: error }, 'a worker could not be reached'));
    return worker;
  };
  const keep = (worker: Worker, slot: number, delay_ms: number) => {
    const born = performance.now();
    worker.on('exit', (code, signal) => {
      if (stopping) return;
      // A worker that dies at once is not started again in a tight loop.
      const lived_ms = performance.now() - born;
      const next_ms =
        lived_ms > limits.worker_stable_ms
          ? limits.worker_restart_ms_min
          : Math.min(delay_ms * 2, limits.worker_restart_ms_max);
      log.error({ worker: slot, code, signal, restart_in_ms: next_ms }, 'a worker ended');
      setTimeout(() => {
        if (!stopping) keep(fork(), slot, next_ms);
      }, next_ms);
    });
  };
  return {
    /** Starts the first worker and waits until it serves; what keeps it from that, it has told by itself. */
    first: () =>
      new Promise<Started>((resolve, reject) => {
        const worker = fork();
        const failed = () => reject(new Error('No worker could start.'));
        worker.once('exit', failed);
        worker.on('message', (message: ToParent) => {
          if (message?.type !== 'serving') return;
          worker.off('exit', failed);
          keep(worker, 0, limits.worker_restart_ms_min);
          resolve(message.started);
        });
      }),
    start: (slot: number) => keep(fork(), slot, limits.worker_restart_ms_min),
    /** Hands another configuration to those that run, and to all that start from now on. */
    reload(found: FoundFile | null) {
      settings = { ...settings, found };
      for (const [index, worker] of Object.values(cluster.workers ?? {}).entries()) {
        if (worker) tell(worker, { type: 'reload', settings, tells: index === 0 });
      }
    },
    /** Drains them all; those that are not gone by then are killed. */
    async stop(bound_ms: number) {
      stopping = true;
      const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
      const exits = workers.map((worker) => (worker.isDead() ? undefined : once(worker, 'exit')));
      for (const worker of workers) tell(worker, { type: 'drain' });
      await Promise.race([Promise.all(exits), sleep(bound_ms, undefined, { ref: false })]);
      for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL');
    },
  };
}

function tell(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message);
}

/**
 * The port that the workers will share: the configured one, or a free one where any will do. Fails where somebody
 * listens there already: sharing workers would not notice.
 */
async function freePort({ host, port }: Config): Promise<number> {
  const probe = createServer().listen({ host, port });
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return address !== null && typeof address === 'object' ? address.port : port;
}

/** Migrates and makes the first organization before any worker runs, so that they find everything ready. */
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
    tell(worker, { type: 'metrics', id, text: await metrics.text() });
  } catch (error) {
    log.warn({ err: error }, 'the metrics of the workers could not be combined');
  }
}

/** What a worker knows of its parent. */
export interface WorkerSide {
  /** What the parent settled. */
  settings(): Promise<Settings>;
  /** The configuration with the parent's port, and its sandbox in place of one of its own. */
  adapt(config: Config): Promise<Config>;
  /** Tells the parent that this worker serves. */
  serving(started: Started): void;
  /** Puts in force with `replace` what the parent hands on, now and later. */
  onReload(environment: Environment, log: Logger, replace: (config: Config) => Reloaded): void;
  metrics_source: MetricsSource;
  /** Tells the parent what this registry counts, whenever it asks. */
  count(registry: Registry): void;
}

/** In a worker: the port and the sandbox are the parent's, metrics are asked of the parent. */
export function workerSide(): WorkerSide {
  // Nothing listens for the signal while the worker starts: there is nothing to drain yet.
  const drain = () => {
    if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(0);
  };
  const waiting = new Map<number, (text: string) => void>();
  let asked = 0;
  const settled = Promise.withResolvers<Settings>();
  let counted: Registry | undefined;
  type Reload = Extract<ToWorker, { type: 'reload' }>;
  /** What came before this worker was ready for it. */
  let missed: Reload | undefined;
  let take = (message: Reload) => {
    missed = message;
  };
  process.on('message', (message: ToWorker) => {
    if (message?.type === 'metrics') {
      waiting.get(message.id)?.(message.text);
      waiting.delete(message.id);
    } else if (message?.type === 'count') {
      void counted?.getMetricsAsJSON().then((metrics) => {
        const answer = { type: 'counted', id: message.id, metrics: metrics as CountedMetrics } satisfies ToParent;
        if (process.connected) process.send?.(answer);
      });
    } else if (message?.type === 'drain') {
      drain();
    } else if (message?.type === 'settings') {
      settled.resolve(message.settings);
    } else if (message?.type === 'reload') {
      take(message);
    }
  });
  // It is the parent's to decide on; a terminal sends it to all of them.
  onReloadSignal(() => {});
  // A worker must not outlive its parent: nobody would stop it. Node would end it at once, and what runs with it.
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
      take = ({ settings, tells }) => {
        try {
          const reloaded = replace(adapted(loadConfig(environment, { found: settings.found }), settings));
          if (tells) tellReload(log, reloaded);
        } catch (error) {
          log.error({ err: error }, 'this worker cannot reload the configuration and keeps the previous one');
        }
      };
      if (missed !== undefined) take(missed);
    },
    serving(started) {
      process.send?.({ type: 'serving', started } satisfies ToParent);
    },
    count(registry) {
      counted = registry;
    },
    metrics_source: {
      content_type: Registry.PROMETHEUS_CONTENT_TYPE,
      text: () =>
        new Promise((resolve, reject) => {
          asked += 1;
          const id = asked;
          const late = setTimeout(() => {
            waiting.delete(id);
            reject(new Error('the parent process did not answer with metrics'));
          }, limits.metrics_ms_max);
          waiting.set(id, (text) => {
            clearTimeout(late);
            resolve(text);
          });
          process.send?.({ type: 'metrics', id } satisfies ToParent);
        }),
    },
  };
}
