import { expect, test } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { registerNode } from '../../test/ledger/registered-node.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import type { GenerationRecord } from '../ledger/records.ts';
import { type SettleBatch, toSettle } from '../ledger/settle.ts';
import { auditStore } from './audit.ts';
import type { Database } from './database.ts';
import { ledgerStore } from './ledger.ts';
import { ledgerOperations } from './ledger-operations.ts';
import { organizationStore } from './organizations.ts';
import { PendingUsage } from './pending-usage.ts';
import type { Queries } from './queries.ts';
import { retentionStore, SweepLost, type SweepPlace } from './retention.ts';
import { verifyLedger } from './verify-ledger.ts';

const AT = Date.parse('2026-11-23T12:00:00.000Z');
const BEFORE = '2026-11-01T00:00:00.000Z';
const PORTION = 20;
const BUDGET = 'key:k:daily';
const SWEEP = { kind: 'generations', owner: 'one', at: AT } as const;
const WINDOWS = { kind: 'closed_windows', owner: 'one', at: AT } as const;

type Call = Partial<GenerationRecord> & { id: string };

/** A node of the ledger that charges a daily budget and can send the same batches again. */
async function nodeOf({ queries, engine }: Database, name = 'n') {
  const store = ledgerStore(queries, engine);
  let { epoch } = await registerNode(store, name);
  let number = 0;
  const batchOf = (calls: readonly Call[], isNew: boolean): SettleBatch => {
    number += 1;
    const settles = calls.map((call) => {
      const record = generation(call);
      const charge = { budget_id: BUDGET, window_start: record.created_at.slice(0, 10), cover: 0 };
      return toSettle(record, [{ ...charge, amount: record.cost_nano }]);
    });
    const names = new Set(settles.flatMap(({ charges }) => charges.map(({ window_start }) => window_start)));
    const nothing = { own: 0, returned: 0, need: 0, want: 0, slack: 0, withdraws: false };
    const windows = [...names].map((name) => ({ budget_id: BUDGET, window_start: name, is_new: isNew, ...nothing }));
    return { node: name, epoch, number, at: AT, settles, windows, divisor: 2 };
  };
  return {
    settle: (calls: readonly Call[], isNew = true) => store.settle(batchOf(calls, isNew)),
    /** Like a start with an older journal. */
    registerAgain: async () => {
      ({ epoch } = await registerNode(store, name, { epoch_seen: epoch }));
      number = 0;
    },
  };
}

