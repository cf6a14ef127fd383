import { expect, test } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { registerNode } from '../../test/ledger/registered-node.ts';
import { spendingNode } from '../../test/ledger/spending.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { Random } from '../../test/simulation/random.ts';
import { toSettle } from '../ledger/settle.ts';
import { HISTOGRAMS } from '../ledger/usage-facts.ts';
import { activityStore } from './activity.ts';
import { analyticsStore, QueryTooLarge, type UsageQuery } from './analytics.ts';
import { ledgerStore } from './ledger.ts';
import { ledgerOperations } from './ledger-operations.ts';
import type { Queries } from './queries.ts';
import { hourOf, OTHER } from './usage-rows.ts';
import { verifyLedger } from './verify-ledger.ts';

const ORGANIZATION = '1e0f5a4c-9f43-4b7a-3c1b-6f2c1d1e0c8f';
const FROM = hourOf('2026-11-01T00:00:00.000Z');

function query(over: Partial<UsageQuery>): UsageQuery {
  const range = { from: FROM, to: FROM + 30 * 24, starts: 'whole' as const };
  const read = { measures: ['requests', 'usage_nano'] as const, histograms: [], rows_max: 1_000, groups_max: 1_000 };
  return { organization_id: ORGANIZATION, filters: [], groups: [], ...range, ...read, ...over };
}

async function forget(queries: Queries): Promise<void> {
  for (const table of [
    'analytics_usage',
    'analytics_histograms',
    'analytics_series',
    'analytics_pending',
    'organization_usage',
  ] as const) {
    await queries.deleteFrom(table).execute();
  }
  await queries.updateTable('ledger_generations').set({ series: null }).execute();
}

