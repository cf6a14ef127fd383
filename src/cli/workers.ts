import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AggregatorRegistry, type RegistryContentType } from 'prom-client';
import type { MetricsSource } from '../api/operations/metrics.ts';
import type { Config } from '../config.ts';
import { limits } from '../limits.ts';
import { openDatabase } from '../storage/database.ts';
import type { Logger } from '../telemetry/log.ts';
import { announce, onceSignalled } from './announce.ts';
import { firstStart } from './first-start.ts';
import { systemClock } from './start-gateway.ts';
import { addSandbox, withSandbox } from './with-sandbox.ts';

type ToParent = { type: 'metrics'; id: number } | { type: 'sandbox' };
type ToWorker =
  | { type: 'metrics'; id: number; text: string }
  | { type: 'sandbox'; url: string | undefined }
  | { type: 'drain' };

/** The parent of several workers: makes the store ready, starts them, replaces those that die, adds up their metrics. */
export async function serveWorkers(options: { config: Config; log: Logger; workers: number }): Promise<void> {
  const { config, log } = options;
  mkdirSync(config.data_dir, { recursive: true, mode: 0o700 });
  const sandbox = config.sandbox ? await withSandbox(config) : undefined;
  const management_key = await prepareStore(config);
  const aggregator = new AggregatorRegistry();
  let stopping = false;
  let announced = false;

  const start = (slot: number, delay_ms: number) => {
    const worker = cluster.fork();
    const born = performance.now();
    worker.on('message', (message: ToParent) => {
      if (message?.type === 'metrics') void answerMetrics(aggregator, worker, message.id, log);
      else if (message?.type === 'sandbox') worker.send({ type: 'sandbox', url: sandbox?.url } satisfies ToWorker);
    });
    worker.on('listening', ({ address, port }) => {
      if (announced) return;
      announced = true;
      announce(config, { url: `http://${address ?? config.host}:${port}`, management_key }, log);
    });
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
        if (!stopping) start(slot, next_ms);
      }, next_ms);
    });
  };
  for (let slot = 0; slot < options.workers; slot += 1) start(slot, limits.worker_restart_ms_min);

  onceSignalled(async (signal) => {
    stopping = true;
    log.info({ signal }, 'draining');
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    const exits = workers.map((worker) => once(worker, 'exit'));
    for (const worker of workers) worker.send({ type: 'drain' } satisfies ToWorker);
    await Promise.race([
      Promise.all(exits),
      sleep(limits.shutdown_ms_max + limits.worker_stable_ms, undefined, { ref: false }),
    ]);
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL');
    await sandbox?.stop();
    log.info('stopped');
  });
}

/** Migrates and makes the first organization before any worker runs, so that they find everything ready. */
async function prepareStore(config: Config): Promise<string | undefined> {
  const database = await openDatabase({ data_dir: config.data_dir, database_url: config.database_url });
  try {
    return (await firstStart(config, database, systemClock)).management_key;
  } finally {
    await database.close();
  }
}

async function answerMetrics(
  aggregator: AggregatorRegistry<RegistryContentType>,
  worker: Worker,
  id: number,
  log: Logger,
): Promise<void> {
  try {
    const text = await aggregator.clusterMetrics();
    if (worker.isConnected()) worker.send({ type: 'metrics', id, text } satisfies ToWorker);
  } catch (error) {
    log.warn({ err: error }, 'metrics of the workers could not be added up');
  }
}

/** What a worker knows of its parent. */
export interface WorkerSide {
  /** The configuration with the parent's sandbox in place of one of its own. */
  adapt(config: Config): Promise<Config>;
  metrics_source: MetricsSource;
}

/** In a worker: the sandbox is the parent's, metrics are asked of the parent. */
export function workerSide(): WorkerSide {
  const waiting = new Map<number, (text: string) => void>();
  let asked = 0;
  let sandboxTold: (url: string | undefined) => void = () => undefined;
  process.on('message', (message: ToWorker) => {
    if (message?.type === 'metrics') {
      waiting.get(message.id)?.(message.text);
      waiting.delete(message.id);
    } else if (message?.type === 'drain') {
      process.emit('SIGTERM', 'SIGTERM');
    } else if (message?.type === 'sandbox') {
      sandboxTold(message.url);
    }
  });
  // A worker must not outlive its parent: nobody would stop it.
  process.on('disconnect', () => process.emit('SIGTERM', 'SIGTERM'));
  return {
    async adapt(config) {
      const told = new Promise<string | undefined>((resolve) => {
        sandboxTold = resolve;
      });
      process.send?.({ type: 'sandbox' } satisfies ToParent);
      const url = await told;
      return { ...(url === undefined ? config : addSandbox(config, url)), sandbox: false };
    },
    metrics_source: {
      content_type: AggregatorRegistry.PROMETHEUS_CONTENT_TYPE,
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
