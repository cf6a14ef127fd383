import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { budgetOf } from '../../test/ledger/recorder-fixture.ts';
import { registerNode } from '../../test/ledger/registered-node.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { type Settle, toSettle } from '../ledger/settle.ts';
import { limits } from '../limits.ts';
import type { Database } from './database.ts';
import { generationStore } from './generations.ts';
import { ledgerStore } from './ledger.ts';
import { CLAIM_MS } from './window-statements.ts';

const NODE = 'node-1';

function settleOf(id: string, over: Parameters<typeof generation>[0] | object = {}): Settle {
  const record = generation({ id, cost_nano: 100, ...over });
  return toSettle(record, []);
}

async function usage({ queries }: Database) {
  return queries
    .selectFrom('usage_days')
    .select(['scope_id', 'day', 'usage_nano', 'byok_usage_nano', 'requests'])
    .orderBy('scope_id')
    .orderBy('day')
    .execute();
}

async function registered(database: Database) {
  const store = ledgerStore(database.queries, database.engine);
  const { epoch } = await registerNode(store, NODE);
  const send = (number: number, settles: Settle[], over = {}) =>
    store.settle({ node: NODE, epoch, number, at: 2, settles, windows: [], divisor: 2, ...over });
  return { store, epoch, send };
}

