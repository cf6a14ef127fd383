import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { heldTransaction } from '../../test/ledger/held-transaction.ts';
import { budgetOf } from '../../test/ledger/recorder-fixture.ts';
import { registerNode } from '../../test/ledger/registered-node.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { Random } from '../../test/simulation/random.ts';
import { type SettleBatch, toSettle, type WindowRequest } from '../ledger/settle.ts';
import { limits } from '../limits.ts';
import { BulkStatement } from './bulk.ts';
import type { Database } from './database.ts';
import { ledgerStore } from './ledger.ts';
import { ledgerOperations } from './ledger-operations.ts';
import { verifyLedger } from './verify-ledger.ts';

const NOTHING = { is_new: true, own: 0, returned: 0, need: 0, want: 0, slack: 0, withdraws: false };

/** A node that requests, settles and returns at random, independently of the others. */
class Peer {
  readonly leases = new Map<string, number>();
  readonly #store: ReturnType<typeof ledgerStore>;
  readonly #random: Random;
  readonly #node: string;
  readonly #payer: { organization_id: string; workspace_id: string; key_hash: string };
  #epoch = 0;
  #number = 0;
  #settled = 0;

  constructor(database: Database, node: string, payer: Peer['payer'], random: Random) {
    this.#store = ledgerStore(database.queries, database.engine);
    this.#node = node;
    this.#payer = payer;
    this.#random = random;
  }

  get payer() {
    return this.#payer;
  }

