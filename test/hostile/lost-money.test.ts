import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { windowStarts } from '../../src/accounts/key.ts';
import { createLostNodes } from '../../src/api/ledger/book-lost-nodes.ts';
import { limits } from '../../src/limits.ts';
import type { Database } from '../../src/storage/database.ts';
import { keyStore } from '../../src/storage/keys.ts';
import { ledgerStore } from '../../src/storage/ledger.ts';
import { verifyLedger } from '../../src/storage/verify-ledger.ts';
import { generation } from '../generation-fixture.ts';
import { managementServer } from '../http/management-server.ts';
import { budgetOf, recorders } from '../ledger/recorder-fixture.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { windowSums } from '../ledger/window-sums.ts';

const ZEROS = 3_000;
const NOW = '2026-11-21T10:00:00.000Z';

/** The statements that a store executes, as they are executed. */
function listen(database: Database): { sql: string; parameters: readonly unknown[] }[] {
  const sent: { sql: string; parameters: readonly unknown[] }[] = [];
  const executor = database.queries.getExecutor();
  const original = executor.executeQuery.bind(executor);
  executor.executeQuery = ((query: { sql: string; parameters: readonly unknown[] }, ...rest: []) => {
    sent.push(query);
    return original(query as never, ...rest);
  }) as never;
  return sent;
}

