import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { endpointStatisticsStore } from './endpoint-statistics.ts';

const ROWS_MAX = { minutes: 1_000, quarters: 1_000 };

describeStores('daily statistics of endpoints', ({ open }) => {
  test('are sums of the quarter hours of all nodes, are kept when these are deleted, and expire after a month', async () => {
    const { queries, engine } = await open();
    const store = endpointStatisticsStore(queries, engine);
    const nowMs = await store.now(Date.now());
    const today = Math.floor(nowMs / 86_400_000);
    const row = (day: number, quarter: number, successes: number) => ({
      endpoint_id: 'e',
      span: 15,
      start: day * 1_440 + quarter * 15,
      successes,
      errors: 1,
      rate_limited: 2,
      tool_calls: 0,
      tool_calls_valid: 0,
      sketches: '',
    });
    await store.save('one', [row(today - 1, 3, 10), row(today - 1, 95, 20), row(today, 0, 5)], nowMs);
    await store.save('two', [row(today - 1, 3, 100)], nowMs);
    const old = { endpoint_id: 'e', day: today - 30, successes: 1, errors: 0, rate_limited: 0 };
    await queries
      .insertInto('endpoint_days')
      .values([old, { ...old, day: today - 29 }])
      .execute();
    await store.sweep(nowMs, ROWS_MAX);
    const expected = [
      [today - 29, 1, 0, 0],
      [today - 1, 130, 3, 6],
      [today, 5, 1, 2],
    ];
    const days = async () =>
      (await store.listDays(['e'], 0)).map(({ day, successes, errors, rate_limited }) => [
        day,
        successes,
        errors,
        rate_limited,
      ]);
    expect(await days()).toEqual(expected);
    await queries.deleteFrom('endpoint_statistics').where('run', '=', 'two').execute();
    await store.sweep(nowMs, ROWS_MAX);
    expect(await days()).toEqual(expected);
    expect(await store.listDays(['another'], 0)).toEqual([]);
  });
});
