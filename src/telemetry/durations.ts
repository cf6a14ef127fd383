import type { Histogram, Registry } from 'prom-client';

/** Upper bounds of the buckets, in seconds. */
export const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** The observations of one value of the label. */
interface Cell {
  /** The count of each bucket alone; the last is for values above all bounds. */
  counts: number[];
  sum_s: number;
}

interface DurationsOptions {
  name: string;
  help: string;
  label: string;
  registry: Registry;
}

/**
 * A histogram of durations with one label. Its output is that of prom-client's own, but an observation joins no labels and
 * creates no objects.
 */
export function createDurations({ name, help, label, registry }: DurationsOptions) {
  const cells = new Map<string, Cell>();

  const valuesOf = (value: string, { counts, sum_s }: Cell) => {
    let count = 0;
    const buckets = counts.map((more, at) => {
      count += more;
      const labels = { le: SECONDS[at] ?? '+Inf', [label]: value };
      return { metricName: `${name}_bucket`, labels, value: count };
    });
    const labels = { [label]: value };
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum_s },
      { metricName: `${name}_count`, labels, value: count },
    ];
  };
  const read = () => ({
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: [...cells].flatMap(([value, cell]) => valuesOf(value, cell)),
  });
  // A registry uses only these members; the types know only the library's own metrics.
  registry.registerMetric({ name, get: async () => read() } as unknown as Histogram);

  return {
    observe(value: string, seconds: number): void {
      let cell = cells.get(value);
      if (cell === undefined) {
        cell = { counts: new Array<number>(SECONDS.length + 1).fill(0), sum_s: 0 };
        cells.set(value, cell);
      }
      let at = 0;
      while (at < SECONDS.length && seconds > SECONDS[at]!) at += 1;
      cell.counts[at]! += 1;
      cell.sum_s += seconds;
    },
  };
}
