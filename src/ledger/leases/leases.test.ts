import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { generation } from '../../../test/generation-fixture.ts';
import { budgetOf, recorders } from '../../../test/ledger/recorder-fixture.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { windowSums } from '../../../test/ledger/window-sums.ts';
import type { Budget } from '../../schemas/budget.ts';
import type { Database } from '../../storage/database.ts';
import { ledgerStore } from '../../storage/ledger.ts';
import { realClock } from '../ledger-clock.ts';
import type { Recorder } from '../recorder.ts';
import type { Hold, HoldRequest } from './hold.ts';

let ordinal = 0;
function ask(budgets: Budget[], fullNano: number, over: Partial<HoldRequest> = {}): HoldRequest {
  ordinal += 1;
  return { id: `gen-${ordinal}`, budgets, is_byok: false, full_nano: fullNano, least_nano: fullNano, ...over };
}

function sent(hold: Hold) {
  const record = generation({ id: hold.id, outcome: 'unknown', attempts: [], cost_nano: 0 });
  return { id: hold.id, attempt: 1, endpoint: 'e', record, hold };
}

async function settle(recorder: Recorder, hold: Hold, costNano: number, byokCostNano = 0): Promise<void> {
  const record = generation({ id: hold.id, cost_nano: costNano, byok_cost_nano: byokCostNano });
  await recorder.attempt({ id: hold.id, attempt: 1, endpoint: 'e', record, hold });
  await recorder.outcome(record, hold);
}

function windowsOf({ queries }: Database) {
  return windowSums(queries).execute();
}

