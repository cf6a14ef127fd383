import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { registerNode } from '../../test/ledger/registered-node.ts';
import { spendingNode } from '../../test/ledger/spending.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { windowSums } from '../../test/ledger/window-sums.ts';
import { createSecret } from '../accounts/key.ts';
import { toSettle } from '../ledger/settle.ts';
import { budgetStore } from './budgets.ts';
import { assignmentStore, guardrailStore } from './guardrails.ts';
import { keyStore, type NewKey } from './keys.ts';
import { ledgerStore } from './ledger.ts';
import { organizationStore } from './organizations.ts';
import { verifyLedger } from './verify-ledger.ts';
import { workspaceStore } from './workspaces.ts';

/** A Saturday. */
const AT = '2026-11-21T10:00:00.000Z';
const USD = 1_000_000_000;

describeStores('budgets', ({ open }) => {
  async function setUp() {
    const database = await open();
    const { queries } = database;
    const home = await organizationStore(queries).insertFirst({ at: AT });
    const { organization_id, default_workspace_id: workspaceId, owner_user_id: userId } = home;
    const keys = keyStore(queries);
    const makeKey = (over: Partial<NewKey> = {}) => {
      const { hash, label } = createSecret();
      return keys.insert({
        hash,
        label,
        organization_id,
        workspace_id: workspaceId,
        creator_user_id: userId,
        name: 'a key',
        is_management: false,
        disabled: false,
        limit_nano: null,
        limit_reset: null,
        include_byok_in_limit: false,
        expires_at: null,
        created_at: AT,
        updated_at: null,
        ...over,
      });
    };
    const settle = await spendingNode(database);
    let count = 0;
    /** A request of a key of the home. */
    const spend = (keyHash: string, costNano: number, over: Partial<Parameters<typeof settle>[0]> = {}) => {
      count += 1;
      return settle({
        id: `g${count}`,
        organization_id,
        workspace_id: workspaceId,
        user_id: userId,
        key_hash: keyHash,
        cost_nano: costNano,
        ...over,
      });
    };
    /** Each budget by its id without the variable ids: its current limit, its usage, and its usage at the start. */
    const budgets = async () => {
      const rows = await queries
        .selectFrom('ledger_budgets as b')
        .leftJoin('ledger_windows as w', 'w.budget_id', 'b.id')
        .select(['b.id', 'b.limit_nano', 'w.window_start', 'w.spent', 'w.opening'])
        .orderBy('b.id')
        .orderBy('w.window_start')
        .execute();
      return rows.map(({ id, limit_nano, window_start, spent, opening }) => {
        const name = id.replace(/[0-9a-f]{64}/g, 'K').replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'I');
        return [name, limit_nano, window_start, spent, opening];
      });
    };
    return { ...home, database, queries, workspace_id: workspaceId, user_id: userId, keys, makeKey, spend, budgets };
  }

  test('limits are listed with their subject, by filter, and never those of another organization', async () => {
    const { makeKey, queries, organization_id, workspace_id, user_id } = await setUp();
    const key = await makeKey({ name: 'listed', limit_nano: 5 * USD });
    const guardrail = await guardrailStore(queries).insert({
      organization_id,
      workspace_id,
      name: 'team',
      limit_nano: USD,
      created_at: AT,
    });
    const assigned = { organization_id, guardrail_id: guardrail.id, assigned_by: null, created_at: AT };
    await assignmentStore(queries).insertMembers({ ...assigned, assignees: [user_id] });
    const { listBy, keepCredits } = budgetStore(queries);
    await keepCredits(organization_id, 9 * USD, AT);
    const list = (filter: object = {}, limit = 10, offset = 0) =>
      listBy({ organization_id, ...filter }, { limit, offset });
    const { data, total_count } = await list();
    expect(total_count).toBe(3);
    const none = { key_name: null, workspace_name: null, workspace_id: null, guardrail_id: null, guardrail_name: null };
    expect(data).toMatchObject([
      { ...none, scope: 'organization', limit_nano: 9 * USD },
      {
        ...none,
        scope: 'guardrail',
        guardrail_id: guardrail.id,
        guardrail_name: 'team',
        user_name: expect.any(String),
      },
      { ...none, scope: 'key', key_name: 'listed', workspace_id, limit_nano: 5 * USD, user_name: null },
    ]);
    expect(await list({}, 1, 1)).toEqual({ total_count, data: [data[1]] });
    for (const filter of [{ scope: 'key' }, { key_hash: key.hash }, { workspace_id }]) {
      expect(await list(filter)).toEqual({ total_count: 1, data: [data[2]] });
    }
    expect(await list({ guardrail_id: guardrail.id })).toEqual({ total_count: 1, data: [data[1]] });
    for (const filter of [{ organization_id: 'other' }, { key_hash: 'a\0' }, { workspace_id: '%' }]) {
      expect(await list(filter)).toEqual({ total_count: 0, data: [] });
    }
  });

  test('a key created with a limit has a budget, and one without has none', async () => {
    const { makeKey, queries } = await setUp();
    await makeKey();
    const { hash } = await makeKey({ limit_nano: USD, limit_reset: 'weekly', include_byok_in_limit: true });
    expect(await queries.selectFrom('ledger_budgets').selectAll().execute()).toEqual([
      {
        id: `key:${hash}:weekly`,
        scope: 'key',
        subject: `key:${hash}`,
        guardrail_id: null,
        label: 'the limit of this API key',
        reset_interval: 'weekly',
        limit_nano: USD,
        include_byok: true,
        version: 1,
      },
    ]);
    expect(await budgetStore(queries).findBySubjects([`key:${hash}`])).toEqual([
      {
        id: `key:${hash}:weekly`,
        scope: 'key',
        label: 'the limit of this API key',
        reset_interval: 'weekly',
        limit_nano: USD,
        include_byok: true,
      },
    ]);
  });

  test('a limit changed in the middle of its window keeps its usage', async () => {
    const { makeKey, keys, spend, budgets, organization_id } = await setUp();
    const { hash } = await makeKey({ limit_nano: 10, limit_reset: 'daily' });
    await spend(hash, 3);
    await keys.update({ organization_id, hash }, { limit_nano: 5, updated_at: AT });
    await spend(hash, 1);
    expect(await budgets()).toEqual([['key:K:daily', 5, '2026-11-21', 4, 0]]);
  });

  test('a limit that is removed and set again includes the spending in between, within its window', async () => {
    const { makeKey, keys, spend, budgets, organization_id } = await setUp();
    const { hash } = await makeKey({ limit_nano: 10, limit_reset: 'weekly' });
    await spend(hash, 1, { created_at: '2026-11-15T23:59:59.999Z' });
    await spend(hash, 2, { created_at: '2026-11-16T00:00:00.000Z' });
    await keys.update({ organization_id, hash }, { limit_nano: null, updated_at: AT });
    await spend(hash, 4);
    expect(await budgets()).toEqual([
      ['key:K:weekly', null, '2026-11-09', 1, 0],
      ['key:K:weekly', null, '2026-11-16', 2, 0],
    ]);
    await keys.update({ organization_id, hash }, { limit_nano: 20, updated_at: AT });
    expect(await budgets()).toEqual([
      ['key:K:weekly', 20, '2026-11-09', 1, 0],
      ['key:K:weekly', 20, '2026-11-16', 6, 4],
    ]);
  });

  test('a limit with another interval starts with the usage of its window, and the old one ends', async () => {
    const { makeKey, keys, spend, budgets, organization_id } = await setUp();
    const { hash } = await makeKey({ limit_nano: 100, limit_reset: 'daily' });
    const another = await makeKey();
    await spend(hash, 1, { created_at: '2026-10-31T23:59:59.999Z' });
    await spend(hash, 2, { created_at: '2026-11-01T00:00:00.000Z' });
    await spend(hash, 4);
    await spend(another.hash, 8);
    await keys.update({ organization_id, hash }, { limit_reset: 'monthly', updated_at: AT });
    await keys.update({ organization_id, hash }, { limit_reset: null, updated_at: AT });
    await spend(hash, 16);
    await keys.update({ organization_id, hash }, { limit_reset: 'daily', updated_at: AT });
    expect(await budgets()).toEqual([
      ['key:K:daily', 100, '2026-10-31', 1, 0],
      ['key:K:daily', 100, '2026-11-01', 2, 0],
      ['key:K:daily', 100, '2026-11-21', 20, 16],
      ['key:K:monthly', null, '2026-11-01', 6, 6],
      ['key:K:never', null, '', 23, 7],
    ]);
  });

  test('BYOK usage counts from the start of the window if it is included, and not at all otherwise', async () => {
    const { makeKey, keys, spend, budgets, organization_id } = await setUp();
    const { hash } = await makeKey({ limit_nano: 100, limit_reset: 'daily' });
    await spend(hash, 1);
    await spend(hash, 0, { byok_cost_nano: 2 });
    expect(await budgets()).toEqual([['key:K:daily', 100, '2026-11-21', 1, 0]]);
    await keys.update({ organization_id, hash }, { include_byok_in_limit: true, updated_at: AT });
    await spend(hash, 0, { byok_cost_nano: 4 });
    expect(await budgets()).toEqual([['key:K:daily', 100, '2026-11-21', 7, 2]]);
    await keys.update({ organization_id, hash }, { include_byok_in_limit: false, updated_at: AT });
    expect(await budgets()).toEqual([['key:K:daily', 100, '2026-11-21', 1, -4]]);
  });

  test('a guardrail limits each of its subjects: a key alone, and a member over all keys', async () => {
    const { makeKey, spend, budgets, queries, organization_id, workspace_id, user_id } = await setUp();
    const [one, other] = [await makeKey(), await makeKey()];
    await spend(one.hash, 1);
    const guardrails = guardrailStore(queries);
    const shared = { organization_id, created_at: AT };
    const { id: guardrailId } = await guardrails.insert({ ...shared, workspace_id, name: 'G', limit_nano: 50 });
    expect(await budgets()).toEqual([]);
    const assignments = assignmentStore(queries);
    const made = { ...shared, guardrail_id: guardrailId, assigned_by: null };
    const [assignment = ''] = await assignments.insertKeys({ ...made, assignees: [one.hash] });
    await assignments.insertMembers({ ...made, assignees: [user_id] });
    await spend(one.hash, 2);
    await spend(other.hash, 4);
    expect(await budgets()).toEqual([
      ['guardrail:I:key:K:never', 50, '', 3, 1],
      ['guardrail:I:user:I:I:never', 50, '', 7, 1],
    ]);
    await guardrails.update(guardrailId, { reset_interval: 'daily', limit_nano: 0, updated_at: AT });
    await assignments.deleteKeys([assignment]);
    expect(await budgets()).toEqual([
      ['guardrail:I:key:K:daily', null, '2026-11-21', 3, 3],
      ['guardrail:I:key:K:never', null, '', 3, 1],
      ['guardrail:I:user:I:I:daily', 0, '2026-11-21', 7, 7],
      ['guardrail:I:user:I:I:never', null, '', 7, 1],
    ]);
    const subjects = [`key:${one.hash}`, `user:${organization_id}:${user_id}`, `user:another:${user_id}`];
    expect(await budgetStore(queries).findBySubjects(subjects)).toMatchObject([
      { scope: 'guardrail', label: 'the limit of the guardrail "G" for the owner of this API key', limit_nano: 0 },
    ]);
  });

  test('a guardrail without a limit, or a deleted one, ends its budgets; a new name is used', async () => {
    const { makeKey, queries, budgets, organization_id, workspace_id, user_id } = await setUp();
    const { hash } = await makeKey();
    const guardrails = guardrailStore(queries);
    const assignments = assignmentStore(queries);
    const shared = { organization_id, created_at: AT };
    const filed = { ...shared, workspace_id, limit_nano: 50, name: 'G' };
    const { id: guardrailId } = await guardrails.insert(filed);
    await assignments.insertKeys({ ...shared, guardrail_id: guardrailId, assigned_by: null, assignees: [hash] });
    const [member = ''] = await assignments.insertMembers({
      ...shared,
      guardrail_id: guardrailId,
      assigned_by: null,
      assignees: [user_id],
    });
    await assignments.deleteMembers([member]);
    const limits = async () => (await budgets()).map(([id, limit]) => [id, limit]);
    expect(await limits()).toEqual([
      ['guardrail:I:key:K:never', 50],
      ['guardrail:I:user:I:I:never', null],
    ]);
    await guardrails.update(guardrailId, { name: 'H', updated_at: AT });
    expect(await budgetStore(queries).findBySubjects([`key:${hash}`])).toMatchObject([
      { label: 'the limit of the guardrail "H" for this API key' },
    ]);
    await guardrails.update(guardrailId, { limit_nano: null, updated_at: AT });
    expect((await limits()).map(([, limit]) => limit)).toEqual([null, null]);
    await guardrails.update(guardrailId, { limit_nano: 7, updated_at: AT });
    expect((await limits()).map(([, limit]) => limit)).toEqual([7, null]);
    await queries.deleteFrom('guardrail_key_assignments').execute();
    await guardrails.delete(guardrailId);
    expect((await limits()).map(([, limit]) => limit)).toEqual([null, null]);
  });

  test('a guardrail may include BYOK if its workspace does not', async () => {
    const { makeKey, spend, queries, budgets, organization_id, workspace_id } = await setUp();
    const { hash } = await makeKey();
    const guardrails = guardrailStore(queries);
    const guardrail = { organization_id, created_at: AT, workspace_id, name: 'G', limit_nano: 9 };
    const { id } = await guardrails.insert({ ...guardrail, include_byok_in_budgets: true });
    const assigned = { organization_id, guardrail_id: id, assigned_by: null, created_at: AT, assignees: [hash] };
    await assignmentStore(queries).insertKeys(assigned);
    await spend(hash, 1, { byok_cost_nano: 4 });
    expect((await budgets()).map(([, , , spent]) => spent)).toEqual([5]);
    await guardrails.update(id, { include_byok_in_budgets: false, updated_at: AT });
    expect((await budgets()).map(([, , , spent]) => spent)).toEqual([1]);
  });

  test('budgets of a workspace count all its keys; its choice to include BYOK applies to its guardrails too', async () => {
    const { makeKey, spend, queries, budgets, organization_id, workspace_id, user_id } = await setUp();
    const workspaces = workspaceStore(queries);
    const { hash } = await makeKey();
    await spend(hash, 1);
    await spend(hash, 0, { byok_cost_nano: 2, created_at: '2026-11-20T00:00:00.000Z' });
    await spend('of another workspace', 64, { workspace_id: 'another' });
    const shared = { organization_id, created_at: AT };
    const guardrail = { ...shared, workspace_id, name: 'G', limit_nano: 9, reset_interval: 'monthly' as const };
    const { id: guardrailId } = await guardrailStore(queries).insert(guardrail);
    const assignments = assignmentStore(queries);
    await assignments.insertMembers({ ...shared, guardrail_id: guardrailId, assigned_by: null, assignees: [user_id] });
    await workspaces.putBudget({ workspace_id, interval: 'lifetime', limit_nano: 90, at: AT });
    await workspaces.putBudget({ workspace_id, interval: 'daily', limit_nano: 80, at: AT });
    expect(await budgets()).toEqual([
      ['guardrail:I:user:I:I:monthly', 9, '2026-11-01', 65, 65],
      ['workspace:I:daily', 80, '2026-11-21', 1, 1],
      ['workspace:I:never', 90, '', 1, 1],
    ]);
    await workspaces.update(workspace_id, { include_byok_in_budgets: true, slug: 'moved', updated_at: AT });
    await spend(hash, 0, { byok_cost_nano: 4 });
    expect(await budgets()).toEqual([
      ['guardrail:I:user:I:I:monthly', 9, '2026-11-01', 71, 67],
      ['workspace:I:daily', 80, '2026-11-21', 5, 1],
      ['workspace:I:never', 90, '', 7, 3],
    ]);
    const inForce = await budgetStore(queries).findBySubjects([`workspace:${workspace_id}`]);
    expect(inForce.map(({ label }) => label)).toEqual([
      'the daily budget of the workspace "moved"',
      'the lifetime budget of the workspace "moved"',
    ]);
    await workspaces.deleteBudget({ workspace_id, interval: 'daily', at: AT });
    expect((await budgets()).map(([, limit]) => limit)).toEqual([9, null, 90]);
  });

  test('a deleted key ends its budgets, and a deleted workspace ends all budgets in it', async () => {
    const { makeKey, keys, queries, budgets, organization_id, user_id } = await setUp();
    const workspaces = workspaceStore(queries);
    const shared = { organization_id, created_at: AT };
    const { id } = await workspaces.insert({ ...shared, name: 'W', slug: 'w', created_by: null });
    await workspaces.putBudget({ workspace_id: id, interval: 'daily', limit_nano: 80, at: AT });
    const guardrail = { ...shared, workspace_id: id, name: 'G', limit_nano: 9 };
    const { id: guardrailId } = await guardrailStore(queries).insert(guardrail);
    const { id: keyId, hash } = await makeKey({ workspace_id: id, limit_nano: 3 });
    const assignments = assignmentStore(queries);
    await assignments.insertKeys({ ...shared, guardrail_id: guardrailId, assigned_by: null, assignees: [hash] });
    await assignments.insertMembers({ ...shared, guardrail_id: guardrailId, assigned_by: null, assignees: [user_id] });
    const limits = async () => (await budgets()).map(([, limit]) => limit);
    expect(await limits()).toEqual([9, 9, 3, 80]);
    await keys.delete({ organization_id, keys: [{ id: keyId, hash }] });
    expect(await limits()).toEqual([null, 9, null, 80]);
    await workspaces.delete(id);
    expect(await limits()).toEqual([null, null, null, null]);
  });

  test('a settlement of an old hold while its budget is set again counts once', async () => {
    const { database, makeKey, keys, spend, budgets, queries, organization_id, workspace_id, user_id } = await setUp();
    const { hash } = await makeKey({ limit_nano: 10, limit_reset: 'daily' });
    await spend(hash, 1);
    await keys.update({ organization_id, hash }, { limit_nano: null, updated_at: AT });
    await spend(hash, 2);
    const ledger = ledgerStore(queries, database.engine);
    const { epoch } = await registerNode(ledger, 'late');
    const record = generation({ id: 'late', organization_id, workspace_id, user_id, key_hash: hash, cost_nano: 4 });
    const window = { budget_id: `key:${hash}:daily`, window_start: '2026-11-21' };
    const settle = async () => {
      const charges = [{ ...window, amount: 4, cover: 0 }];
      const windows = [{ ...window, is_new: false, own: 0, returned: 0, need: 0, want: 0, slack: 0, withdraws: false }];
      const settles = [toSettle(record, charges)];
      await ledger.settle({ node: 'late', epoch, number: 1, at: 2, settles, windows, divisor: 2 });
    };
    let settling: Promise<void> | undefined;
    // Between the read and the write.
    const interrupted = queries.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        if (settling === undefined && result.rows[0] !== undefined && 'byok_amount' in result.rows[0]) {
          settling = settle();
          await Promise.race([settling, sleep(300)]);
        }
        return result;
      },
    });
    await interrupted.transaction().execute(async (tx) => {
      await keyStore(tx).lock({ organization_id, hash });
      await keyStore(tx).update({ organization_id, hash }, { limit_nano: 20, updated_at: AT });
    });
    expect(settling).toBeDefined();
    await settling;
    expect(await budgets()).toEqual([['key:K:daily', 20, '2026-11-21', 7, 2]]);
  });

  test('the migration creates budgets for existing limits of keys', async () => {
    const { queries, makeKey, spend, budgets } = await setUp();
    const lasting = await makeKey({ limit_nano: 50, include_byok_in_limit: true });
    const counting = await makeKey({ limit_nano: 40 });
    const weekly = await makeKey({ limit_nano: 30, limit_reset: 'weekly' });
    await makeKey();
    for (const { hash } of [lasting, counting, weekly]) {
      await spend(hash, 3, { created_at: '2020-01-01T00:00:00.000Z' });
      await spend(hash, 4, { byok_cost_nano: 5 });
    }
    const kept = (await queries.selectFrom('ledger_budgets').selectAll().orderBy('id').execute()).filter(
      ({ limit_nano }) => limit_nano !== null,
    );
    await queries.deleteFrom('ledger_windows').execute();
    await queries.deleteFrom('ledger_budgets').execute();
    const text = readFileSync(new URL('./migrations/0003_budgets.sql', import.meta.url), 'utf8');
    for (const statement of text.split(/;\s*$/m).filter((part) => part.includes('INSERT INTO'))) {
      await sql.raw(statement).execute(queries);
    }
    expect(await queries.selectFrom('ledger_budgets').selectAll().orderBy('id').execute()).toEqual(kept);
    const windows = (await budgets()).map(([id, ...rest]) => [String(id).split(':')[2], ...rest]);
    expect(windows.sort((a, b) => Number(b[1]) - Number(a[1]))).toEqual([
      ['never', 50, '', 12, 12],
      ['never', 40, '', 7, 7],
      ['weekly', 30, null, null, null],
    ]);
  });

  test('limits that change while batches settle lose nothing and count nothing twice', async () => {
    const { database, makeKey, keys, queries, organization_id, workspace_id, user_id } = await setUp();
    const { hash } = await makeKey({ limit_nano: 1_000, limit_reset: 'daily' });
    const shared = { organization_id, workspace_id, user_id, key_hash: hash, cost_nano: 1 };
    const settling = Promise.all(
      ['n1', 'n2', 'n3'].map(async (node) => {
        const settle = await spendingNode(database, node);
        for (let n = 0; n < 20; n += 1) {
          await settle(...[0, 1, 2].map((index) => ({ ...shared, id: `${node}-${n}-${index}` })));
        }
      }),
    );
    const resets = ['daily', 'weekly', 'monthly', null] as const;
    const changing = Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        queries.transaction().execute(async (tx) => {
          const store = keyStore(tx);
          await store.lock({ organization_id, hash });
          const change = { limit_nano: n % 5 === 0 ? null : n, limit_reset: resets[n % 4] ?? null, updated_at: AT };
          await store.update({ organization_id, hash }, change);
        }),
      ),
    );
    await Promise.all([settling, changing]);
    for (const limitReset of [...resets, 'daily' as const]) {
      await keys.update({ organization_id, hash }, { limit_nano: 5, limit_reset: limitReset, updated_at: AT });
    }
    expect((await verifyLedger(queries)).differences).toEqual([]);
    const windows = await queries.selectFrom('ledger_windows').selectAll().execute();
    const generations = await queries.selectFrom('ledger_generations').select('charges').execute();
    const charged = generations.flatMap(({ charges }) => JSON.parse(charges) as [string, string, number][]);
    expect(windows).toHaveLength(4);
    for (const { budget_id, spent, opening } of windows) {
      const settled = charged.filter(([id]) => id === budget_id).reduce((sum, [, , amount]) => sum + amount, 0);
      expect([budget_id, spent]).toEqual([budget_id, opening + settled]);
      expect([budget_id, spent]).toEqual([budget_id, 180]);
    }
  });

  test('a limit that starts while leases are charged counts each charge once', async () => {
    const { database, makeKey, queries, organization_id, workspace_id } = await setUp();
    const { hash } = await makeKey({ limit_nano: 1_000 });
    const store = ledgerStore(queries, database.engine);
    const { epoch } = await registerNode(store, 'leasing');
    const [budget] = await budgetStore(queries).findBySubjects([`key:${hash}`]);
    const window = { budget_id: budget?.id ?? '', window_start: '' };
    const batch = { node: 'leasing', epoch, at: 2, divisor: 1 };
    await store.watch('leasing', 2);
    const nothing = { returned: 0, need: 0, want: 0, slack: 0, withdraws: false };
    const request = { ...nothing, ...window, is_new: true, own: 0, need: 500, want: 500 };
    await store.settle({ ...batch, number: 1, settles: [], windows: [request] });
    const charging = async () => {
      for (let n = 1; n <= 60; n += 1) {
        const record = generation({ id: `g${n}`, organization_id, workspace_id, key_hash: hash, cost_nano: 1 });
        const settles = [toSettle(record, [{ ...window, amount: 1, cover: 1 }])];
        const charged = { ...nothing, ...window, is_new: false, own: 501 - n };
        const answer = await store.settle({ ...batch, number: n + 1, settles, windows: [charged] });
        expect(answer).toMatchObject({ is: 'applied', windows: [{ lease: 500 - n }] });
      }
    };
    const changing = async () => {
      for (let n = 0; n < 60; n += 1) {
        await queries.transaction().execute(async (tx) => {
          await keyStore(tx).lock({ organization_id, hash });
          const change = { limit_nano: n % 2 === 0 ? null : 1_000, updated_at: AT };
          await keyStore(tx).update({ organization_id, hash }, change);
        });
      }
    };
    await Promise.all([charging(), changing()]);
    const [sums] = await windowSums(queries).execute();
    expect(sums).toMatchObject({ spent: 60, leased: 440 });
    expect((await verifyLedger(queries)).differences).toEqual([]);
  });

  test('spending of keys created by a key counts when its limit starts, also after they are deleted', async () => {
    const { makeKey, keys, spend, budgets, organization_id } = await setUp();
    const parent = await makeKey();
    const child = await makeKey({ parent_hash: parent.hash, made_by: 'key' });
    const grandchild = await makeKey({ parent_hash: child.hash, made_by: 'key' });
    await spend(parent.hash, 1);
    await spend(child.hash, 2);
    await spend(grandchild.hash, 4);
    await spend(grandchild.hash, 0, { byok_cost_nano: 8 });
    const limited = { limit_nano: 100, updated_at: AT };
    const { hash } = parent;
    await keys.update({ organization_id, hash }, limited);
    expect(await budgets()).toEqual([['key:K:never', 100, '', 7, 7]]);
    await keys.delete({ organization_id, keys: [child, grandchild] });
    await keys.update({ organization_id, hash }, { include_byok_in_limit: true, updated_at: AT });
    expect(await budgets()).toEqual([['key:K:never', 100, '', 15, 15]]);
    await keys.update({ organization_id, hash }, { include_byok_in_limit: false, updated_at: AT });
    expect(await budgets()).toEqual([['key:K:never', 100, '', 7, 7]]);
  });
});
