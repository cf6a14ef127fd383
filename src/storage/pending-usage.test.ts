import { expect, test } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { registerNode } from '../../test/ledger/registered-node.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { type Settle, toSettle } from '../ledger/settle.ts';
import { analyticsStore } from './analytics.ts';
import { ledgerStore } from './ledger.ts';
import { ledgerOperations } from './ledger-operations.ts';
import type { Queries } from './queries.ts';
import { hourOf } from './usage-rows.ts';
import { verifyLedger } from './verify-ledger.ts';

const ORGANIZATION = '1e0f5a4c-9f43-4b7a-3c1b-6f2c1d1e0c8f';
const FROM = hourOf('2026-11-01T00:00:00.000Z');

const sumOf = async (queries: Queries, starts: 'whole' | 'hours' = 'whole') => {
  const query = { organization_id: ORGANIZATION, filters: [], groups: [], from: FROM, to: FROM + 30 * 24, starts };
  const bounds = { histograms: [], rows_max: 10_000, groups_max: 1_000 };
  const rows = await analyticsStore(queries).sum({ ...query, ...bounds, measures: ['requests', 'usage_nano'] });
  return rows.reduce((sum, { sums }) => sum + (sums['usage_nano'] ?? 0) + 1e6 * (sums['requests'] ?? 0), 0);
};

const callsOf = (name: string, count: number): Settle[] =>
  Array.from({ length: count }, (_, index) => {
    const createdAt = `2026-11-21T1${index % 3}:00:00.000Z`;
    return toSettle(
      generation({ id: `${name}-${index}`, cost_nano: 5, created_at: createdAt, key_hash: `k${index % 4}` }),
      [],
    );
  });

describeStores('pending sums of usage', ({ open, engine }) => {
  const nodeOf = async (queries: Queries, node = 'n') => {
    const ledger = ledgerStore(queries, engine);
    const { epoch } = await registerNode(ledger, node);
    let number = 0;
    return async (...settles: Settle[]) => {
      number += 1;
      const answer = await ledger.settle({ node, epoch, number, at: 2, settles, windows: [], divisor: 2 });
      expect(answer.is).toBe('applied');
    };
  };
  const pendingOf = async (queries: Queries) =>
    (await queries.selectFrom('analytics_pending').select('batch').orderBy('batch').execute()).map(
      ({ batch }) => batch,
    );

  test('a batch stores its sums in one row, and a reader of sums first adds all pending rows', async () => {
    const { queries } = await open();
    const settle = await nodeOf(queries);
    await settle(...callsOf('a', 20));
    await settle(...callsOf('b', 1));
    expect(await pendingOf(queries)).toEqual([1, 2]);
    expect(await queries.selectFrom('analytics_usage').selectAll().execute()).toEqual([]);
    expect((await verifyLedger(queries)).differences).toEqual([]);
    expect(await sumOf(queries)).toBe(21_000_105);
    expect(await pendingOf(queries)).toEqual([]);
    await settle(...callsOf('c', 10));
    expect((await verifyLedger(queries)).differences).toEqual([]);
    expect(await sumOf(queries, 'hours')).toBe(31_000_155);
    expect((await verifyLedger(queries)).differences).toEqual([]);
  });

  test('several processes that add pending sums concurrently add each batch once', async () => {
    const { queries } = await open();
    const settle = await nodeOf(queries);
    for (let batch = 0; batch < 5; batch += 1) await settle(...callsOf(`a${batch}`, 8));
    const sums = await Promise.all([sumOf(queries), sumOf(queries), sumOf(queries)]);
    expect(sums).toEqual([40_000_200, 40_000_200, 40_000_200]);
    expect((await verifyLedger(queries)).differences).toEqual([]);
  });

  test('a node adds pending sums of all nodes after some batches', async () => {
    const { queries } = await open();
    await (await nodeOf(queries, 'lost'))(...callsOf('lost', 3));
    const settle = await nodeOf(queries);
    for (let batch = 0; batch < 64; batch += 1) await settle(...callsOf(`a${batch}`, 1));
    expect(await pendingOf(queries)).toEqual([]);
    expect((await verifyLedger(queries)).differences).toEqual([]);
    expect(await sumOf(queries)).toBe(67_000_335);
  });

  test('a correction of a call with pending sums is kept', async () => {
    const { queries } = await open();
    const settle = await nodeOf(queries);
    await settle(toSettle(generation({ id: 'a', outcome: 'unknown', cost_nano: 5 }), []), ...callsOf('b', 2));
    const operations = ledgerOperations(queries, engine);
    const call = await operations.findResolvable('a');
    await operations.resolve(call!, { cost_nano: 2, reason: 'r', at: '2026-11-22T00:00:00.000Z' });
    expect((await verifyLedger(queries)).differences).toEqual([]);
    expect(await sumOf(queries)).toBe(3_000_012);
    expect((await verifyLedger(queries)).differences).toEqual([]);
  });

  test('verify reports pending sums that differ from their calls', async () => {
    const { queries } = await open();
    const settle = await nodeOf(queries);
    await settle(toSettle(generation({ id: 'a', cost_nano: 5, byok_cost_nano: 7 }), []));
    await queries.updateTable('analytics_pending').set({ sums: '[]' }).execute();
    expect((await verifyLedger(queries)).differences).toMatchObject([
      { of: 'analytics', expected: 5, actual: 0 },
      { of: 'total', expected: 7, actual: 0 },
    ]);
  });
});
