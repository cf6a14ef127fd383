import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { spendingNode } from '../../../test/ledger/spending.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import type { GenerationRecord } from '../../ledger/records.ts';
import { analyticsStore } from '../../storage/analytics.ts';
import { ledgerOperations } from '../../storage/ledger-operations.ts';
import { verifyLedger } from '../../storage/verify-ledger.ts';
import { getAnalyticsMeta } from './get-analytics-meta.ts';
import { DIMENSIONS } from './metrics.ts';
import { queryAnalytics } from './query-analytics.ts';
import type { QueryBounds } from './run-query.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const BOUNDS = { rows_max: 10_000, groups_max: 10_000, calls_max: 1_000 };
const MONTH = { start: '2026-11-01T00:00:00Z', end: '2026-11-22T00:00:00Z' };

type Row = Record<string, string | number | null>;

/** A number generator that repeats its numbers in each run. */
function drawn(seed: number) {
  let state = seed;
  return (count: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
}

describeStores('analytics', ({ open }) => {
  async function setUp(bounds: QueryBounds = BOUNDS) {
    const database = await open();
    const made = await managementServer(database, NOW);
    const analytics = analyticsStore(database.queries);
    getAnalyticsMeta(made.server);
    queryAnalytics(made.server, {
      analytics,
      recorder: { flush: async () => {} },
      now: made.now,
      queryBounds: bounds,
    });
    const spend = await spendingNode(database);
    const settle = (...calls: (Partial<GenerationRecord> & { id: string })[]) => {
      const { organization_id, default_workspace_id: workspaceId } = made.home;
      return spend(...calls.map((call) => ({ organization_id, workspace_id: workspaceId, ...call })));
    };
    const ask = async (query: object, credential = 'management') => {
      const { status, body } = await made.call('POST', '/analytics/query', query, credential);
      return { status, body, rows: (body['data'] as unknown as { data: Row[] } | undefined)?.data ?? [] };
    };
    return { ...made, database, settle, ask };
  }

  function randomCalls(count: number): (Partial<GenerationRecord> & { id: string; cost_nano: number })[] {
    const draw = drawn(7);
    const pick = <T>(...values: T[]): T => values[draw(values.length)]!;
    return Array.from({ length: count }, (_, index) => ({
      id: `gen-${index}`,
      created_at: new Date(Date.parse('2026-11-01T00:00:00Z') + draw(20 * 86_400_000)).toISOString(),
      cost_nano: draw(1_000_000_007),
      byok_cost_nano: draw(3) === 0 ? draw(1_000) : 0,
      key_hash: pick('k1', 'k2', 'k3'),
      user_id: pick('u1', 'u2', null),
      model: pick('a/one', 'b/two', 'c/three'),
      provider_name: pick('A', 'B', null),
      outcome: pick('completed', 'failed', 'cancelled', 'unknown'),
      title: pick('app', 'tool', null),
      http_referer: null,
      tags: pick(undefined, ['x'], ['x', 'y']) as string[],
      external_user: pick('e1', null),
      streamed: draw(2) === 0,
      latency: pick(null, draw(5_000)),
      usage: pick(null, { in_uncached: draw(1_000), in_cache_read: draw(1_000), out_text: draw(1_000) }),
    }));
  }

  test('the sums of random calls, by each dimension and granularity, are exactly those of the ledger', async () => {
    const { ask, settle, database } = await setUp();
    const calls = randomCalls(300);
    for (let at = 0; at < calls.length; at += 60) await settle(...calls.slice(at, at + 60));
    const operations = ledgerOperations(database.queries, database.engine);
    for (const { id } of calls.filter(({ outcome }) => outcome === 'unknown').slice(0, 10)) {
      const call = await operations.findResolvable(id);
      if (call?.is_byok === false) await operations.resolve(call, { cost_nano: 3, reason: 'r', at: NOW });
    }
    const { rows: activity } = await database.queries
      .selectFrom('activity_days')
      .select(['usage_nano', 'byok_usage_nano', 'requests', 'prompt_tokens'])
      .execute()
      .then((rows) => ({ rows }));
    const total = (name: keyof (typeof activity)[number]) => activity.reduce((sum, row) => sum + row[name], 0);
    const expected = [total('usage_nano'), total('byok_usage_nano'), total('requests'), total('prompt_tokens')];
    const metrics = ['credits_usage', 'byok_usage', 'request_count', 'tokens_prompt'];
    const sumsOf = (rows: Row[]) =>
      metrics.map((name) =>
        rows.reduce((sum, row) => {
          const value = Number(row[name]);
          return sum + (name.endsWith('usage') ? Math.round(value * 1e9) : value);
        }, 0),
      );
    const query = { metrics, time_range: MONTH, limit: 10_000 };
    for (const granularity of ['hour', 'day', 'week', 'month', undefined]) {
      expect(sumsOf((await ask({ ...query, granularity })).rows)).toEqual(expected);
    }
    for (const name of DIMENSIONS.keys()) {
      if (name === 'tag') continue;
      expect([
        name,
        ...sumsOf((await ask({ ...query, dimensions: [name, 'model'].slice(0, name === 'model' ? 1 : 2) })).rows),
      ]).toEqual([name, ...expected]);
    }
    const { rows: tagged } = await ask({ ...query, dimensions: ['tag'] });
    const count = (tag: string) => calls.filter(({ tags }) => tags?.includes(tag)).length;
    expect(new Map(tagged.map((row) => [row['tag'], row['request_count']]))).toEqual(
      new Map<string | null | undefined, number>([
        ['x', count('x')],
        ['y', count('y')],
        [null, calls.filter(({ tags }) => tags === undefined).length],
      ]),
    );
    expect((await verifyLedger(database.queries)).differences).toEqual([]);
    const day = { start: '2026-11-05T00:00:00Z', end: '2026-11-06T00:00:00Z' };
    const { rows: minutes } = await ask({ ...query, time_range: day, granularity: 'minute' });
    expect(minutes[0]).toMatchObject({ created_at__minute: expect.stringMatching(/^2026-11-05T\d\d:\d\d:00Z$/) });
    expect(sumsOf(minutes)).toEqual(sumsOf((await ask({ ...query, time_range: day })).rows));
  });

  test('rates and percentiles include all calls of a row, and are null if there are none', async () => {
    const { ask, settle } = await setUp();
    const usage = { in_uncached: 30, in_cache_read: 10, out_text: 100 };
    const latencies = Array.from({ length: 100 }, (_, index) => ({
      id: `g${index}`,
      cost_nano: 1,
      generation_time: (index + 1) * 10,
      usage,
      outcome: index < 5 ? ('failed' as const) : ('completed' as const),
    }));
    await settle(...latencies, {
      id: 'whole',
      cost_nano: 1,
      model: 'b/two',
      streamed: false,
      usage: null,
      generation_time: null,
    });
    const metrics = [
      'p50_latency',
      'p99_latency',
      'avg_latency',
      'p50_ttft',
      'cache_hit_rate',
      'error_rate',
      'avg_throughput',
    ];
    const { rows } = await ask({ metrics, dimensions: ['model'], order_by: { field: 'model', direction: 'asc' } });
    // A year is answered from the rows of days.
    const year = { start: '2026-01-01T00:00:00Z', end: '2026-12-01T00:00:00Z' };
    expect((await ask({ metrics: ['p50_latency'], filters: [], time_range: year })).rows).toEqual([
      { p50_latency: rows[0]?.['p50_latency'] },
    ]);
    expect(rows[0]).toMatchObject({ model: 'acme/fast-1', avg_latency: 505, cache_hit_rate: 0.25, error_rate: 0.05 });
    expect(rows[0]?.['avg_throughput']).toBeCloseTo(10_000 / 50.5);
    for (const [name, value] of [
      ['p50_latency', 500],
      ['p99_latency', 990],
      ['p50_ttft', 412],
    ] as const) {
      expect(Math.abs(Number(rows[0]?.[name]) / value - 1)).toBeLessThan(0.051);
    }
    expect(rows[1]).toEqual({
      model: 'b/two',
      p50_latency: null,
      p99_latency: null,
      avg_latency: null,
      p50_ttft: null,
      cache_hit_rate: null,
      error_rate: 0,
      avg_throughput: null,
    });
  });

  test('queries apply filters, order and limits, and rows have names', async () => {
    const { ask, settle, addKey } = await setUp();
    const key = await addKey({ name: 'build' });
    const at = (day: number) => ({ created_at: `2026-11-${day}T09:30:00.000Z` });
    await settle(
      { id: 'a', cost_nano: 1e9, key_hash: key.hash, model: 'a/one', ...at(19) },
      { id: 'b', cost_nano: 2e9, key_hash: key.hash, model: 'b/two', ...at(20) },
      { id: 'c', cost_nano: 4e9, key_hash: 'other', model: 'b/two', user_id: null, ...at(21) },
    );
    const spent = async (query: object) =>
      (await ask({ metrics: ['credits_usage'], ...query })).rows.map((row) => row['credits_usage']);
    const filter = (field: string, operator: string, value: unknown, more = {}) => ({
      filters: [{ field, operator, value, ...more }],
    });
    expect(await spent({})).toEqual([7]);
    expect(await spent(filter('api_key_id', 'eq', key.hash))).toEqual([3]);
    expect(await spent(filter('api_key_id', 'in', [key.id]))).toEqual([3]);
    expect(await spent(filter('api_key_id', 'eq', 999_999))).toEqual([]);
    expect(await spent(filter('model', 'not_in', ['a/one']))).toEqual([6]);
    expect(await spent(filter('user', 'neq', 'x'))).toEqual([3]);
    expect(await spent(filter('user', 'neq', 'x', { include_unset: true }))).toEqual([7]);
    expect(await spent({ ...filter('credits_usage', 'gte', 2), dimensions: ['model'] })).toEqual([6]);
    const byModel = { dimensions: ['model'], granularity: 'day' };
    expect(await spent(byModel)).toEqual([1, 2, 4]);
    expect(await spent({ ...byModel, order_by: { field: 'credits_usage', direction: 'desc' }, limit: 2 })).toEqual([
      4, 2,
    ]);
    const { rows, body } = await ask({ metrics: ['credits_usage'], ...byModel, group_limit: 1 });
    expect(rows).toEqual([
      { date__day: '2026-11-19', model: 'a/one', credits_usage: 1 },
      { date__day: '2026-11-20', model: 'b/two', credits_usage: 2 },
    ]);
    expect(body['data']).toMatchObject({ metadata: { row_count: 2, truncated: true } });
    expect((await ask({ metrics: ['request_count'], dimensions: ['api_key_id'] })).rows).toEqual([
      { api_key_id: key.hash, api_key_name: 'build', request_count: 2 },
      { api_key_id: 'other', api_key_name: null, request_count: 1 },
    ]);
  });

  test('a member sees the usage of its own keys, an administrator that of the organization, others nothing', async () => {
    const { ask, settle, principals, sessionOf, home } = await setUp();
    await settle({ id: 'a', user_id: home.owner_user_id, cost_nano: 1 }, { id: 'b', user_id: 'u2', cost_nano: 2 });
    principals['member'] = await sessionOf('member');
    principals['admin'] = await sessionOf('admin');
    const query = { metrics: ['request_count'], dimensions: ['user'] };
    const users = async (credential: string) => (await ask(query, credential)).rows.map((row) => row['user']);
    expect(await users('member')).toEqual([home.owner_user_id]);
    expect((await users('admin')).length).toBe(2);
    expect(await users('foreign')).toEqual([]);
    const all = { filters: [{ field: 'user', operator: 'neq', value: 'x', include_unset: true }] };
    expect((await ask({ ...query, ...all }, 'member')).rows).toHaveLength(1);
    expect(
      (
        await ask(
          {
            ...query,
            granularity: 'minute',
            time_range: { start: '2026-11-21T09:30:00Z', end: '2026-11-21T10:30:00Z' },
          },
          'member',
        )
      ).rows,
    ).toHaveLength(1);
    expect((await ask(query, 'ordinary')).status).toBe(403);
    expect((await ask(query, '')).status).toBe(401);
  });

  test.each<[string, object, RegExp]>([
    ['no metric', {}, /metrics/],
    ['an unknown metric', { metrics: ['cost'] }, /metrics/],
    ['three dimensions', { metrics: ['request_count'], dimensions: ['model', 'user', 'app'] }, /dimensions/],
    ['an unknown field', { metrics: ['request_count'], group_by: 'model' }, /group_by/],
    [
      'a range of two years',
      { time_range: { start: '2024-11-21T00:00:00Z', end: '2026-11-21T00:00:00Z' } },
      /^time_range must be at most 366 days/,
    ],
    [
      'a year by hour',
      { granularity: 'hour', time_range: { start: '2026-01-01T00:00:00Z', end: '2026-11-21T00:00:00Z' } },
      /^time_range must be at most 31 days/,
    ],
    [
      'two days by minute',
      { granularity: 'minute', time_range: { start: '2026-11-01T00:00:00Z', end: '2026-11-03T00:00:00Z' } },
      /^time_range must be at most 24 hours/,
    ],
    [
      'a time without a zone',
      { time_range: { start: '2026-11-01T00:00:00', end: '2026-11-03T00:00:00Z' } },
      /^time_range\.start must be/,
    ],
    [
      'an end before the start',
      { time_range: { start: '2026-11-03T00:00:00Z', end: '2026-11-01T00:00:00Z' } },
      /^time_range\.end must be after/,
    ],
    [
      'an order by a field that the rows lack',
      { order_by: { field: 'model', direction: 'asc' } },
      /^order_by\.field must be one of/,
    ],
    [
      'a filter on an unknown field',
      { filters: [{ field: 'x', operator: 'eq', value: 1 }] },
      /^filters\[0\]\.field must be/,
    ],
    [
      'a list for eq',
      { filters: [{ field: 'model', operator: 'eq', value: ['a'] }] },
      /^filters\[0\]\.value must be a single/,
    ],
    [
      'one value for in',
      { filters: [{ field: 'model', operator: 'in', value: 'a' }] },
      /^filters\[0\]\.value must be a list/,
    ],
    [
      'more than on a dimension',
      { filters: [{ field: 'model', operator: 'gt', value: 'a' }] },
      /^filters\[0\]\.operator must be/,
    ],
    [
      'a text for a metric',
      { filters: [{ field: 'request_count', operator: 'gt', value: 'a' }] },
      /^filters\[0\]\.value must be a number/,
    ],
  ])('400: %s', async (title, query, message) => {
    const { ask } = await setUp();
    const metrics = title === 'no metric' ? {} : { metrics: ['request_count'] };
    const { status, body } = await ask({ ...metrics, ...query });
    expect([status, (body['error'] as { message: string } | undefined)?.message]).toEqual([
      400,
      expect.stringMatching(message),
    ]);
  });

  test('408: a query that would read too much', async () => {
    const { ask, settle } = await setUp({ rows_max: 2, groups_max: 2, calls_max: 2 });
    await settle(...['a', 'b', 'c'].map((id) => ({ id, cost_nano: 1, model: id })));
    for (const granularity of ['day', 'hour', 'minute']) {
      expect(await ask({ metrics: ['request_count'], granularity })).toMatchObject({
        status: 408,
        body: { error: { message: expect.stringMatching(/Shorten time_range/) } },
      });
    }
  });

  test('the list of metrics and dimensions names what queries accept', async () => {
    const { ask, call } = await setUp();
    const { data } = (await call('GET', '/analytics/meta')).body as unknown as {
      data: Record<'metrics' | 'dimensions' | 'granularities' | 'operators', { name: string }[]>;
    };
    for (const { name } of data.dimensions) {
      expect((await ask({ metrics: ['request_count'], dimensions: [name] })).status).toBe(200);
    }
    for (const { name } of data.metrics) expect((await ask({ metrics: [name] })).status).toBe(200);
    expect(data.operators).toHaveLength(8);
    expect((await call('GET', '/analytics/meta', undefined, 'ordinary')).status).toBe(403);
  });
});