/** Calls of twenty days of October, at 2,000 nano-USD and more each. */
function callsOf(count: number, name = 'g'): Call[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${name}-${index}`,
    created_at: new Date(Date.parse('2026-10-01T00:00:00.000Z') + index * 4_000_000).toISOString(),
    cost_nano: 2_000 + index,
    tags: [`t${index % 3}`],
  }));
}

/** All sums that the deletion of generations must not change. */
async function sumsOf(queries: Queries) {
  await new PendingUsage(queries).addAll();
  const sorted = (rows: object[]) => rows.map((row) => JSON.stringify(row)).sort();
  return {
    windows: sorted(await queries.selectFrom('ledger_windows').select(['window_start', 'spent']).execute()),
    days: sorted(await queries.selectFrom('usage_days').selectAll().execute()),
    activity: sorted(await queries.selectFrom('activity_days').selectAll().execute()),
    usage: sorted(await queries.selectFrom('analytics_usage').selectAll().execute()),
    histograms: sorted(await queries.selectFrom('analytics_histograms').selectAll().execute()),
    total: sorted(await queries.selectFrom('organization_usage').selectAll().execute()),
  };
}

async function idsOf(queries: Queries): Promise<string[]> {
  const rows = await queries.selectFrom('ledger_generations').select('id').orderBy('admitted_at').execute();
  return rows.map(({ id }) => id);
}

/** Deletes all, and verifies the ledger after each portion. */
async function sweepAll(database: Database): Promise<number> {
  const store = retentionStore(database, PORTION);
  if (!(await store.claim(SWEEP, BEFORE))) throw new Error('not claimed');
  let deleted = 0;
  let place: SweepPlace;
  do {
    const portion = await store.sweep(SWEEP, BEFORE, place);
    deleted += portion.deleted;
    place = portion.next;
    expect((await verifyLedger(database.queries)).differences).toEqual([]);
  } while (place !== undefined);
  await store.release(SWEEP, new Date(AT).toISOString());
  return deleted;
}

async function sweepWindows(database: Database): Promise<number> {
  const store = retentionStore(database, PORTION);
  await store.claim(WINDOWS, '2026-11-20T00:00:00.000Z');
  let deleted = 0;
  let place: SweepPlace;
  do {
    const portion = await store.sweep(WINDOWS, '2026-11-20T00:00:00.000Z', place);
    deleted += portion.deleted;
    place = portion.next;
  } while (place !== undefined);
  return deleted;
}

describeStores('deletion by retention settings', ({ open }) => {
  test('deletes generations in portions, keeps every sum, and the ledger is consistent after each portion', async () => {
    const database = await open();
    const { queries } = database;
    const [one, two] = [await nodeOf(database), await nodeOf(database, 'm')];
    await one.settle(callsOf(35));
    await two.settle([
      ...callsOf(9, 'h').map((call) => ({ ...call, organization_id: 'other', key_hash: 'other' })),
      { id: 'new', created_at: '2026-11-20T00:00:00.000Z' },
    ]);
    const before = await sumsOf(queries);
    expect(await sweepAll(database)).toBe(44);
    expect(await idsOf(queries)).toEqual(['new']);
    expect(await sumsOf(queries)).toEqual(before);
    expect(await verifyLedger(queries)).toMatchObject({ generations: 45, differences: [] });
    expect(await retentionStore(database, PORTION).states()).toEqual([
      { kind: 'generations', deleted: 44, deleted_before: BEFORE, ended_at: '2026-11-23T12:00:00.000Z' },
    ]);
  });

  test('keeps generations with a correctable cost, and those that are not counted yet', async () => {
    const database = await open();
    const { queries, engine } = database;
    const node = await nodeOf(database);
    const [a, b, c, d] = callsOf(4) as [Call, Call, Call, Call];
    const attempt = { ...generation({ id: 'x' }).attempts[0]!, estimated: true as const, is_byok: true };
    await node.settle([{ ...a, outcome: 'unknown' }, { ...b, attempts: [attempt] }, c, d]);
    await queries.updateTable('ledger_generations').set({ series: null }).where('id', '=', c.id).execute();
    const operations = ledgerOperations(queries, engine);
    const store = retentionStore(database, PORTION);
    await store.claim(SWEEP, BEFORE);
    expect(await store.sweep(SWEEP, BEFORE)).toEqual({ deleted: 1, next: undefined });
    expect(await idsOf(queries)).toEqual([a.id, b.id, c.id]);
    await queries.updateTable('ledger_generations').set({ series: 1 }).where('id', '=', c.id).execute();
    const { series } = await queries
      .selectFrom('analytics_series')
      .select('id as series')
      .limit(1)
      .executeTakeFirstOrThrow();
    await queries.updateTable('ledger_generations').set({ series }).where('id', '=', c.id).execute();
    // After the correction of an operator it is deleted, and the correction still counts.
    const doubtful = await operations.findResolvable(a.id);
    await operations.resolve(doubtful!, { cost_nano: 9_000, reason: 'r', at: new Date(AT).toISOString() });
    expect((await store.sweep(SWEEP, BEFORE)).deleted).toBeGreaterThan(0);
    expect(await idsOf(queries)).not.toContain(a.id);
    expect(await operations.findResolvable(a.id)).toBeUndefined();
  });

  test('counts nothing twice if a node with an old journal sends deleted calls again', async () => {
    const database = await open();
    const { queries } = database;
    const node = await nodeOf(database);
    const calls = callsOf(30);
    await node.settle(calls);
    await sweepAll(database);
    const before = await sumsOf(queries);
    await node.registerAgain();
    expect((await node.settle(calls)).is).toBe('applied');
    expect(await sumsOf(queries)).toEqual(before);
    expect(await idsOf(queries)).toEqual([]);
    // Calls that were never sent are counted once, also if they are sent repeatedly with deleted and stored ones.
    const late = callsOf(2, 'late');
    const fresh = [{ id: 'new', created_at: '2026-11-20T00:00:00.000Z', cost_nano: 5 }];
    await node.settle([...calls.slice(0, 3), ...late, ...fresh]);
    await node.registerAgain();
    await node.settle([...late, ...calls, ...fresh]);
    expect(await verifyLedger(queries)).toMatchObject({ generations: 33, differences: [] });
    expect(await idsOf(queries)).toHaveLength(3);
    expect(await retentionStore(database, PORTION).states()).toMatchObject([{ deleted: 30 }]);
  });

  test('deletes calls once while they are sent again concurrently', async () => {
    const database = await open();
    const { queries } = database;
    const node = await nodeOf(database);
    const calls = callsOf(80);
    await node.settle(calls);
    const before = await sumsOf(queries);
    const store = retentionStore(database, PORTION);
    await store.claim(SWEEP, BEFORE);
    const sweep = async () => {
      for (let place: SweepPlace; ; ) {
        place = (await store.sweep(SWEEP, BEFORE, place)).next;
        if (place === undefined) return;
      }
    };
    const sendAgain = async () => {
      for (let turn = 0; turn < 4; turn += 1) {
        await node.registerAgain();
        for (let at = 0; at < calls.length; at += 20) await node.settle(calls.slice(at, at + 20));
      }
    };
    await Promise.all([sweep(), sendAgain()]);
    expect(await sumsOf(queries)).toEqual(before);
    expect(await verifyLedger(queries)).toMatchObject({ generations: 80, differences: [] });
    expect(await idsOf(queries)).toEqual([]);
  });

  test('continues where a killed process stopped, with one owner at a time', async () => {
    const database = await open();
    const { queries } = database;
    await (await nodeOf(database)).settle(callsOf(45));
    const store = retentionStore(database, PORTION);
    const other = { ...SWEEP, owner: 'two' };
    expect(await store.claim(SWEEP, BEFORE)).toBe(true);
    expect(await store.claim(other, BEFORE)).toBe(false);
    await store.sweep(SWEEP, BEFORE);
    await expect(store.sweep(other, BEFORE)).rejects.toThrow(SweepLost);
    expect(await idsOf(queries)).toHaveLength(25);
    // The owner was killed: a minute later another process takes over.
    await queries.updateTable('retention_sweeps').set({ owner_until: 1 }).execute();
    expect(await store.claim(other, BEFORE)).toBe(true);
    await expect(store.sweep(SWEEP, BEFORE)).rejects.toThrow(SweepLost);
    expect(await idsOf(queries)).toHaveLength(25);
    for (let place: SweepPlace; ; ) {
      place = (await store.sweep(other, BEFORE, place)).next;
      if (place === undefined) break;
    }
    await store.release(other, new Date(AT).toISOString());
    expect(await store.states()).toMatchObject([{ deleted: 45 }]);
    expect((await verifyLedger(queries)).differences).toEqual([]);
    expect(await store.claim(SWEEP, BEFORE), 'a complete sweep is not repeated').toBe(false);
    expect(await store.claim(SWEEP, '2026-11-02T00:00:00.000Z')).toBe(true);
  });

  test('deletes closed windows after their generations, and counts a late charge in a new window', async () => {
    const database = await open();
    const { queries } = database;
    const node = await nodeOf(database);
    const calls = callsOf(60);
    await node.settle([...calls, { id: 'new', created_at: '2026-11-20T00:00:00.000Z' }]);
    expect(await sweepWindows(database), 'stored generations explain them').toBe(0);
    await sweepAll(database);
    // One has a reservation, one a correction.
    const set = (window: string, values: { leased: number }) =>
      queries.updateTable('ledger_windows').set(values).where('window_start', '=', window).execute();
    await set('2026-10-01', { leased: 1 });
    const corrected = { budget_id: BUDGET, window_start: '2026-10-02', amount: 0, reason: 'r', created_at: BEFORE };
    await queries
      .insertInto('ledger_adjustments')
      .values({ id: 'a', generation_id: 'g', ...corrected })
      .execute();
    expect(await sweepWindows(database)).toBe(1);
    await set('2026-10-01', { leased: 0 });
    const left = await queries.selectFrom('ledger_windows').select('window_start').orderBy('window_start').execute();
    expect(left.map(({ window_start }) => window_start)).toEqual(['2026-10-01', '2026-10-02', '2026-11-20']);
    expect((await verifyLedger(queries)).differences).toEqual([]);
    // The node still has the window in memory.
    const late = { id: 'late', created_at: '2026-10-03T05:00:00.000Z', cost_nano: 7 };
    expect((await node.settle([late], false)).is).toBe('applied');
    expect(
      await queries.selectFrom('ledger_windows').select('spent').where('window_start', '=', '2026-10-03').execute(),
    ).toEqual([{ spent: 7 }]);
    await node.registerAgain();
    await node.settle([late, ...calls]);
    expect((await verifyLedger(queries)).differences).toEqual([]);
  });

  test.each<[string, (queries: Queries) => Promise<unknown>, string]>([
    ['a charge', (queries) => queries.updateTable('ledger_deleted_charges').set({ amount: 1 }).execute(), 'window'],
    ['a day', (queries) => queries.updateTable('ledger_deleted_days').set({ cost: 1 }).execute(), 'usage'],
    ['a number', (queries) => queries.updateTable('ledger_deleted_days').set({ requests: 9 }).execute(), 'requests'],
    [
      'an hour',
      (queries) => queries.updateTable('analytics_usage').set({ usage_nano: 1 }).where('span', '=', 1).execute(),
      'analytics',
    ],
  ])('verify finds an inconsistency of deleted generations: %s', async (_, plant, of) => {
    const database = await open();
    await (await nodeOf(database)).settle(callsOf(3));
    await sweepAll(database);
    await new PendingUsage(database.queries).addAll();
    await plant(database.queries);
    const { differences } = await verifyLedger(database.queries);
    expect(differences).toContainEqual(expect.objectContaining({ of }));
  });

  test('deletes the oldest audit records', async () => {
    const database = await open();
    const { queries } = database;
    const { organization_id } = await organizationStore(queries).insertFirst({ at: BEFORE });
    await queries.deleteFrom('audit_events').execute();
    const audit = auditStore(queries);
    const actor = { organization_id, actor: 'command', key_hash: null, user_id: null, request_id: null } as const;
    const entry = { action: 'create', resource_type: 'api_key', resource_id: 'k', before: null, after: {} } as const;
    await audit.insert(
      Array.from({ length: 25 }, () => entry),
      actor,
      '2026-10-01T00:00:00.000Z',
    );
    await audit.insert([entry, entry], actor, '2026-11-02T00:00:00.000Z');
    const store = retentionStore(database, PORTION);
    const sweep = { kind: 'audit', owner: 'one', at: AT } as const;
    await store.claim(sweep, BEFORE);
    expect(await store.sweep(sweep, BEFORE)).toEqual({ deleted: 20, next: [] });
    expect(await store.sweep(sweep, BEFORE)).toEqual({ deleted: 5, next: undefined });
    expect(await audit.listBy({ organization_id }, { limit: 10, offset: 0 })).toMatchObject({ total_count: 2 });
  });
});
