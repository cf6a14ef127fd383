import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { generation, noHold } from '../../test/generation-fixture.ts';
import { attempt, budgetOf, down, faulty, files, recorders, stored } from '../../test/ledger/recorder-fixture.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import type { Database } from '../storage/database.ts';
import { ledgerStore } from '../storage/ledger.ts';
import { ledgerOperations } from '../storage/ledger-operations.ts';
import { FLUSH_REFUSALS_MAX } from './pipe.ts';
import type { Recorder } from './recorder.ts';
import type { LedgerStore } from './settle.ts';

describeStores('a store that loses batches', ({ open }) => {
  const { asKilled, freshDir, start, stop, setUp } = recorders(open);

  /** Records calls in one batch each; the returned function resets the store to its state after the first. */
  async function forgetAllButFirst(database: Database, recorder: Recorder, ids: string[]) {
    for (const id of ids) {
      await recorder.outcome(generation({ id }), noHold());
      await recorder.flush();
    }
    return async () => {
      await database.queries
        .deleteFrom('ledger_generations')
        .where('id', '<>', ids[0] ?? '')
        .execute();
      await database.queries.updateTable('usage_days').set({ usage_nano: 669_000, requests: 1 }).execute();
      await database.queries.updateTable('ledger_nodes').set({ batch: 1 }).execute();
    };
  }

  /** After the node reads its position the next time, the store is reset. */
  function forgetAfterLook(store: LedgerStore, forget: () => Promise<void>): void {
    const { position } = store;
    store.position = async (node) => {
      store.position = position;
      const known = await position(node);
      await forget();
      return known;
    };
  }

  /** The next registration is applied, and its answer is lost. */
  function loseRegistration(store: LedgerStore): void {
    const { register } = store;
    store.register = async (registration) => {
      const registered = await register(registration);
      if (registered === undefined) return undefined;
      store.register = register;
      throw new Error('the answer is lost');
    };
  }

  test('a store that lost acknowledged batches gets them again', async () => {
    const { database, data_dir, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await forget();
    await recorder.outcome(generation({ id: 'g4' }), noHold());
    await recorder.flush();
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual([...ids, 'g4']);
    await expect.poll(() => files(data_dir).filter((name) => name.startsWith('owed'))).toEqual([]);
  });

  test('lost batches are sent again also if the answer to the new registration is lost', async () => {
    const { database, store, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await forget();
    loseRegistration(store);
    await recorder.outcome(generation({ id: 'g4' }), noHold());
    await recorder.flush();
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual([...ids, 'g4']);
  });

  test('a store that is older after an outage gets its lost batches, also if a registration detects it first', async () => {
    const { database, store, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await forget();
    for (let failure = 0; failure < FLUSH_REFUSALS_MAX; failure++) store.answers.push(down);
    await recorder.outcome(generation({ id: 'g4' }), noHold());
    await recorder.flush();
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual([...ids, 'g4']);
  });

  test('the same holds if the answer to that registration is lost', async () => {
    const { database, store, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await forget();
    loseRegistration(store);
    for (let failure = 0; failure < FLUSH_REFUSALS_MAX; failure++) store.answers.push(down);
    await recorder.outcome(generation({ id: 'g4' }), noHold());
    await recorder.flush();
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual([...ids, 'g4']);
  });

  test('a store reset during a node’s start with a lost answer gets its lost batches at the next start', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await stop(recorder);
    forgetAfterLook(store, forget);
    loseRegistration(store);
    await expect(start(store, data_dir)).rejects.toThrow('the answer is lost');
    await start(store, data_dir);
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(ids);
  });

  test('a store that is reset while a node starts gets its lost batches', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await stop(recorder);
    forgetAfterLook(store, forget);
    await start(store, data_dir);
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(ids);
  });

  test('a store that is reset a second time, before it got its lost batches, gets all of them', async () => {
    const { database, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await forget();
    await recorder.outcome(generation({ id: 'g4' }), noHold());
    await recorder.flush();
    const all = async () => (await stored(database)).map(({ id }) => id);
    await expect.poll(all).toEqual([...ids, 'g4']);
    await forget();
    const { epoch } = recorder.state();
    await database.queries.updateTable('ledger_nodes').set({ epoch, batch: 0 }).execute();
    await recorder.outcome(generation({ id: 'g5' }), noHold());
    await recorder.flush();
    await expect.poll(all).toEqual([...ids, 'g4', 'g5']);
  });

  test('a resent batch is pending until it is acknowledged, and its windows are sent as new', async () => {
    const { database, store, recorder } = await setUp();
    const budget = await budgetOf(database, 1_000_000);
    const spend = async (id: string, costNano: number) => {
      const hold = await recorder.reserve({
        ...{ id, budgets: [budget], is_byok: false, full_nano: costNano, least_nano: costNano },
      });
      await recorder.attempt({ ...attempt(id), hold });
      await recorder.outcome(generation({ id, cost_nano: costNano }), hold);
      await recorder.flush();
    };
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    await recorder.flush();
    await spend('g2', 30_000);
    await database.queries.deleteFrom('ledger_generations').where('id', '=', 'g2').execute();
    for (const table of ['ledger_windows', 'ledger_leases'] as const)
      await database.queries.deleteFrom(table).execute();
    await database.queries.updateTable('usage_days').set({ usage_nano: 669_000, requests: 1 }).execute();
    await database.queries.updateTable('ledger_nodes').set({ batch: 1 }).execute();
    await spend('g3', 500);
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(['g1', 'g2', 'g3']);
    await stop(recorder);
    const windows = await database.queries.selectFrom('ledger_windows').select(['spent', 'leased']).execute();
    expect(windows).toEqual([{ spent: 30_500, leased: 0 }]);
    const returned = store.batches.flatMap(({ windows }) => windows);
    expect(returned.every(({ own, returned: idle }) => idle <= own)).toBe(true);
  });

  test('a store restored to an earlier batch of the same epoch while the gateway was down gets the later ones', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await stop(recorder);
    await forget();
    await start(store, data_dir);
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(ids);
  });

  test('a node that an operator released still sends the batches that its store lost', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const { epoch, node } = recorder.state();
    const forget = await forgetAllButFirst(database, recorder, ids);
    await stop(recorder);
    await forget();
    const { batch } = await store.position(node);
    // Silent for long, by whichever clock the store uses.
    await database.queries.updateTable('ledger_nodes').set({ seen_at: 0 }).execute();
    const { release } = ledgerOperations(database.queries, database.engine);
    await release(node, Date.now());
    // A released node is already fenced.
    await release(node, Date.now());
    expect(await store.position(node)).toEqual({ epoch, batch });
    const [row] = await database.queries.selectFrom('ledger_nodes').select('epoch').execute();
    expect(row).toEqual({ epoch: epoch + 1 });
    await start(store, data_dir);
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(ids);
  });

  test('a release by an operator is not taken for an epoch that the store lost', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    for (const id of ['g1', 'g2']) {
      await recorder.outcome(generation({ id }), noHold());
      await recorder.flush();
    }
    await stop(recorder);
    const before = await database.queries.selectFrom('ledger_nodes').selectAll().executeTakeFirstOrThrow();
    const running = await start(store, data_dir);
    await running.outcome(generation({ id: 'g3' }), noHold());
    await running.flush();
    await database.queries.deleteFrom('ledger_generations').where('id', '=', 'g3').execute();
    await database.queries.updateTable('usage_days').set({ usage_nano: 1_338_000, requests: 2 }).execute();
    await database.queries
      .updateTable('ledger_nodes')
      .set({ ...before, seen_at: 0 })
      .execute();
    await ledgerOperations(database.queries, database.engine).release(before.id, Date.now());
    for (const id of ['g4', 'g5']) {
      await running.outcome(generation({ id }), noHold());
      await running.flush();
    }
    const all = ['g1', 'g2', 'g3', 'g4', 'g5'];
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(all);
  });

  test('an epoch whose journal a power loss removed is not taken for one that the store lost', async () => {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    const dataDir = freshDir();
    const first = await start(store, dataDir, { journal_sync: 'os' });
    for (const id of ['g1', 'g2', 'g3']) {
      await first.outcome(generation({ id }), noHold());
      await first.flush();
    }
    await stop(first);
    const second = await start(store, dataDir, { journal_sync: 'os' });
    const { epoch } = second.state();
    await second.outcome(generation({ id: 'g4' }), noHold());
    await second.flush();
    const left = asKilled(dataDir);
    for (const name of files(left)) if (Number.parseInt(name, 10) === epoch) rmSync(join(left, 'slots', '0', name));
    const warnings: string[] = [];
    const log = { info() {}, warn: (_: object, message: string) => void warnings.push(message), error() {} };
    await start(store, left, { journal_sync: 'os', log });
    expect(warnings).toEqual([]);
    expect(await stored(database)).toHaveLength(4);
  });

  test('damage in a kept segment loses the damaged part, and neither the start nor the other batches', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await stop(recorder);
    await forget();
    const [kept = ''] = files(data_dir);
    expect(kept).toMatch(/\.settled$/);
    const file = join(data_dir, 'slots', '0', kept);
    const bytes = readFileSync(file);
    const damaged = bytes.indexOf('"t":"O","charges":[],"record":[["g2"');
    bytes[damaged + 30] = (bytes[damaged + 30] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    const error = vi.fn();
    await start(store, data_dir, { log: { info() {}, warn() {}, error } });
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(['g1', 'g3']);
    await expect.poll(() => files(data_dir).filter((name) => name.startsWith('owed'))).toEqual([]);
    const at = bytes.lastIndexOf(10, damaged) + 1;
    expect(error).toHaveBeenCalledWith({ file, at }, expect.stringContaining('damaged'));
  });

  test('a kill while a restored store receives its lost batches loses none of them', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await stop(recorder);
    await forget();
    const broken = faulty(ledgerStore(database.queries, database.engine));
    broken.settle = down;
    await start(broken, data_dir);
    const first = asKilled(data_dir);
    const second = asKilled(first);
    await start(broken, first);
    await start(store, second);
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(ids);
    await expect.poll(() => files(second).filter((name) => name.startsWith('owed'))).toEqual([]);
    broken.settle = store.settle;
  });

  test('a store restored from a backup while the gateway was down gets its lost batches', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    await stop(recorder);
    for (const table of ['ledger_generations', 'usage_days', 'ledger_nodes'] as const) {
      await database.queries.deleteFrom(table).execute();
    }
    await start(store, data_dir);
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(['g1']);
  });
});