describeStores('the ledger store', ({ open }) => {
  test('a batch is applied once, however often it is sent', async () => {
    const database = await open();
    const { send } = await registered(database);
    expect(await send(1, [settleOf('g1'), settleOf('g2')])).toMatchObject({ is: 'applied' });
    expect(await send(1, [settleOf('g1'), settleOf('g2')])).toMatchObject({ is: 'already_applied' });
    expect(await usage(database)).toMatchObject([{ usage_nano: 200, requests: 2 }]);
  });

  test('a generation is charged once, whatever its batches and however often one batch names it', async () => {
    const database = await open();
    const { send } = await registered(database);
    await send(1, [settleOf('g1'), settleOf('g1')]);
    await send(2, [settleOf('g1'), settleOf('g2')]);
    expect(await usage(database)).toMatchObject([{ usage_nano: 200, requests: 2 }]);
  });

  test('usage is summed by key and by the UTC day of admission; BYOK usage is the provider’s charge', async () => {
    const database = await open();
    const { send } = await registered(database);
    const late = { key_hash: 'a', created_at: '2026-11-21T23:59:59.999Z' };
    const byok = { key_hash: 'a', created_at: '2026-11-22T00:00:00.000Z', is_byok: true, cost_nano: 3 };
    await send(1, [settleOf('g1', late), settleOf('g2', { ...byok, upstream_cost_nano: 70 })]);
    await send(2, [settleOf('g3', { key_hash: 'b', created_at: '2026-11-22T00:00:00.000Z' }), settleOf('g4', late)]);
    expect(await usage(database)).toEqual([
      { scope_id: 'a', day: '2026-11-21', usage_nano: 200, byok_usage_nano: 0, requests: 2 },
      { scope_id: 'a', day: '2026-11-22', usage_nano: 3, byok_usage_nano: 70, requests: 1 },
      { scope_id: 'b', day: '2026-11-22', usage_nano: 100, byok_usage_nano: 0, requests: 1 },
    ]);
  });

  /** Two nodes with one budget of 1,000: `one` has leased 100 of it, and `two` was refused 950. */
  async function claimed(database: Database) {
    const store = ledgerStore(database.queries, database.engine);
    const { id: budgetId } = await budgetOf(database, 1_000);
    const t = Date.now();
    const nodes = { one: 0, two: 0 };
    for (const node of ['one', 'two'] as const) {
      nodes[node] = (await registerNode(store, node, { at: t })).epoch;
    }
    const w = { budget_id: budgetId, window_start: '', is_new: true, own: 0, returned: 0, slack: 0, withdraws: false };
    const send = (node: 'one' | 'two', number: number, over = {}, at = t) =>
      store.settle({
        ...{ node, epoch: nodes[node], number, at, settles: [], divisor: 4 },
        windows: [{ ...w, need: 100, want: 100, ...over }],
      });
    await send('one', 1);
    const refused = await send('two', 1, { need: 950, want: 950 });
    expect(refused).toMatchObject({ windows: [{ lease: 0, claims: true, claimed: false }] });
    const wanted = async (at = t) => (await store.watch('one', at)).wanted.length;
    expect(await wanted()).toBe(1);
    return { store, send, wanted, t };
  }

  test('a claim above the leases of all other nodes is not accepted', async () => {
    const database = await open();
    const { send, wanted } = await claimed(database);
    await send('two', 2, { need: 0, want: 0, withdraws: true });
    expect(await send('two', 3, { need: 1_001, want: 1_001 })).toMatchObject({ windows: [{ claims: false }] });
    expect(await wanted()).toBe(0);
  });

  test('a claim expires for the benefit of another node’s, however often its own node repeats it', async () => {
    const database = await open();
    const { send } = await claimed(database);
    await send('two', 2, { need: 100, want: 100 });
    const ask = (node: 'one' | 'two', number: number) =>
      send(node, number, { own: 100, need: 850, want: 850 }, Date.now());
    expect(await ask('two', 3)).toMatchObject({ windows: [{ claims: true }] });
    await sleep(CLAIM_MS + 10);
    expect(await ask('two', 4)).toMatchObject({ windows: [{ claims: true }] });
    expect(await ask('one', 2)).toMatchObject({ windows: [{ claims: true, claimed: false }] });
  });

  test('a claim ends when its node withdraws it', async () => {
    const database = await open();
    const { send, wanted } = await claimed(database);
    const withdrawn = await send('two', 2, { need: 0, want: 0, withdraws: true });
    expect(withdrawn).toMatchObject({ windows: [{ claims: false, claimed: false }] });
    expect(await send('one', 2, { own: 100, need: 10, want: 10 })).toMatchObject({ windows: [{ claimed: false }] });
    expect(await wanted()).toBe(0);
  });

  test('a claim ends with the epoch of its node', async () => {
    const database = await open();
    const { store, send, wanted, t } = await claimed(database);
    await registerNode(store, 'two', { at: t });
    expect(await wanted()).toBe(0);
    expect(await send('one', 2, { own: 100, need: 10, want: 10 })).toMatchObject({ windows: [{ claimed: false }] });
  });

  test('a claim of a node that is silent for long ends', async () => {
    const database = await open();
    const { send, wanted } = await claimed(database);
    await database.queries
      .updateTable('ledger_nodes')
      .set(({ eb }) => ({ seen_at: eb('seen_at', '-', limits.node_live_ms) }))
      .where('id', '=', 'two')
      .execute();
    expect(await wanted()).toBe(0);
    expect(await send('one', 2, { own: 100, need: 10, want: 10 })).toMatchObject({ windows: [{ claimed: false }] });
  });

  test('a full batch is applied in one step', async () => {
    const database = await open();
    const { send } = await registered(database);
    const settles = Array.from({ length: 200 }, (_, index) => settleOf(`g${index}`));
    expect(await send(1, settles)).toMatchObject({ is: 'applied' });
    expect(await usage(database)).toMatchObject([{ usage_nano: 20_000, requests: 200 }]);
  });

  test('a registration fences the batches of the previous epoch', async () => {
    const database = await open();
    const { store, epoch, send } = await registered(database);
    const next = await registerNode(store, NODE, { epoch_seen: epoch, at: 3 });
    expect(next).toMatchObject({ epoch: epoch + 1 });
    expect(await send(1, [settleOf('g1')])).toEqual({ is: 'fenced', epoch: epoch + 1 });
    expect(await usage(database)).toEqual([]);
  });

  test('a store that lost batches answers with its own position', async () => {
    const database = await open();
    const { epoch, send } = await registered(database);
    await send(1, [settleOf('g1')]);
    expect(await send(3, [settleOf('g3')])).toEqual({ is: 'behind', epoch, batch: 1 });
    expect(await send(1, [], { epoch: epoch + 4 })).toEqual({ is: 'behind', epoch, batch: 1 });
    expect(await send(1, [], { node: 'unheard-of' })).toEqual({ is: 'behind', epoch: 0, batch: 0 });
    expect(await usage(database)).toMatchObject([{ requests: 1 }]);
  });

  test('the position of a node is its last batch, and a registration resets it', async () => {
    const { store, epoch, send } = await registered(await open());
    await send(1, [settleOf('g1')]);
    await send(2, []);
    expect(await store.position(NODE)).toEqual({ epoch, batch: 2 });
    await registerNode(store, NODE, { epoch_seen: epoch, at: 3 });
    expect(await store.position(NODE)).toEqual({ epoch: epoch + 1, batch: 0 });
    expect(await store.position('unheard-of')).toEqual({ epoch: 0, batch: 0 });
  });

  test('a registration with an outdated position changes nothing', async () => {
    const { store, epoch, send } = await registered(await open());
    await send(1, [settleOf('g1')]);
    const register = (known: { epoch: number; batch: number }) =>
      store.register({ node: NODE, instance: 'j', epoch_seen: epoch, known, at: 3 });
    for (const known of [
      { epoch, batch: 0 },
      { epoch, batch: 2 },
      { epoch: epoch - 1, batch: 1 },
    ]) {
      expect(await register(known)).toBeUndefined();
    }
    expect(await store.position(NODE)).toEqual({ epoch, batch: 1 });
    expect(await register({ epoch, batch: 1 })).toMatchObject({ epoch: epoch + 1 });
  });

  test('concurrent registrations get different epochs', async () => {
    const store = ledgerStore((await open()).queries, 'sqlite');
    const all = await Promise.all(Array.from({ length: 8 }, () => registerNode(store, NODE)));
    expect(all.map(({ epoch }) => epoch).sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('an epoch is higher than that of the journal', async () => {
    const store = ledgerStore((await open()).queries, 'sqlite');
    expect(await registerNode(store, NODE, { epoch_seen: 9 })).toMatchObject({
      epoch: 10,
    });
  });

  test('nodes that charge the same keys concurrently neither deadlock nor lose a charge', async () => {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    const run = async (node: string, keys: string[]) => {
      const { epoch } = await registerNode(store, node);
      for (let number = 1; number <= 20; number++) {
        const settles = keys.map((keyHash) => settleOf(`${node}-${number}-${keyHash}`, { key_hash: keyHash }));
        expect(await store.settle({ node, epoch, number, at: 2, settles, windows: [], divisor: 2 })).toMatchObject({
          is: 'applied',
        });
      }
    };
    await Promise.all([run('n1', ['a', 'b', 'c']), run('n2', ['c', 'b', 'a']), run('n3', ['b', 'a', 'c'])]);
    expect(await usage(database)).toMatchObject([{ requests: 60 }, { requests: 60 }, { requests: 60 }]);
  });

  test('a record is returned unchanged, and only to its own organization', async () => {
    const database = await open();
    const { send } = await registered(database);
    const text = 'a \u0000 ü \ud83d\ude00 \ud83d';
    // The texts that callers and providers choose.
    const texts = {
      title: text,
      http_referer: text,
      user_agent: text,
      external_user: text,
      session_id: text,
      requested_model: text,
      native_finish_reason: text,
      upstream_id: text,
      service_tier: text,
      categories: [text],
    };
    const record = generation({ id: 'g1', ...texts, cost_nano: 9_007_199_254_740_991 });
    await send(1, [toSettle(record, [])]);
    const store = generationStore(database.queries);
    expect(await store.findById({ organization_id: record.organization_id, id: 'g1' })).toEqual(record);
    expect(await store.findById({ organization_id: 'another', id: 'g1' })).toBeUndefined();
  });
});
