import { Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createDurations, SECONDS } from './durations.ts';

/** The values that a worker sends to its parent, without the unused exemplars. */
const sent = async (registry: Registry): Promise<unknown> =>
  JSON.parse(
    JSON.stringify(await registry.getMetricsAsJSON(), (key, value) => (key === 'exemplar' ? undefined : value)),
  );

const facts = { name: 'd_seconds', help: 'How long it took.' };

test('durations have the same output as a histogram of prom-client, as text and for other processes', async () => {
  const ours = new Registry();
  const theirs = new Registry();
  const durations = createDurations({ ...facts, label: 'operation', registry: ours });
  const histogram = new Histogram({ ...facts, labelNames: ['operation'], buckets: SECONDS, registers: [theirs] });
  const same = async () => {
    expect(await ours.metrics()).toBe(await theirs.metrics());
    expect(await sent(ours)).toEqual(await sent(theirs));
  };
  await same();
  // On each bound, near it, below all and above all.
  const observed = [0, ...SECONDS.flatMap((bound) => [bound * 0.99, bound, bound * 1.01]), 1e6];
  for (const [at, seconds] of observed.entries()) {
    const operation = at % 3 === 0 ? 'a "b"' : 'c';
    durations.observe(operation, seconds);
    histogram.observe({ operation }, seconds);
    await same();
  }
});
