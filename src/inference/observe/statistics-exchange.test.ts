import { expect, test, vi } from 'vitest';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { createEndpointStatistics } from '../../routing/endpoint-statistics.ts';
import { endpointStatisticsStore } from '../../storage/endpoint-statistics.ts';
import {
  createStatisticsExchange,
  STATISTICS_BATCH_ROWS,
  STATISTICS_OVERLAP_MS,
  type StatisticsStore,
} from './statistics-exchange.ts';

const NOW = Date.now();

function processOn(store: StatisticsStore, run: string) {
  const statistics = createEndpointStatistics();
  const warn = vi.fn();
  const exchange = createStatisticsExchange({ statistics, store, run, nowMs: () => NOW, log: { warn } });
  const answer = (count: number, result: 'success' | 'error' = 'success') => {
    for (let n = 0; n < count; n += 1) {
      statistics.observe('e', { result, is_streamed: true, latency_ms: 100 + n, tokens_per_second: 50 }, NOW);
    }
  };
  return { statistics, exchange, warn, answer, figures: () => statistics.figures('e', NOW) };
}

describeStores('the exchange of statistics', ({ engine, open }) => {
  const opened = async () => endpointStatisticsStore((await open()).queries, engine);

  test('gives each process the counts of the others, and new processes those of earlier ones', async () => {
    const store = await opened();
    const one = processOn(store, 'one');
    const two = processOn(store, 'two');
    one.answer(30);
    two.answer(10, 'error');
    await one.exchange.exchange();
    await two.exchange.exchange();
    await one.exchange.exchange();
    expect(one.figures().uptime_last_5m).toBe(75);
    expect(two.figures()).toEqual(one.figures());
    one.answer(20);
    await one.exchange.stop();
    const later = processOn(store, 'later');
    await later.exchange.exchange();
    await two.exchange.exchange();
    expect(later.figures().uptime_last_1d).toBeCloseTo((50 / 60) * 100);
    expect(later.figures()).toEqual(two.figures());
  });

  test('writes several batches', async () => {
    const store = await opened();
    const one = processOn(store, 'one');
    const count = STATISTICS_BATCH_ROWS + 50;
    for (let n = 0; n < count; n += 1) one.statistics.observe(`e${n}`, { result: 'success' }, NOW);
    await one.exchange.exchange();
    const two = processOn(store, 'two');
    await two.exchange.exchange();
    expect([...two.statistics.known()]).toHaveLength(count);
  });

  test('continues without a store, logs that once, and writes the queued rows when the store works again', async () => {
    const store = await opened();
    let isDown = true;
    const flaky: StatisticsStore = {
      ...store,
      save: (...args) => (isDown ? Promise.reject(new Error('down')) : store.save(...args)),
    };
    const one = processOn(flaky, 'one');
    one.answer(10);
    await one.exchange.exchange();
    await one.exchange.exchange();
    expect(one.warn).toHaveBeenCalledTimes(1);
    expect(one.figures().uptime_last_5m).toBe(100);
    isDown = false;
    one.answer(10, 'error');
    await one.exchange.exchange();
    const two = processOn(store, 'two');
    await two.exchange.exchange();
    expect(two.figures()).toEqual(one.figures());
  });
});

test('invalid rows in the store are ignored', async () => {
  const stored = {
    span: 1,
    start: Math.floor(NOW / 60_000),
    run: 'x',
    rate_limited: 0,
    tool_calls: 0,
    tool_calls_valid: 0,
  };
  const store: StatisticsStore = {
    save: async () => {},
    now: async (at) => at,
    sweep: async () => {},
    findOthers: async () => [
      { ...stored, endpoint_id: 'e', successes: 10, errors: 0, sketches: 'not JSON' },
      { ...stored, endpoint_id: 'e', run: 'y', successes: 10, errors: 0, sketches: '{"latency":5,"other":"1.1"}' },
    ],
  };
  const one = processOn(store, 'one');
  await one.exchange.exchange();
  expect(one.figures()).toMatchObject({ uptime_last_5m: 100, latency_last_30m: null });
});

test('new rows are selected by the store’s clock, also after it was set back', async () => {
  const since: number[] = [];
  const times = [NOW, NOW - 3_600_000];
  const store: StatisticsStore = {
    save: async () => {},
    now: async () => times.shift() ?? 0,
    sweep: async () => {},
    findOthers: async (_run, from) => {
      since.push(from);
      return [];
    },
  };
  const one = processOn(store, 'one');
  await one.exchange.exchange();
  await one.exchange.exchange();
  expect(since).toEqual([0, NOW - 3_600_000 - STATISTICS_OVERLAP_MS]);
});

test('a store that hangs does not delay a stop', async () => {
  const never = () => new Promise<never>(() => {});
  const one = processOn({ save: never, now: never, findOthers: never, sweep: never }, 'one');
  one.answer(1);
  void one.exchange.exchange();
  await one.exchange.stop();
  expect(one.warn).not.toHaveBeenCalled();
});
