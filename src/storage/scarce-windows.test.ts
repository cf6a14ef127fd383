import { expect, test } from 'vitest';
import { budgetOf } from '../../test/ledger/recorder-fixture.ts';
import { registerNode } from '../../test/ledger/registered-node.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import type { WindowRequest } from '../ledger/settle.ts';
import { budgetStore } from './budgets.ts';
import type { Database } from './database.ts';
import { ledgerStore } from './ledger.ts';
import { organizationStore } from './organizations.ts';

const AT = '2026-11-23T00:00:00.000Z';

async function leasing({ queries, engine }: Database, budgetId: string) {
  const store = ledgerStore(queries, engine);
  const { epoch } = await registerNode(store, 'one', { at: Date.now() });
  let number = 0;
  const none = { returned: 0, need: 0, want: 0, slack: 0, withdraws: false };
  const send = (over: Partial<WindowRequest>) => {
    number += 1;
    return store.settle({
      ...{ node: 'one', epoch, number, at: Date.now(), settles: [], divisor: 4 },
      windows: [{ budget_id: budgetId, window_start: '', is_new: number === 1, own: 0, ...none, ...over }],
    });
  };
  // The first two watches read all windows, as the first one of each minute does, and detect which programs run.
  const begin = async () => {
    await store.watch('one', Date.now());
    await store.watch('one', Date.now());
  };
  const seen = async () => {
    const { wanted, scarce } = await store.watch('one', Date.now());
    return { wanted: wanted.length, scarce: scarce.length };
  };
  const marks = async () =>
    (await queries.selectFrom('ledger_windows').select('scarce').execute()).map(({ scarce }) => scarce);
  return { store, send, begin, seen, marks };
}

describeStores('windows with little money left', ({ open }) => {
  test('a window is marked as scarce while less than eight times its leases is free', async () => {
    const database = await open();
    const { id } = await budgetOf(database, 1_000);
    const { send, begin, seen, marks } = await leasing(database, id);
    await begin();
    await send({ need: 111, want: 111 });
    expect(await marks()).toEqual([0]);
    expect(await seen()).toEqual({ wanted: 0, scarce: 0 });
    await send({ own: 111, need: 1, want: 1 });
    expect(await marks()).toEqual([1]);
    expect(await seen()).toEqual({ wanted: 0, scarce: 1 });
    await send({ own: 112, returned: 1 });
    expect(await marks()).toEqual([0]);
    await send({ own: 111, returned: 111 });
    expect(await marks()).toEqual([0]);
  });

  test('a lowered or removed limit marks its leases as wanted, in the transaction of the change', async () => {
    const database = await open();
    const { queries } = database;
    const { organization_id } = await organizationStore(queries).insertFirst({ at: AT });
    const budgets = budgetStore(queries);
    await budgets.keepCredits(organization_id, 10_000, AT);
    const { id } = await queries.selectFrom('ledger_budgets').select('id').executeTakeFirstOrThrow();
    const { send, begin, seen, marks } = await leasing(database, id);
    await begin();
    await send({ need: 100, want: 100 });
    expect(await seen()).toEqual({ wanted: 0, scarce: 0 });
    await budgets.keepCredits(organization_id, 99, AT);
    expect(await marks()).toEqual([1]);
    expect(await seen()).toEqual({ wanted: 1, scarce: 0 });
    await budgets.keepCredits(organization_id, 10_000, AT);
    expect(await seen()).toEqual({ wanted: 0, scarce: 0 });
    await budgets.close({ payers: [{ by: 'organization_id', id: organization_id, organization_id }] });
    expect(await seen()).toEqual({ wanted: 1, scarce: 0 });
  });

  test('a window without leases loses its mark', async () => {
    const database = await open();
    const { id } = await budgetOf(database, 1_000);
    const { store, send, marks } = await leasing(database, id);
    await send({ need: 100, want: 100 });
    await send({ own: 100, returned: 100 });
    await database.queries.updateTable('ledger_windows').set({ scarce: 1 }).execute();
    await store.watch('one', Date.now());
    expect(await marks()).toEqual([0]);
  });

  test('an unmarked scarce window is found within a minute, or at once while an older version runs', async () => {
    const database = await open();
    const { queries, engine } = database;
    const { id } = await budgetOf(database, 1_000);
    const { store, send, begin, seen } = await leasing(database, id);
    await send({ need: 100, want: 100 });
    await begin();
    await queries.updateTable('ledger_budgets').set({ limit_nano: 50 }).execute();
    expect(await seen()).toEqual({ wanted: 0, scarce: 0 });
    expect((await store.watch('one', Date.now() + 60_000)).wanted).toHaveLength(1);
    if (engine === 'sqlite') return;
    expect((await store.watch('one', Date.now())).keeps_leases).toBe(true);
    await registerNode(store, 'older', { at: Date.now() });
    await queries.updateTable('ledger_nodes').set({ charges_leases: 1 }).where('id', '=', 'older').execute();
    expect((await store.watch('one', Date.now())).keeps_leases).toBe(false);
    expect(await seen()).toEqual({ wanted: 1, scarce: 0 });
  });
});
