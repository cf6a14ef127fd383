import type { Worker } from 'node:cluster';
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client';
import { coalesced } from '../http/coalesced.ts';

/** How long the parent of workers waits for the metrics of one. */
const METRICS_WORKER_MS_MAX = 2_000;

/** The metrics of one process, as its registry returns them. */
export type CountedMetrics = MetricObjectWithValues<MetricValue<string>>[];

/** The metrics of all workers, as one. */
export interface WorkersMetrics {
  /** The sum, in Prometheus' text format. For a worker that does not answer in time, its last answer counts. */
  text(): Promise<string>;
  /** Adds a worker to the sum. */
  add(worker: Worker): void;
  /** Takes the worker's answer to the request with this id. */
  answer(id: number, metrics: CountedMetrics): void;
}

interface PendingRequest {
  worker: Worker;
  settle(metrics: CountedMetrics | undefined): void;
}

/** Adds up the workers' metrics. `request` sends a worker a request with an id; its answer is passed to `answer`. */
export function addUpMetrics(request: (worker: Worker, id: number) => void): WorkersMetrics {
  const last = new Map<Worker, CountedMetrics>();
  const pending = new Map<number, PendingRequest>();
  let lastId = 0;
  // Counters of ended workers stay in the sum: a decreasing counter looks like a restart of everything.
  let ended: CountedMetrics[] = [];
  let folding = false;

  const update = (worker: Worker): Promise<void> =>
    new Promise((resolve) => {
      lastId += 1;
      const id = lastId;
      const settle = (metrics: CountedMetrics | undefined) => {
        pending.delete(id);
        clearTimeout(late);
        if (metrics !== undefined && last.has(worker)) last.set(worker, metrics);
        resolve();
      };
      const late = setTimeout(() => settle(undefined), METRICS_WORKER_MS_MAX);
      pending.set(id, { worker, settle });
      request(worker, id);
    });

  /** Replaces the metrics of ended workers by their sum, so that they do not accumulate. */
  const fold = async () => {
    if (folding || ended.length < 2) return;
    folding = true;
    const parts = ended.length;
    const sum = (await AggregatorRegistry.aggregate(ended).getMetricsAsJSON()) as CountedMetrics;
    ended = [sum, ...ended.slice(parts)];
    folding = false;
  };

  return {
    // Concurrent reads share one result.
    text: coalesced(async () => {
      await Promise.all([...last.keys()].map(update));
      return AggregatorRegistry.aggregate([...ended, ...last.values()]).metrics();
    }),
    add(worker) {
      last.set(worker, []);
      worker.once('exit', () => {
        for (const request of pending.values()) if (request.worker === worker) request.settle(undefined);
        ended.push((last.get(worker) ?? []).filter(({ type }) => String(type) !== 'gauge'));
        last.delete(worker);
        void fold();
      });
    },
    answer: (id, metrics) => pending.get(id)?.settle(metrics),
  };
}
