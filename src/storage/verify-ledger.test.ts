import { expect, test } from 'vitest';
import { spendingNode } from '../../test/ledger/spending.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { createSecret } from '../accounts/key.ts';
import { limits } from '../limits.ts';
import { creditStore } from './credits.ts';
import { keyStore } from './keys.ts';
import { ledgerStore } from './ledger.ts';
import { ledgerOperations } from './ledger-operations.ts';
import { organizationStore } from './organizations.ts';
import { PendingUsage } from './pending-usage.ts';
import type { Queries } from './queries.ts';
import { verifyLedger } from './verify-ledger.ts';

const AT = '2026-11-21T10:00:00.000Z';
const WINDOW = '2026-11-21';

describeStores('the verification of the ledger', ({ open }) => {
  async function setUp() {
    const database = await open();
    const { queries } = database;
    const home = await organizationStore(queries).insertFirst({ at: AT });
    const { organization_id, default_workspace_id: workspaceId, owner_user_id: userId } = home;
    const { hash, label } = createSecret();
    await keyStore(queries).insert({
      hash,
      label,
      organization_id,
      workspace_id: workspaceId,
      creator_user_id: userId,
      name: 'a key',
      is_management: false,
      disabled: false,
      limit_nano: 100,
      limit_reset: 'daily',
      include_byok_in_limit: true,
      expires_at: null,
      created_at: AT,
      updated_at: null,
    });
    const settle = await spendingNode(database);
    const payer = { organization_id, workspace_id: workspaceId, user_id: userId, key_hash: hash };
    await settle(
      { id: 'g1', ...payer, cost_nano: 3 },
      { id: 'g2', ...payer, cost_nano: 4, created_at: '2026-11-20T23:59:59.999Z' },
      { id: 'g3', ...payer, byok_cost_nano: 5 },
      { id: 'g4', ...payer, outcome: 'unknown', cost_nano: 6 },
      { id: 'g5', ...payer, outcome: 'unknown', byok_cost_nano: 7 },
    );
    await creditStore(queries).grant({ organization_id, amount_nano: 1_000, reason: 'first', at: AT });
    return { database, queries, hash, organization_id, settle, payer, window: `key:${hash}:daily ${WINDOW}` };
  }

  test('a consistent ledger has no differences', async () => {
    const { queries } = await setUp();
    expect(await verifyLedger(queries)).toEqual({ generations: 5, windows: 3, differences: [] });
  });

  type Fault = [fault: string, plant: (queries: Queries, hash: string) => Promise<unknown>, differences: object[]];
  test.each<Fault>([
    [
      'a window with more spent than was settled',
      (queries) => queries.updateTable('ledger_windows').set({ spent: 22 }).where('spent', '=', 21).execute(),
      [{ of: 'window', expected: 21, actual: 22 }],
    ],
    [
      'an opening amount that was not spent',
      (queries) => queries.updateTable('ledger_windows').set({ opening: 1 }).where('spent', '=', 21).execute(),
      [{ of: 'window', expected: 22, actual: 21 }],
    ],
    [
      'a correction that was not counted',
      (queries, hash) =>
        queries
          .insertInto('ledger_adjustments')
          .values({
            id: 'a',
            generation_id: 'g1',
            budget_id: `key:${hash}:daily`,
            window_start: WINDOW,
            amount: -2,
            reason: 'r',
            created_at: AT,
          })
          .execute(),
      [{ of: 'window', expected: 19, actual: 21 }],
    ],
    [
      'a missing window',
      (queries) => queries.deleteFrom('ledger_windows').where('spent', '=', 21).execute(),
      [{ of: 'generations', expected: 21, actual: 0 }],
    ],
    [
      'a lease that its window does not contain',
      (queries, hash) =>
        queries
          .insertInto('ledger_leases')
          .values({ node_id: 'n', budget_id: `key:${hash}:daily`, window_start: WINDOW, amount: 8, settled: 0 })
          .execute(),
      [{ of: 'leases', expected: 8, actual: 0 }],
    ],
    [
      'a window with more reserved than its nodes have',
      (queries) => queries.updateTable('ledger_windows').set({ leased: 9 }).where('spent', '=', 21).execute(),
      [{ of: 'leases', expected: 0, actual: 9 }],
    ],
    [
      'a day with a wrong sum',
      (queries) => queries.updateTable('usage_days').set({ usage_nano: 1 }).where('usage_nano', '=', 4).execute(),
      [{ of: 'usage', expected: 4, actual: 1 }],
    ],
    [
      'a day with a wrong number of requests',
      (queries) => queries.updateTable('usage_days').set({ requests: 2 }).where('requests', '=', 1).execute(),
      [{ of: 'requests', expected: 1, actual: 2 }],
    ],
    [
      'activity with a wrong sum',
      (queries) => queries.updateTable('activity_days').set({ usage_nano: 1 }).where('usage_nano', '=', 4).execute(),
      [
        { of: 'activity', expected: 4, actual: 1 },
        { of: 'total', expected: 10, actual: 13 },
      ],
    ],
    [
      'activity with a wrong BYOK sum',
      (queries) =>
        queries.updateTable('activity_days').set({ byok_usage_nano: 1 }).where('byok_usage_nano', '=', 12).execute(),
      [
        { of: 'activity', expected: 12, actual: 1 },
        { of: 'total', expected: 1, actual: 12 },
      ],
    ],
    [
      'a missing generation',
      (queries) => queries.deleteFrom('ledger_generations').where('id', '=', 'g2').execute(),
      [
        { of: 'window', expected: 0, actual: 4 },
        { of: 'usage', expected: 0, actual: 4 },
        { of: 'requests', expected: 0, actual: 1 },
        { of: 'activity', expected: 0, actual: 4 },
        { of: 'requests', expected: 0, actual: 1 },
        { of: 'analytics', expected: 0, actual: 4 },
        { of: 'requests', expected: 0, actual: 1 },
      ],
    ],
    [
      'an hour of usage with a wrong sum',
      (queries) => queries.updateTable('analytics_usage').set({ usage_nano: 1 }).where('usage_nano', '=', 4).execute(),
      [{ of: 'analytics', expected: 4, actual: 1 }],
    ],
    [
      'a day of usage that differs from its hours',
      (queries) =>
        queries
          .updateTable('analytics_usage')
          .set({ requests: 9 })
          .where('usage_nano', '=', 4)
          .where('span', '=', 24)
          .execute(),
      [{ of: 'analytics', expected: 4, actual: 4 }],
    ],
    [
      'usage that is counted for another key',
      (queries) => queries.updateTable('analytics_series').set({ key_hash: 'x' }).execute(),
      [{ of: 'analytics', expected: 4 }, { of: 'analytics' }, { of: 'analytics' }, { of: 'total' }, { of: 'total' }],
    ],
    [
      'an organization with a wrong sum',
      (queries) => queries.updateTable('organization_usage').set({ usage_nano: 1 }).execute(),
      [{ of: 'total', expected: 13, actual: 1 }],
    ],
  ])('verify reports %s', async (_fault, plant, differences) => {
    const { queries, hash } = await setUp();
    await new PendingUsage(queries).addAll();
    await plant(queries, hash);
    expect((await verifyLedger(queries)).differences).toMatchObject(differences);
  });

  test('all generations are summed, also if they need several pages', async () => {
    const { queries, settle, payer } = await setUp();
    for (let batch = 0; batch < 26; batch += 1) {
      await settle(...Array.from({ length: 200 }, (_, n) => ({ id: `p${batch}-${n}`, ...payer, cost_nano: 1 })));
    }
    expect(await verifyLedger(queries)).toEqual({ generations: 5_205, windows: 3, differences: [] });
  });

  test('concurrent settlements cause no differences', async () => {
    const { database, queries, payer } = await setUp();
    const other = await spendingNode(database, 'other');
    let settled = 0;
    let reading = true;
    const settling = (async () => {
      while (reading) {
        settled += 1;
        await other({ id: `w${settled}`, ...payer, cost_nano: 1 });
      }
    })();
    for (let n = 0; n < 10; n += 1) expect((await verifyLedger(queries)).differences).toEqual([]);
    reading = false;
    await settling;
    expect((await verifyLedger(queries)).generations).toBe(5 + settled);
  });

  const spentOf = async (queries: Queries) =>
    (
      await queries.selectFrom('ledger_windows').select('spent').orderBy('budget_id').orderBy('window_start').execute()
    ).map(({ spent }) => spent);

  test('a correction changes every sum of its generation once, and the ledger stays consistent', async () => {
    const { database, queries, hash } = await setUp();
    const operations = ledgerOperations(queries, database.engine);
    expect(await spentOf(queries)).toEqual([13, 4, 21]);
    const generation = await operations.findResolvable('g4');
    if (!generation) throw new Error('there is no g4');
    expect(generation).toMatchObject({ cost_nano: 6, is_estimated: true, is_byok: false });
    const corrected = { cost_nano: 1, reason: 'as the provider bills it', at: AT };
    await operations.resolve(generation, corrected);
    await expect(operations.resolve(generation, corrected)).rejects.toThrow();
    expect(await spentOf(queries)).toEqual([13, 4, 16]);
    expect((await verifyLedger(queries)).differences).toEqual([]);
    const days = await queries.selectFrom('usage_days').select('usage_nano').where('day', '=', WINDOW).execute();
    expect(days).toEqual([{ usage_nano: 4 }]);
    expect(await operations.findResolvable('g4')).toMatchObject({ cost_nano: 1 });
    // A window that starts later starts with the corrected sum.
    const keys = keyStore(queries);
    const which = { organization_id: generation.organization_id, hash };
    await keys.update(which, { limit_reset: null, include_byok_in_limit: false, updated_at: AT });
    expect(await spentOf(queries)).toEqual([13, 4, 16, 8]);
    expect((await verifyLedger(queries)).differences).toEqual([]);
  });

  test('a correction of BYOK usage changes the budgets that include BYOK', async () => {
    const { database, queries } = await setUp();
    const operations = ledgerOperations(queries, database.engine);
    const generation = await operations.findResolvable('g5');
    if (!generation) throw new Error('there is no g5');
    expect(generation).toMatchObject({ cost_nano: 7, is_byok: true });
    await operations.resolve(generation, { cost_nano: 10, reason: 'r', at: AT });
    expect(await spentOf(queries)).toEqual([13, 4, 24]);
    expect((await verifyLedger(queries)).differences).toEqual([]);
    const days = await queries.selectFrom('usage_days').selectAll().where('day', '=', WINDOW).execute();
    expect(days).toMatchObject([{ usage_nano: 9, byok_usage_nano: 15 }]);
  });

  test('the leases of a lost node are released and the node is fenced; those of a live node stay', async () => {
    const { database, queries, hash } = await setUp();
    const held = { budget_id: `key:${hash}:daily`, window_start: WINDOW };
    await queries.updateTable('ledger_windows').set({ leased: 12 }).where('spent', '=', 21).execute();
    const leases = [
      { node_id: 'spender', ...held, amount: 8, settled: 0 },
      { node_id: 'another', ...held, amount: 4, settled: 0 },
    ];
    await queries.deleteFrom('ledger_leases').execute();
    await queries.insertInto('ledger_leases').values(leases).execute();
    const operations = ledgerOperations(queries, database.engine);
    const now = Date.now();
    const seen = (seenAt: number) => queries.updateTable('ledger_nodes').set({ seen_at: seenAt }).execute();
    const nodes = async () => (await operations.listNodes(Date.now())).map(({ unseen_ms, ...node }) => node);
    expect(await nodes()).toEqual([{ id: 'spender', epoch: 1, leased_nano: 8, leases: 1 }]);
    await seen(now - limits.node_lost_ms + 10_000);
    expect(await operations.release('spender', now)).toBeUndefined();
    expect(await operations.sumInDoubt(now)).toBe(0);
    await seen(now - limits.node_lost_ms - 10_000);
    expect(await operations.release('another', now)).toBeUndefined();
    expect(await operations.sumInDoubt(now)).toBe(8);
    expect(await operations.release('spender', now)).toEqual({ leased_nano: 8, leases: 1, booked_nano: 0 });
    expect(await nodes()).toEqual([{ id: 'spender', epoch: 2, leased_nano: 0, leases: 0 }]);
    expect(await queries.selectFrom('ledger_windows').select('leased').where('spent', '=', 21).execute()).toEqual([
      { leased: 4 },
    ]);
    expect((await verifyLedger(queries)).differences).toEqual([]);
  });

  test('a node that watches its leases and settles nothing is not lost', async () => {
    const { database, queries } = await setUp();
    const operations = ledgerOperations(queries, database.engine);
    await queries.updateTable('ledger_nodes').set({ seen_at: 7 }).execute();
    await ledgerStore(queries, database.engine).watch('spender', Date.now());
    const [node] = await operations.listNodes(Date.now());
    expect(node?.unseen_ms).toBeLessThan(limits.node_live_ms);
  });
});
