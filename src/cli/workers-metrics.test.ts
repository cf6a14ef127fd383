import type { Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { addUpMetrics } from './workers-metrics.ts';

test('each worker gets one request, however many requests for the sum are concurrent', async () => {
  const requests: { worker: Worker; id: number }[] = [];
  const metrics = addUpMetrics((worker, id) => void requests.push({ worker, id }));
  const workers = [new EventEmitter(), new EventEmitter()] as unknown as Worker[];
  for (const worker of workers) metrics.add(worker);
  const texts = Array.from({ length: 500 }, () => metrics.text());
  expect(requests.map(({ worker }) => worker)).toEqual(workers);
  for (const { id } of requests) {
    metrics.answer(id, [
      {
        name: 'x_total',
        help: 'x',
        collect: undefined as never,
        type: 'counter' as never,
        aggregator: 'sum',
        values: [{ value: 2, labels: {} }],
      },
    ]);
  }
  expect(new Set(await Promise.all(texts)).size).toBe(1);
  expect(await texts[0]).toContain('x_total 4');
});
