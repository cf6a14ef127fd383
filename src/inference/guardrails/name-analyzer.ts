import { Worker } from 'node:worker_threads';
import { type Analyzer, AnalyzerFailed, type Entity } from '../../guardrails/entities/analyzer.ts';
import { canHoldEntity } from '../../guardrails/entities/entities.ts';
import { limits } from '../../limits.ts';

/** What is sent to the thread: texts of a request, or that nobody waits for them any more. */
export type Analysis = { id: number; texts: string[] } | { id: number };

interface Waiting {
  resolve(entities: Entity[][]): void;
  reject(error: unknown): void;
}

/** Makes the analyzer of the gateway's own: a thread that starts with the first text in which a name or an address may be. */
export function createNameAnalyzer(): Analyzer {
  let worker: Worker | undefined;
  let last_id = 0;
  const waiting = new Map<number, Waiting>();
  const end = (ended: Worker) => {
    if (worker !== ended) return;
    worker = undefined;
    for (const { reject } of waiting.values()) reject(new AnalyzerFailed('its thread ended'));
    waiting.clear();
  };
  const start = (): Worker => {
    const started = new Worker(new URL('./name-analyzer-thread.ts', import.meta.url), { execArgv: [] });
    started.unref();
    started.on('message', ({ id, entities }: { id: number; entities?: Entity[][] }) => {
      const waited = waiting.get(id);
      waiting.delete(id);
      if (entities === undefined) waited?.reject(new AnalyzerFailed('it could not read a text'));
      else waited?.resolve(entities);
    });
    // A thread that died is started anew for the next request.
    started.on('error', () => end(started));
    started.on('exit', () => end(started));
    return started;
  };
  return {
    async analyze(texts, signal) {
      signal?.throwIfAborted();
      const entities: Entity[][] = texts.map(() => []);
      const places = [...texts.keys()].filter((at) => canHoldEntity(texts[at] ?? ''));
      if (places.length === 0) return entities;
      const asked = places.map((at) => texts[at] ?? '');
      const chars = asked.reduce((sum, text) => sum + text.length, 0);
      if (chars > limits.analyzed_chars_max) throw new AnalyzerFailed('there is too much to read');
      if (waiting.size >= limits.analyses_waiting_max) throw new AnalyzerFailed('too many requests wait for it');
      const id = ++last_id;
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
        worker.postMessage({ id, texts: asked } satisfies Analysis);
        const found = await promise;
        for (const [index, at] of places.entries()) entities[at] = found[index] ?? [];
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
