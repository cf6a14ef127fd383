import type { Worker } from 'node:cluster';
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client';
import { coalesced } from '../http/coalesced.ts';
import { limits } from '../limits.ts';

/** What one process counts, as its registry gives it out. */
export type CountedMetrics = MetricObjectWithValues<MetricValue<string>>[];

/** The metrics of all workers as one. */
export interface WorkersMetrics {
  /** The sum, in Prometheus' text format. A worker that does not answer in time counts as when it last did. */
  text(): Promise<string>;
  /** What a worker counts from now on is part of the sum. */
  add(worker: Worker): void;
  /** Takes a worker's answer to the question with this id. */
  answer(id: number, metrics: CountedMetrics): void;
}

interface Question {
  worker: Worker;
  settle(metrics: CountedMetrics | undefined): void;
}

/** Adds up the workers' metrics: `ask` sends a worker a question, whose answer comes back through `answer`. */
export function addUpMetrics(ask: (worker: Worker, id: number) => void): WorkersMetrics {
  const last = new Map<Worker, CountedMetrics>();
  const questions = new Map<number, Question>();
  let asked = 0;
  // Counters of workers that are gone stay in the sum: one that falls reads as a restart of everything.
  let gone: CountedMetrics[] = [];
  let folding = false;

  const askOne = (worker: Worker): Promise<void> =>
    new Promise((resolve) => {
      asked += 1;
      const id = asked;
      const settle = (metrics: CountedMetrics | undefined) => {
        questions.delete(id);
        clearTimeout(late);
        if (metrics !== undefined && last.has(worker)) last.set(worker, metrics);
        resolve();
      };
      const late = setTimeout(() => settle(undefined), limits.metrics_worker_ms_max);
      questions.set(id, { worker, settle });
      ask(worker, id);
    });

  /** Makes one of the sums of those that are gone, so that they do not gather. */
  const fold = async () => {
    if (folding || gone.length < 2) return;
    folding = true;
    const parts = gone.length;
    const sum = (await AggregatorRegistry.aggregate(gone).getMetricsAsJSON()) as CountedMetrics;
    gone = [sum, ...gone.slice(parts)];
    folding = false;
  };

  return {
    // However many workers ask for their clients.
    text: coalesced(async () => {
      await Promise.all([...last.keys()].map(askOne));
      return AggregatorRegistry.aggregate([...gone, ...last.values()]).metrics();
    }),
    add(worker) {
      last.set(worker, []);
      worker.once('exit', () => {
        for (const question of questions.values()) if (question.worker === worker) question.settle(undefined);
        gone.push((last.get(worker) ?? []).filter(({ type }) => String(type) !== 'gauge'));
        last.delete(worker);
        void fold();
      });
    },
    answer: (id, metrics) => questions.get(id)?.settle(metrics),
  };
}
