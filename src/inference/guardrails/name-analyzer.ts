import { Worker } from 'node:worker_threads';
import { type Analyzer, AnalyzerFailed, type Entity } from '../../guardrails/entities/analyzer.ts';
import { canHoldEntity } from '../../guardrails/entities/entities.ts';
import { limits } from '../../limits.ts';

/** A message to the thread: the texts of a request, or its cancellation. */
export type Analysis = { id: number; texts: string[] } | { id: number };

interface PendingAnalysis {
  resolve(entities: Entity[][]): void;
  reject(error: unknown): void;
}

/** The gateway's own analyzer: a thread that starts with the first text that may have a name or an address. */
export function createNameAnalyzer(): Analyzer {
  let worker: Worker | undefined;
  let lastId = 0;
  const waiting = new Map<number, PendingAnalysis>();
  const reset = (failed: Worker) => {
    if (worker !== failed) return;
    worker = undefined;
    for (const { reject } of waiting.values()) reject(new AnalyzerFailed('its thread ended'));
    waiting.clear();
  };
  const start = (): Worker => {
    const started = new Worker(new URL('./name-analyzer-thread.ts', import.meta.url), { execArgv: [] });
    started.unref();
    started.on('message', ({ id, entities }: { id: number; entities?: Entity[][] }) => {
      const pending = waiting.get(id);
      waiting.delete(id);
      if (entities === undefined) pending?.reject(new AnalyzerFailed('it could not read a text'));
      else pending?.resolve(entities);
    });
    // The next request starts a new thread.
    started.on('error', () => reset(started));
    started.on('exit', () => reset(started));
    return started;
  };
  return {
    async analyze(texts, signal) {
      signal?.throwIfAborted();
      const entities: Entity[][] = texts.map(() => []);
      const places = [...texts.keys()].filter((at) => canHoldEntity(texts[at] ?? ''));
      if (places.length === 0) return entities;
      const analyzed = places.map((at) => texts[at] ?? '');
      const chars = analyzed.reduce((sum, text) => sum + text.length, 0);
      if (chars > limits.analyzed_chars_max) throw new AnalyzerFailed('there is too much to read');
      if (waiting.size >= limits.analyses_waiting_max) throw new AnalyzerFailed('too many requests wait for it');
      const id = ++lastId;
      const { promise, resolve, reject } = Promise.withResolvers<Entity[][]>();
      const cancel = () => {
        if (!waiting.delete(id)) return;
        worker?.postMessage({ id } satisfies Analysis);
        reject(signal?.reason);
      };
      waiting.set(id, { resolve, reject });
      signal?.addEventListener('abort', cancel, { once: true });
      try {
        worker ??= start();
        worker.postMessage({ id, texts: analyzed } satisfies Analysis);
        const results = await promise;
        for (const [index, at] of places.entries()) entities[at] = results[index] ?? [];
        return entities;
      } finally {
        signal?.removeEventListener('abort', cancel);
      }
    },
    async stop() {
      await worker?.terminate();
    },
  };
}