describeStores('sums of usage', ({ open }) => {
  test('generations of an older version are counted in portions, once, with their corrections', async () => {
    const database = await open();
    const { queries, engine } = database;
    const settle = await spendingNode(database);
    const ids = Array.from({ length: 450 }, (_, index) => `g${index}`);
    await settle(
      ...ids.map((id, index) => ({
        id,
        cost_nano: index,
        outcome: index === 7 ? ('unknown' as const) : ('completed' as const),
      })),
    );
    const expected = await analyticsStore(queries).sum(query({}));
    expect(expected).toEqual([{ start: FROM, values: [], sums: { requests: 450, usage_nano: 101_025 } }]);
    await forget(queries);
    const operations = ledgerOperations(queries, engine);
    const doubtful = await operations.findResolvable('g7');
    await operations.resolve(doubtful!, { cost_nano: 1_007, reason: 'r', at: '2026-11-22T00:00:00.000Z' });
    expect(await activityStore(queries).sumUsage(ORGANIZATION)).toBe(102_025);
    const stores = [analyticsStore(queries), analyticsStore(queries)];
    while ((await Promise.all(stores.map((store) => store.countPortion()))).some((count) => count > 0));
    expect((await stores[0]!.sum(query({})))[0]?.sums).toEqual({ requests: 450, usage_nano: 102_025 });
    expect(await activityStore(queries).sumUsage(ORGANIZATION)).toBe(102_025);
    expect((await verifyLedger(queries)).differences).toEqual([]);
  });

  test('a correction changes the hour, the day and the organization’s sum that counted the call', async () => {
    const database = await open();
    const { queries, engine } = database;
    const settle = await spendingNode(database);
    await settle({ id: 'a', outcome: 'unknown', cost_nano: 5, tags: ['x'] }, { id: 'b', cost_nano: 7 });
    await settle({ id: 'c', outcome: 'unknown', byok_cost_nano: 9 });
    const operations = ledgerOperations(queries, engine);
    for (const id of ['a', 'c']) {
      const call = await operations.findResolvable(id);
      await operations.resolve(call!, { cost_nano: 2, reason: 'r', at: '2026-11-22T00:00:00.000Z' });
    }
    const rows = await analyticsStore(queries).sum(
      query({ groups: ['tags'], measures: ['usage_nano', 'byok_usage_nano'] }),
    );
    expect(new Map(rows.map(({ values, sums }) => [values[0], sums]))).toEqual(
      new Map([
        ['x', { usage_nano: 2, byok_usage_nano: 0 }],
        ['', { usage_nano: 7, byok_usage_nano: 2 }],
      ]),
    );
    expect(await activityStore(queries).sumUsage(ORGANIZATION)).toBe(9);
    expect((await verifyLedger(queries)).differences).toEqual([]);
  });

  test('values of callers are bounded for each hour; the rest is one value, and every call counts', async () => {
    const database = await open();
    const settle = await spendingNode(database);
    const calls = Array.from({ length: 250 }, (_, index) => ({ id: `g${index}`, cost_nano: 1, title: `app ${index}` }));
    await settle(...calls.slice(0, 150));
    await settle(...calls.slice(150), { id: 'again', cost_nano: 1, title: 'app 0' });
    const rows = await analyticsStore(database.queries).sum(query({ groups: ['app'] }));
    const sums = new Map(rows.map(({ values, sums: { usage_nano } }) => [values[0], usage_nano]));
    expect(sums.size).toBe(101);
    expect([sums.get(OTHER), sums.get('app 0')]).toEqual([150, 2]);
    expect((await verifyLedger(database.queries)).differences).toEqual([]);
  });

  test('a resent batch, and a generation in two batches, count once', async () => {
    const { queries, engine } = await open();
    const store = ledgerStore(queries, engine);
    const { epoch } = await registerNode(store, 'n');
    const settles = ['a', 'b'].map((id) => toSettle(generation({ id, cost_nano: 5 }), []));
    const batch = { node: 'n', epoch, number: 1, at: 2, settles, windows: [], divisor: 2 };
    await store.settle(batch);
    await store.settle(batch);
    const more = toSettle(generation({ id: 'c', cost_nano: 6 }), []);
    await store.settle({ ...batch, number: 2, settles: [...settles, more] });
    expect((await analyticsStore(queries).sum(query({})))[0]?.sums).toEqual({ requests: 3, usage_nano: 16 });
    for (const starts of ['hours', 'days'] as const) {
      const buckets = await analyticsStore(queries).sumBuckets(query({ starts, histograms: [HISTOGRAMS.latency] }));
      expect(buckets.flatMap(({ calls }) => calls).reduce((sum, calls) => sum + calls, 0)).toBe(3);
    }
  });

  test('histograms of hours, days and a range that begins and ends within a day count each call in its bucket', async () => {
    const database = await open();
    const settle = await spendingNode(database);
    const random = new Random(7);
    const calls = Array.from({ length: 400 }, (_, index) => {
      const hour = FROM + Math.floor(random.next() * 24 * 5);
      return {
        id: `g${index}`,
        cost_nano: 1,
        created_at: new Date(hour * 3_600_000 + 1).toISOString(),
        title: `app ${index % 3}`,
        generation_time: Math.round(1.2 ** (random.next() * 60)),
      };
    });
    // In two portions, so that rows that exist are raised.
    const store = analyticsStore(database.queries);
    await settle(...calls.slice(0, 200));
    await store.sumBuckets(query({ histograms: [HISTOGRAMS.latency] }));
    await settle(...calls.slice(200));
    const [from, to] = [FROM + 7, FROM + 4 * 24 + 5];
    for (const starts of ['hours', 'days', 'whole'] as const) {
      const wanted = new Map<string, number>();
      for (const call of calls) {
        const hour = hourOf(call.created_at);
        if (hour < from || hour >= to) continue;
        const start = starts === 'hours' ? hour : starts === 'days' ? hour - (hour % 24) : from;
        const { usage } = toSettle(generation(call), []);
        for (const [metric, bucket] of usage.buckets) {
          const name = `${start} ${call.title} ${metric} ${bucket}`;
          wanted.set(name, (wanted.get(name) ?? 0) + 1);
        }
      }
      const rows = await store.sumBuckets(
        query({ starts, from, to, groups: ['app'], histograms: Object.values(HISTOGRAMS) }),
      );
      const counted = rows.flatMap(({ start, values, metric, first, calls: counts }) =>
        counts.flatMap((count, at) =>
          count === 0 ? [] : [[`${start} ${values[0]} ${metric} ${first + at}`, count] as const],
        ),
      );
      expect(new Map(counted)).toEqual(wanted);
    }
  });

  test('a store that was reset gets series again that the node had stored before', async () => {
    const { queries, engine } = await open();
    const store = ledgerStore(queries, engine);
    const settle = async (epoch: number, id: string) => {
      const settles = [toSettle(generation({ id, cost_nano: 5 }), [])];
      return store.settle({ node: 'n', epoch, number: 1, at: 2, settles, windows: [], divisor: 2 });
    };
    const first = await registerNode(store, 'n');
    await settle(first.epoch, 'a');
    await forget(queries);
    await queries.deleteFrom('ledger_generations').execute();
    const second = await registerNode(store, 'n');
    expect((await settle(second.epoch, 'b')).is).toBe('applied');
    expect((await analyticsStore(queries).sum(query({})))[0]?.sums).toEqual({ requests: 1, usage_nano: 5 });
  });

  test('a range may begin and end within a day; a query that would read too much is refused', async () => {
    const database = await open();
    const settle = await spendingNode(database);
    const at = (hour: number) => new Date(hour * 3_600_000 + 60_000).toISOString();
    const hours = Array.from({ length: 120 }, (_, index) => FROM + index);
    await settle(...hours.map((hour) => ({ id: `g${hour}`, cost_nano: 1, created_at: at(hour) })));
    const store = analyticsStore(database.queries);
    for (const [from, to] of [
      [FROM, FROM + 120],
      [FROM + 5, FROM + 100],
      [FROM + 25, FROM + 30],
      [FROM + 24, FROM + 48],
    ] as const) {
      for (const starts of ['whole', 'days', 'hours', [from, FROM + 28]] as const) {
        if (typeof starts !== 'string' && from >= FROM + 28) continue;
        const rows = await store.sum(query({ from, to, starts }));
        expect(rows.reduce((sum, { sums }) => sum + (sums['requests'] ?? 0), 0)).toBe(to - from);
      }
    }
    await expect(store.sum(query({ rows_max: 4 }))).rejects.toThrow(QueryTooLarge);
    expect(await store.sum(query({ rows_max: 5 }))).toHaveLength(1);
  });

  test('a filter on a list value matches among others, and treats no character as a pattern', async () => {
    const database = await open();
    const settle = await spendingNode(database);
    await settle(
      { id: 'a', cost_nano: 1, tags: ['a_b', 'z'] },
      { id: 'b', cost_nano: 2, tags: ['aXb'] },
      { id: 'c', cost_nano: 4 },
      { id: 'd', cost_nano: 8, tags: ['z'] },
    );
    const store = analyticsStore(database.queries);
    const spent = async (is: 'in' | 'not_in', ...values: string[]) => {
      const [row] = await store.sum(query({ filters: [{ column: 'tags', isList: true, is, values }] }));
      return row?.sums['usage_nano'];
    };
    expect(await spent('in', 'a_b')).toBe(1);
    expect(await spent('in', 'z')).toBe(9);
    expect(await spent('in', 'aXb', '')).toBe(6);
    expect(await spent('not_in', 'z', '')).toBe(2);
    expect(await spent('in', '%')).toBeUndefined();
  });
});