describeStores('budgets', ({ open }) => {
  const { asKilled, freshDir, start, stop } = recorders(open);
  const startNode = ({ queries, engine }: Database) =>
    start(ledgerStore(queries, engine), freshDir(), {
      journal_sync: 'os',
      log: { info() {}, warn() {}, error: (facts) => expect(facts).toBeUndefined() },
    });

  test('a limit that pays for exactly 500 of 5,000 requests on three nodes admits 500', {
    timeout: 180_000,
  }, async () => {
    const database = await open();
    const budget = await budgetOf(database, 500_000);
    const nodes = await Promise.all([startNode(database), startNode(database), startNode(database)]);
    let served = 0;
    let count = 0;
    const messages = new Set<string>();
    const client = async (node: Recorder) => {
      while (count < 5_000) {
        count += 1;
        try {
          const hold = await node.reserve(ask([budget], 1_000));
          await settle(node, hold, 1_000);
          served += 1;
        } catch (error) {
          messages.add((error as Error).message);
        }
      }
    };
    await Promise.all(Array.from({ length: 64 }, (_, index) => client(nodes[index % 3] as Recorder)));
    for (const message of messages) expect(message).toMatch(/^Insufficient budget: the limit of this API key/);
    await Promise.all(nodes.map((node) => node.flush()));
    expect(served).toBe(500);
    expect(await windowsOf(database)).toMatchObject([{ spent: 500_000 }]);
    await Promise.all(nodes.map((node) => node.stop()));
    expect(await windowsOf(database)).toMatchObject([{ spent: 500_000, leased: 0 }]);
  });

  test('the rest of a limit, to the last nano-dollar, is collected from other nodes', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000_000);
    const [one, two] = await Promise.all([startNode(database), startNode(database)]);
    for (let index = 0; index < 20; index++) {
      for (const node of [one, two]) await settle(node, await node.reserve(ask([budget], 10_000)), 1_000);
    }
    await Promise.all([one.flush(), two.flush()]);
    const left = 1_000_000 - 40_000;
    await expect(Promise.resolve().then(() => two.reserve(ask([budget], left + 1)))).rejects.toMatchObject({
      status: 402,
    });
    const hold = await two.reserve(ask([budget], left));
    expect(hold.granted_nano).toBe(left);
    two.release(hold);
  });

  test('a request reserves all budgets or none; a refusal names the exhausted one and leaves no hold', async () => {
    const database = await open();
    const large = await budgetOf(database, 1_000_000);
    const small = await budgetOf(database, 100, {
      id: 'workspace:w:daily',
      scope: 'workspace',
      label: 'the daily budget of workspace w',
      reset_interval: 'daily',
    });
    const node = await startNode(database);
    await expect(Promise.resolve().then(() => node.reserve(ask([large, small], 101)))).rejects.toMatchObject({
      status: 402,
      message: expect.stringMatching(/the daily budget of workspace w \(\$0\.0000001 a day\).*resets at \d{4}-/),
      metadata: { budget: 'workspace', limit: 1e-7, required: 1.01e-7, in_flight: false },
    });
    expect(node.state().held_nano).toBe(0);
    const hold = await node.reserve(ask([large, small], 100));
    expect(node.state().held_nano).toBe(200);
    await settle(node, hold, 60);
    await node.flush();
    expect(await windowsOf(database)).toMatchObject([{ spent: 60 }, { spent: 60 }]);
  });

  test('a request that accepts less gets what is left, and is refused below its minimum', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000);
    const node = await startNode(database);
    const hold = await node.reserve(ask([budget], 5_000, { least_nano: 900 }));
    expect(hold.granted_nano).toBe(1_000);
    await settle(node, hold, 150);
    await node.flush();
    await expect(
      Promise.resolve().then(() => node.reserve(ask([budget], 5_000, { least_nano: 851 }))),
    ).rejects.toMatchObject({ status: 402 });
    expect((await node.reserve(ask([budget], 5_000, { least_nano: 850 }))).granted_nano).toBe(850);
  });

  test('a share is granted of what is left beyond the fixed costs, at least the minimum, and never above the limit', async () => {
    const database = await open();
    const budget = await budgetOf(database, 100_000);
    const nodes = await Promise.all([startNode(database), startNode(database)]);
    const wanted = (fullNano: number, fixedNano = 0, leastNano = 10) =>
      ask([budget], fullNano, { least_nano: fixedNano + leastNano, share: { part: 0.25, fixed_nano: fixedNano } });
    const [node] = nodes as [Recorder, Recorder];
    const first = await node.reserve(wanted(1_000_000));
    expect(first.granted_nano).toBe(25_000);
    const again = await node.reserve(wanted(1_000_000));
    expect(again.granted_nano).toBe(18_750);
    node.release(again);
    // The fixed cost is paid in full, and the share is of the remainder.
    const dear = await node.reserve(wanted(1_000_000, 35_000));
    expect(dear.granted_nano).toBe(45_000);
    node.release(dear);
    expect((await node.preview(wanted(1_000_000))).granted_nano).toBe(18_750);
    expect((await node.reserve(wanted(200))).granted_nano).toBe(200);
    node.release(first);
    const alone: Hold[] = [];
    for (let nth = 0; nth < 12; nth += 1) alone.push(await node.reserve(wanted(1_000_000, 50, 400)));
    expect(alone.at(-1)?.granted_nano).toBeGreaterThan(450);
    for (const hold of alone) node.release(hold);
    let held = 0;
    const grants: number[] = [];
    for (let nth = 0; nth < 80; nth += 1) {
      try {
        const hold = await nodes[nth % 2]!.reserve(wanted(1_000_000, 50, 400));
        grants.push(hold.granted_nano);
        held += hold.granted_nano;
      } catch (error) {
        expect(error).toMatchObject({ status: 402 });
        break;
      }
    }
    expect(Math.max(...grants)).toBeLessThanOrEqual(25_050);
    expect(Math.min(...grants)).toBeGreaterThanOrEqual(450);
    // Amounts that other nodes hold may be returned, and count as remaining.
    expect(grants.length).toBeGreaterThan(4);
    expect(held).toBeLessThanOrEqual(100_000 - 200);
  });

  test('a refusal distinguishes money that is reserved from money that is spent', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000);
    const node = await startNode(database);
    const hold = await node.reserve(ask([budget], 1_000));
    await expect(Promise.resolve().then(() => node.reserve(ask([budget], 600)))).rejects.toMatchObject({
      status: 402,
      message: expect.stringContaining('reserved for running requests'),
      headers: { 'retry-after': '1' },
      metadata: { in_flight: true },
    });
    node.release(hold);
    expect((await node.reserve(ask([budget], 600))).granted_nano).toBe(600);
  });

  test('a second attempt keeps the possible cost of the first and frees the rest', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000);
    const node = await start(ledgerStore(database.queries, database.engine));
    const request = ask([budget], 400);
    const hold = await node.reserve(request);
    const record = generation({ id: request.id, outcome: 'unknown', cost_nano: 0 });
    await node.attempt({ id: request.id, attempt: 1, endpoint: 'e', record, hold });
    node.keep(hold, 300, false);
    await node.reserve({ ...request, full_nano: 700, least_nano: 700 }, hold);
    await node.attempt({ id: request.id, attempt: 2, endpoint: 'f', record, hold });
    expect(node.state().held_nano).toBe(1_000);
    node.keep(hold, 0, false);
    await node.reserve({ ...request, full_nano: 100, least_nano: 100 }, hold);
    await node.attempt({ id: request.id, attempt: 3, endpoint: 'g', record, hold });
    expect(node.state().held_nano).toBe(400);
    await node.outcome(generation({ id: request.id, cost_nano: 350 }), hold);
    await node.flush();
    expect(await windowsOf(database)).toMatchObject([{ spent: 350 }]);
  });

  test('a budget without BYOK is charged only what is owed to the operator', async () => {
    const database = await open();
    const paid = await budgetOf(database, 1_000);
    const both = await budgetOf(database, 1_000, { id: 'key:a:daily', reset_interval: 'daily', include_byok: true });
    const node = await startNode(database);
    const request = ask([paid, both], 300, { is_byok: true });
    const hold = await node.reserve(request);
    expect(hold.lines.map(({ budget }) => budget.id)).toEqual(['key:a:daily']);
    await settle(node, hold, 0, 200);
    await node.flush();
    expect(await windowsOf(database)).toEqual([
      {
        budget_id: 'key:a:daily',
        window_start: new Date().toISOString().slice(0, 10),
        spent: 200,
        leased: expect.any(Number),
      },
    ]);
  });

  test('a charge above its hold is counted and leaves other holds intact', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000);
    const node = await startNode(database);
    const [one, other] = [await node.reserve(ask([budget], 300)), await node.reserve(ask([budget], 300))];
    await settle(node, one, 500);
    await node.flush();
    expect(await windowsOf(database)).toMatchObject([{ spent: 500 }]);
    expect(node.state().held_nano).toBe(300);
    await settle(node, other, 300);
    await node.flush();
    await expect(Promise.resolve().then(() => node.reserve(ask([budget], 201)))).rejects.toMatchObject({ status: 402 });
    await node.reserve(ask([budget], 200));
  });

  test('a charge above its hold uses up the free part of the lease, so that the next call asks the store', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000);
    const node = await startNode(database);
    // The lease of a node that has had calls is larger than what they need.
    for (let call = 0; call < 3; call += 1) await settle(node, await node.reserve(ask([budget], 10)), 10);
    await node.flush();
    const held = await node.reserve(ask([budget], 10));
    const free = await node.reserve(ask([budget], 10));
    node.release(free);
    await settle(node, held, 2_000);
    // Before the store has received the charge.
    await expect((async () => node.reserve(ask([budget], 10)))()).rejects.toMatchObject({ status: 402 });
    expect(await windowsOf(database)).toMatchObject([{ spent: 2_030 }]);
  });

  test('a lowered limit grants nothing until spending is below it, and idle leases are returned', {
    timeout: 20_000,
  }, async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000_000);
    const node = await startNode(database);
    for (let index = 0; index < 10; index++) await settle(node, await node.reserve(ask([budget], 10_000)), 10_000);
    await node.flush();
    await database.queries.updateTable('ledger_budgets').set({ limit_nano: 50_000 }).execute();
    await expect.poll(async () => (await windowsOf(database))[0]).toMatchObject({ spent: 100_000, leased: 0 });
    await expect(
      Promise.resolve().then(() => node.reserve(ask([{ ...budget, limit_nano: 50_000 }], 1))),
    ).rejects.toMatchObject({ status: 402 });
  });

  test.each([
    ['soft', 2_500],
    ['strict', 7_000],
  ] as const)(
    'metered usage of an attempt with an unknown outcome is charged in budget mode %s',
    async (mode, spent) => {
      const database = await open();
      const budget = await budgetOf(database, 1_000_000);
      const [store, dataDir] = [ledgerStore(database.queries, database.engine), freshDir()];
      const killed = await start(store, dataDir, { unknown_outcome: 'metered' });
      const hold = await killed.reserve(ask([budget], 7_000, { mode }));
      await killed.attempt(sent(hold));
      killed.progress(hold.id, { out_text: 5 }, 2_500);
      await sleep(50);
      const next = await start(store, asKilled(dataDir), { unknown_outcome: 'metered' });
      await next.flush();
      expect(await windowsOf(database)).toMatchObject([{ spent }]);
    },
  );

  test('a node that was killed charges attempts with an unknown outcome at their hold', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000_000);
    const [store, dataDir] = [ledgerStore(database.queries, database.engine), freshDir()];
    const killed = await start(store, dataDir);
    const hold = await killed.reserve(ask([budget], 7_000));
    await killed.attempt(sent(hold));
    const next = await start(store, asKilled(dataDir));
    await next.flush();
    expect(await windowsOf(database)).toMatchObject([{ spent: 7_000 }]);
    await stop(next);
    expect(await windowsOf(database)).toMatchObject([{ spent: 7_000, leased: 0 }]);
  });

  test.each([0.5, Number.NaN, -1, 2 ** 60])(
    'a cost of %d is charged as an unknown outcome, and leaves no hold',
    async (costNano) => {
      const database = await open();
      const budget = await budgetOf(database, 1_000_000);
      const recorder = await start(ledgerStore(database.queries, database.engine));
      const hold = await recorder.reserve(ask([budget], 7_000));
      await recorder.attempt(sent(hold));
      await recorder.outcome(generation({ id: hold.id, cost_nano: costNano }), hold);
      await settle(recorder, await recorder.reserve(ask([budget], 3_000)), 3_000);
      await recorder.flush();
      expect(await windowsOf(database)).toMatchObject([{ spent: 10_000 }]);
      expect(recorder.state()).toMatchObject({ held_nano: 0, unflushed: 0 });
      await stop(recorder);
      expect(await windowsOf(database)).toMatchObject([{ spent: 10_000, leased: 0 }]);
    },
  );

  test('a call whose end cannot be recorded is charged its hold, and released if nothing was sent', async () => {
    const database = await open();
    const both = await budgetOf(database, 1_000_000, {
      id: 'key:a:daily',
      reset_interval: 'daily',
      include_byok: true,
    });
    const paid = await budgetOf(database, 1_000_000);
    const recorder = await start(ledgerStore(database.queries, database.engine));
    await recorder.lose(await recorder.reserve(ask([paid], 500)));
    const hold = await recorder.reserve(ask([both, paid], 2_000));
    await recorder.attempt(sent(hold));
    recorder.keep(hold, 1_500, false);
    const own = await recorder.reserve({ ...ask([both, paid], 4_000), is_byok: true }, hold);
    const again = sent(own);
    await recorder.attempt({ ...again, attempt: 2, record: { ...again.record, is_byok: true } });
    await recorder.lose(own);
    await recorder.flush();
    expect(await windowsOf(database)).toMatchObject([{ spent: 5_500 }, { spent: 1_500 }]);
    expect(recorder.state().held_nano).toBe(0);
  });

  test('after a refusal the node withdraws its claim on the budget', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000);
    const [one, two] = [await startNode(database), await startNode(database)];
    const hold = await one.reserve(ask([budget], 700));
    await expect(two.reserve(ask([budget], 800))).rejects.toMatchObject({ status: 402 });
    const claimants = async () =>
      (await database.queries.selectFrom('ledger_windows').select('wanted_by').execute())[0];
    await expect.poll(claimants).toEqual({ wanted_by: '' });
    one.release(hold);
  });

  test('a call counts in the windows of the time at which it was received, which is the day of its record', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000, { id: 'key:a:daily', reset_interval: 'daily' });
    const now = () => Date.parse('2026-11-22T00:00:00.500Z');
    const recorder = await start(ledgerStore(database.queries, 'sqlite'), freshDir(), { clock: realClock(now) });
    const createdAt = '2026-11-21T23:59:59.900Z';
    const hold = await recorder.reserve(ask([budget], 100, { at: Date.parse(createdAt) }));
    await recorder.attempt(sent(hold));
    await recorder.outcome(generation({ id: hold.id, cost_nano: 100, created_at: createdAt }), hold);
    await settle(recorder, await recorder.reserve(ask([budget], 7, { at: now() - 3_600_000 })), 7);
    await recorder.flush();
    expect(await windowsOf(database)).toMatchObject([
      { window_start: '2026-11-21', spent: 100 },
      { window_start: '2026-11-22', spent: 7 },
    ]);
  });

  test('after the machine slept, the first request reads the store’s time', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000, { id: 'key:a:daily', reset_interval: 'daily' });
    let sleptMs = 0;
    const now = () => Date.parse('2026-11-21T12:00:00.000Z') + sleptMs;
    const store = ledgerStore(database.queries, 'sqlite');
    const recorder = await start(store, freshDir(), { clock: realClock(now) });
    await settle(recorder, await recorder.reserve(ask([budget], 5)), 5);
    await recorder.flush();
    sleptMs = 13 * 3_600_000;
    await settle(recorder, await recorder.reserve(ask([budget], 7)), 7);
    await recorder.flush();
    expect(await windowsOf(database)).toMatchObject([
      { window_start: '2026-11-21', spent: 5 },
      { window_start: '2026-11-22', spent: 7 },
    ]);
    sleptMs += 24 * 3_600_000;
    store.watch = () => Promise.reject(new Error('the store is down'));
    await expect(recorder.reserve(ask([budget], 1))).rejects.toMatchObject({ status: 503 });
    expect(recorder.reserve(ask([], 1))).toMatchObject({ granted_nano: 1 });
  });

  test.each([
    ['group', 2_000],
    ['os', 7_000],
  ] as const)(
    'a hold shrinks with its next record only if a power loss cannot lose that record: %s',
    async (journalSync, heldNano) => {
      const database = await open();
      const budget = await budgetOf(database, 1_000_000);
      const recorder = await start(ledgerStore(database.queries, database.engine), freshDir(), {
        journal_sync: journalSync,
      });
      const hold = await recorder.reserve(ask([budget], 7_000));
      await recorder.attempt(sent(hold));
      await recorder.reserve(ask([budget], 2_000), hold);
      await recorder.attempt({ ...sent(hold), attempt: 2 });
      expect(recorder.state().held_nano).toBe(heldNano);
      await recorder.outcome(generation({ id: hold.id, cost_nano: 0 }), hold);
    },
  );

  test('a raised limit is used at once, also right after a refusal', async () => {
    const database = await open();
    const budget = await budgetOf(database, 10);
    const recorder = await startNode(database);
    await expect(recorder.reserve(ask([budget], 11))).rejects.toMatchObject({ status: 402 });
    await database.queries.updateTable('ledger_budgets').set({ limit_nano: 20 }).execute();
    const hold = await recorder.reserve(ask([{ ...budget, limit_nano: 20 }], 11));
    expect(hold.granted_nano).toBe(11);
    recorder.release(hold);
  });

  test('a stream’s hold grows while the store has money, then by returned leases, then no more', async () => {
    const database = await open();
    const budget = await budgetOf(database, 1_000);
    const [one, other] = await Promise.all([startNode(database), startNode(database)]);
    const hold = await one.reserve(ask([budget], 10));
    const elsewhere = await other.reserve(ask([budget], 100));
    const grow = (to: number) => expect.poll(() => one.extend(hold, to), { interval: 20 }).toBe(true);
    for (let to = 100; to <= 900; to += 100) await grow(to);
    // The remainder is reserved for a request at the other node.
    await sleep(300);
    expect(await one.extend(hold, 901)).toBe(false);
    other.release(elsewhere);
    await grow(1_000);
    expect(await one.extend(hold, 1_001)).toBe(false);
    await settle(one, hold, 1_000);
    await one.flush();
    expect(await windowsOf(database)).toMatchObject([{ spent: 1_000, leased: 0 }]);
  });
});