  async register(): Promise<void> {
    const at = Date.now();
    const { epoch, leases } = await registerNode(this.#store, this.#node, { at });
    await this.#store.watch(this.#node, at);
    this.#epoch = epoch;
    this.#number = 0;
    this.leases.clear();
    for (const { budget_id, amount } of leases) this.leases.set(budget_id, amount);
  }

  /** One batch over some of the budgets, in any order. False if the node was released. */
  async step(budgetIds: readonly string[]): Promise<boolean> {
    const random = this.#random;
    const named = [...budgetIds].sort(() => random.next() - 0.5).slice(0, random.whole(1, budgetIds.length));
    const charges: { budget_id: string; window_start: string; amount: number; cover: number }[] = [];
    const windows = named.map((budgetId): WindowRequest => {
      const own = this.leases.get(budgetId) ?? 0;
      const cost = random.chance(0.5) ? random.whole(0, own) : 0;
      if (cost > 0) charges.push({ budget_id: budgetId, window_start: '', amount: cost, cover: cost });
      const returned = random.chance(0.3) ? random.whole(0, own - cost) : 0;
      const want = random.chance(0.7) ? random.whole(1, 5_000) : 0;
      return {
        ...NOTHING,
        is_new: !this.leases.has(budgetId),
        budget_id: budgetId,
        window_start: '',
        own,
        returned,
        want,
        need: random.chance(0.8) ? want : 0,
      };
    });
    const costNano = Math.max(0, ...charges.map(({ amount }) => amount));
    const id = `${this.#node}-${this.#epoch}-${++this.#settled}`;
    const record = generation({ id, ...this.#payer, cost_nano: costNano, upstream_cost_nano: costNano });
    const settles = charges.length === 0 ? [] : [toSettle(record, charges)];
    const head = { node: this.#node, epoch: this.#epoch, number: this.#number + 1, at: Date.now(), divisor: 8 };
    const batch: SettleBatch = { ...head, settles, windows };
    const answers = await Promise.all([
      this.#store.settle(batch),
      // A late copy, or one that arrives early.
      ...(random.chance(0.2) ? [this.#store.settle(batch)] : []),
    ]);
    const applied = answers.find((answer) => answer.is === 'applied');
    if (applied === undefined) return false;
    this.#number++;
    for (const { budget_id, lease } of applied.windows) this.leases.set(budget_id, lease);
    return true;
  }
}

describeStores('the ledger store under concurrent requests', ({ engine, open }) => {
  test.runIf(engine === 'postgres')(
    'a grant that waits while the limit is lowered uses the lowered limit',
    async () => {
      const database = await open();
      const budget = await budgetOf(database, 1_000);
      const store = ledgerStore(database.queries, database.engine);
      const { epoch } = await registerNode(store, 'one');
      const send = (number: number, want: number, own: number) =>
        store.settle({
          ...{ node: 'one', epoch, number, at: 1, settles: [], divisor: 2 },
          // A window that is sent as new would block its own statement.
          windows: [
            { ...NOTHING, is_new: number === 1, budget_id: budget.id, window_start: '', own, need: want, want },
          ],
        });
      expect(await send(1, 100, 0)).toMatchObject({ windows: [{ lease: 100 }] });
      const commit = await heldTransaction(database.queries, (tx) =>
        tx.updateTable('ledger_windows').set({ wanted: 0 }).where('budget_id', '=', budget.id).execute(),
      );
      const granted = send(2, 500, 100);
      expect(await Promise.race([granted.then(() => 'granted'), sleep(200, 'waits')])).toBe('waits');
      await database.queries.updateTable('ledger_budgets').set({ limit_nano: 300 }).execute();
      await commit();
      expect(await granted).toMatchObject({ windows: [{ lease: 100, leased: 100, free: 200 }] });
    },
  );

  test.runIf(engine === 'postgres')(
    'a charge within its lease does not wait for a locked window, and counts as spent immediately',
    async () => {
      const database = await open();
      const { queries } = database;
      const budget = await budgetOf(database, 1_000);
      const store = ledgerStore(queries, database.engine);
      const { epoch } = await registerNode(store, 'one');
      const window = { ...NOTHING, budget_id: budget.id, window_start: '' };
      const batch = { node: 'one', epoch, at: 1, divisor: 2 };
      await store.watch('one', 1);
      await store.settle({ ...batch, number: 1, settles: [], windows: [{ ...window, need: 100, want: 100 }] });
      const commit = await heldTransaction(queries, (tx) =>
        tx.updateTable('ledger_windows').set({ wanted: 0 }).where('budget_id', '=', budget.id).execute(),
      );
      const charges = [{ budget_id: budget.id, window_start: '', amount: 30, cover: 30 }];
      const settles = [toSettle(generation({ id: 'g', cost_nano: 30 }), charges)];
      const owned = { ...window, is_new: false, own: 100 };
      const run = vi.spyOn(BulkStatement.prototype, 'run');
      expect(await store.settle({ ...batch, number: 2, settles, windows: [owned] })).toMatchObject({
        windows: [{ lease: 70, leased: 70, spent: 30, free: 900 }],
      });
      // The number of the batch, the record, usage, activity, three for the sums of usage, and the lease.
      expect(run).toHaveBeenCalledTimes(8);
      run.mockRestore();
      expect(await store.look([window])).toMatchObject([{ spent: 30, leased: 70 }]);
      await commit();
      // The next request for money moves it to the row of the window.
      const asks = { ...owned, own: 70, need: 5, want: 5 };
      expect(await store.settle({ ...batch, number: 3, settles: [], windows: [asks] })).toMatchObject({
        windows: [{ lease: 75, leased: 75, spent: 30, free: 895 }],
      });
      const rows = queries.selectFrom('ledger_windows').select(['spent', 'leased']);
      expect(await rows.execute()).toEqual([{ spent: 30, leased: 75 }]);
      expect((await verifyLedger(queries)).differences.filter(({ of }) => of === 'leases')).toEqual([]);
    },
  );

  test.runIf(engine === 'postgres')(
    'no charge is counted in a lease alone while a node of an older version may run',
    async () => {
      const database = await open();
      const { queries } = database;
      const budget = await budgetOf(database, 1_000);
      const store = ledgerStore(queries, 'postgres');
      const { epoch } = await registerNode(store, 'one');
      await registerNode(store, 'older');
      await queries.updateTable('ledger_nodes').set({ charges_leases: 0 }).where('id', '=', 'older').execute();
      const window = { ...NOTHING, budget_id: budget.id, window_start: '' };
      const batch = { node: 'one', epoch, at: 1, divisor: 2 };
      await store.settle({ ...batch, number: 1, settles: [], windows: [{ ...window, need: 100, want: 100 }] });
      const spentAfter = async (number: number) => {
        const charges = [{ budget_id: budget.id, window_start: '', amount: 10, cover: 10 }];
        const settles = [toSettle(generation({ id: `g${number}`, cost_nano: 10 }), charges)];
        const own = 120 - number * 10;
        await store.settle({ ...batch, number, settles, windows: [{ ...window, is_new: false, own }] });
        return queries.selectFrom('ledger_windows').select('spent').executeTakeFirst();
      };
      expect(await spentAfter(2)).toEqual({ spent: 10 });
      await store.watch('one', 1);
      expect(await spentAfter(3)).toEqual({ spent: 20 });
      await queries
        .updateTable('ledger_nodes')
        .set(({ eb }) => ({ seen_at: eb('seen_at', '-', limits.node_lost_ms) }))
        .where('id', '=', 'older')
        .execute();
      await store.watch('one', 1);
      expect(await spentAfter(4)).toEqual({ spent: 20 });
      expect(await store.look([window])).toMatchObject([{ spent: 30, leased: 70 }]);
    },
  );

  test('the spent part of other nodes’ leases is not claimed', async () => {
    const database = await open();
    const budget = await budgetOf(database, 100);
    const store = ledgerStore(database.queries, database.engine);
    const window = { ...NOTHING, budget_id: budget.id, window_start: '' };
    const [one, two] = [await registerNode(store, 'one'), await registerNode(store, 'two')];
    await store.watch('one', 1);
    const send = (node: string, number: number, rest: Partial<SettleBatch>) =>
      store.settle({
        ...{ node, epoch: node === 'one' ? one.epoch : two.epoch, number, at: 1, divisor: 1, settles: [], windows: [] },
        ...rest,
      });
    await send('one', 1, { windows: [{ ...window, need: 100, want: 100 }] });
    const charges = [{ budget_id: budget.id, window_start: '', amount: 90, cover: 90 }];
    const settles = [toSettle(generation({ id: 'g', cost_nano: 90 }), charges)];
    await send('one', 2, { settles, windows: [{ ...window, is_new: false, own: 100 }] });
    // 10 are leased elsewhere: no claim for 20, and one for 10.
    const asks = (need: number) => ({ windows: [{ ...window, need, want: need }] });
    expect(await send('two', 1, asks(20))).toMatchObject({ windows: [{ leased: 10, spent: 90, claims: false }] });
    expect(await send('two', 2, asks(10))).toMatchObject({ windows: [{ leased: 10, spent: 90, claims: true }] });
  });

  test('no order of batches, changed limits and released nodes exceeds a limit or loses a unit', {
    timeout: 180_000,
  }, async () => {
    const database = await open();
    const random = new Random(engine === 'postgres' ? 5 : 6);
    const { queries } = database;
    const ids = ['a', 'b', 'c'];
    for (const id of ids) await budgetOf(database, 60_000, { id });
    const { organization_id, workspace_id, key_hash } = generation({ id: '' });
    const payer = { organization_id, workspace_id, key_hash };
    const peers = ['n1', 'n2', 'n3', 'n4'].map(
      (node) => new Peer(database, node, payer, new Random(random.whole(1, 1e9))),
    );
    await Promise.all(peers.map((peer) => peer.register()));
    const over: string[] = [];
    let running = true;
    const highest = new Map(ids.map((id) => [id, 60_000]));
    const watch = async () => {
      while (running) {
        const rows = await queries
          .selectFrom('ledger_windows as w')
          .leftJoin('ledger_leases as l', 'l.budget_id', 'w.budget_id')
          .select(['w.budget_id', 'w.spent', 'w.leased'])
          .select(sql<number>`CAST(COALESCE(SUM(l.amount + l.settled), 0) AS BIGINT)`.as('leases'))
          .groupBy(['w.budget_id', 'w.spent', 'w.leased'])
          .execute();
        for (const { budget_id, spent, leased, leases } of rows) {
          if (spent + leased > (highest.get(budget_id) ?? 0)) over.push(`${budget_id}: ${spent} + ${leased}`);
          if (leased !== leases) over.push(`${budget_id}: ${leased} leased, ${leases} in leases`);
        }
        await sleep(5);
      }
    };
    const change = async () => {
      while (running) {
        const id = random.pick(ids);
        // Only while limits rise is the allowed amount known at every moment.
        const limitNano = (highest.get(id) ?? 0) + random.whole(0, 4_000);
        highest.set(id, limitNano);
        await queries.updateTable('ledger_budgets').set({ limit_nano: limitNano }).where('id', '=', id).execute();
        await sleep(random.whole(5, 30));
      }
    };
    const giveUp = async () => {
      while (running) {
        await sleep(random.whole(50, 120));
        // Its unsettled amount is granted to others: a node that continues is fenced.
        await queries
          .updateTable('ledger_nodes')
          .set(({ eb }) => ({ seen_at: eb('seen_at', '-', 2 * limits.node_lost_ms) }))
          .where('id', '=', 'n4')
          .execute();
        await queries.transaction().execute((tx) => ledgerOperations(tx, engine).release('n4', Date.now()));
      }
    };
    const others = [watch(), change(), giveUp()];
    await Promise.all(
      peers.map(async (peer) => {
        for (let step = 0; step < 80; step++) if (!(await peer.step(ids))) await peer.register();
      }),
    );
    running = false;
    await Promise.all(others);
    expect(over).toEqual([]);
    const { differences, generations } = await verifyLedger(queries);
    expect(generations).toBeGreaterThan(50);
    expect(differences).toEqual([]);
  });
});