describeStores('leases of used budgets and lost nodes', ({ open }) => {
  const { asKilled, setUp, start, stop } = recorders(open);

  const leasesOf = ({ queries }: Database) =>
    queries.selectFrom('ledger_leases').select(['node_id', 'amount']).execute();
  const windowOf = async ({ queries }: Database) => {
    const { spent, leased } = await windowSums(queries).executeTakeFirstOrThrow();
    return { spent, leased };
  };
  const age = ({ queries }: Database, ms: number) =>
    queries
      .updateTable('ledger_nodes')
      .set({ seen_at: sql<number>`seen_at - ${ms}` })
      .execute();

  test('a used lease has no row, and an unused one has none either', async () => {
    const { database, recorder } = await setUp();
    const budget = await budgetOf(database, 1_000);
    const ask = { id: 'g', budgets: [budget], is_byok: false, full_nano: 1_000, least_nano: 1_000 };
    const hold = await recorder.reserve(ask);
    expect(await leasesOf(database)).toMatchObject([{ amount: 1_000 }]);
    const record = generation({ id: 'g', outcome: 'unknown', attempts: [], cost_nano: 0 });
    await recorder.attempt({ id: 'g', attempt: 1, endpoint: 'e', record, hold });
    await recorder.outcome(generation({ id: 'g', cost_nano: 1_000 }), hold);
    await recorder.flush();
    expect(await leasesOf(database)).toEqual([]);
    await expect(async () => recorder.reserve({ ...ask, id: 'h' })).rejects.toMatchObject({ status: 402 });
    expect(await leasesOf(database)).toEqual([]);
    expect((await verifyLedger(database.queries)).differences).toEqual([]);
  });

  test('the statement that a node repeats four times a second uses the index of open leases', async () => {
    const database = await open();
    const { queries, engine } = database;
    const rows = Array.from({ length: ZEROS }, (_, n) => ({
      node_id: 'n',
      budget_id: `b${n}`,
      window_start: '',
      amount: n === 7 ? 5 : 0,
      settled: 0,
    }));
    for (let at = 0; at < rows.length; at += 500)
      await queries
        .insertInto('ledger_leases')
        .values(rows.slice(at, at + 500))
        .execute();
    await sql`ANALYZE`.execute(queries);
    const sent = listen(database);
    await ledgerStore(queries, engine).watch('n', Date.now());
    const wanted = sent.find((query) => query.sql.includes('"ledger_leases" as "l"'));
    expect(wanted).toBeDefined();
    const explain = engine === 'sqlite' ? 'EXPLAIN QUERY PLAN ' : 'EXPLAIN ';
    const { rows: plan } = await queries.executeQuery({
      ...(wanted as never as object),
      sql: explain + wanted?.sql,
    } as never);
    expect(JSON.stringify(plan)).toContain('ledger_leases_held');
  });

  test('the leases of a lost node are booked as spent, once, with an audit entry, and nothing is released', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const { home, change } = await managementServer(database, NOW);
    const budget = await budgetOf(database, 10_000);
    const ask = { id: 'g', budgets: [budget], is_byok: false, full_nano: 4_000, least_nano: 4_000 };
    const hold = await recorder.reserve(ask);
    const record = generation({ id: 'g', outcome: 'unknown', attempts: [], cost_nano: 0 });
    await recorder.attempt({ id: 'g', attempt: 1, endpoint: 'e', record, hold });
    await recorder.flush();
    const killed = asKilled(data_dir);
    const { leased } = await windowOf(database);
    expect(leased).toBeGreaterThanOrEqual(4_000);
    // From here on it answers no node.
    store.watch = () => Promise.reject(new Error('cut off'));
    await age(database, 2 * limits.node_lost_ms);
    const log = { warn() {} };
    const lost = createLostNodes({
      after_ms: limits.node_lost_ms,
      database,
      change,
      home,
      clock: { nowMs: Date.now },
      log,
    });
    await lost.check();
    expect(await windowOf(database)).toEqual({ spent: 0, leased });
    await lost.check();
    await lost.check();
    expect(await windowOf(database)).toEqual({ spent: leased, leased: 0 });
    expect((await verifyLedger(database.queries)).differences).toEqual([]);
    const audited = await database.queries
      .selectFrom('audit_events')
      .select(['resource_id', 'actor'])
      .where('resource_type', '=', 'ledger_node')
      .execute();
    expect(audited).toEqual([{ resource_id: recorder.state().node, actor: 'environment' }]);

    // Its journal returns: its outcomes are charged, and nothing else.
    const back = await start(ledgerStore(database.queries, database.engine), killed);
    await back.flush();
    await stop(back);
    expect(await windowOf(database)).toEqual({ spent: 4_000, leased: 0 });
    expect(await database.queries.selectFrom('ledger_lost_leases').selectAll().execute()).toEqual([]);
    expect((await verifyLedger(database.queries)).differences).toEqual([]);
  });

  test('a node that was booked as lost continues with its leases', async () => {
    const { database, store, recorder } = await setUp();
    const { home, change } = await managementServer(database, NOW);
    const budget = await budgetOf(database, 10_000);
    const ask = { id: 'g', budgets: [budget], is_byok: false, full_nano: 4_000, least_nano: 4_000 };
    const hold = await recorder.reserve(ask);
    const record = generation({ id: 'g', outcome: 'unknown', attempts: [], cost_nano: 0 });
    await recorder.attempt({ id: 'g', attempt: 1, endpoint: 'e', record, hold });
    const { watch } = store;
    store.watch = () => Promise.reject(new Error('cut off'));
    await age(database, 2 * limits.node_lost_ms);
    const lost = createLostNodes({
      after_ms: limits.node_lost_ms,
      database,
      change,
      home,
      clock: { nowMs: Date.now },
      log: { warn() {} },
    });
    await lost.check();
    await lost.check();
    expect((await windowOf(database)).leased).toBe(0);
    store.watch = watch;
    await recorder.outcome(generation({ id: 'g', cost_nano: 1_500 }), hold);
    await recorder.flush();
    const { spent, leased } = await windowOf(database);
    expect(spent).toBe(1_500);
    expect(recorder.state().leased_nano).toBe(leased);
    expect((await verifyLedger(database.queries)).differences).toEqual([]);
  });

  test('the rest of a limit excludes the holds of a lost node, booked or not', async () => {
    const { database, recorder } = await setUp();
    const keys = keyStore(database.queries);
    const { addKey } = await managementServer(database, NOW);
    const key = await addKey({ limit_nano: 10_000 });
    const budget = await database.queries
      .selectFrom('ledger_budgets')
      .selectAll()
      .where('subject', '=', `key:${key.hash}`)
      .executeTakeFirstOrThrow();
    await recorder.reserve({
      id: 'g',
      budgets: [{ ...budget, limit_nano: 10_000 } as never],
      is_byok: false,
      full_nano: 4_000,
      least_nano: 4_000,
    });
    const taken = async () => {
      const { counted = 0, stuck = 0 } = await keys.findUsage(key.hash, windowStarts(Date.now()));
      return counted + stuck;
    };
    expect(await taken()).toBe(0);
    await stop(recorder);
    await age(database, 2 * limits.node_lost_ms);
    expect(await taken()).toBe(4_000);
  });
});
