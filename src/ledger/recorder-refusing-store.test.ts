import { expect, test, vi } from 'vitest';
import { generation, noHold } from '../../test/generation-fixture.ts';
import { attempt, down, faulty, recorders, stored } from '../../test/ledger/recorder-fixture.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { limits } from '../limits.ts';
import { ledgerStore } from '../storage/ledger.ts';
import type { SettleBatch } from './settle.ts';

describeStores('a store that refuses', ({ open }) => {
  const { freshDir, asKilled, start, stop, setUp } = recorders(open);

  test('an outcome that the store refuses is set aside: the others are stored, and it stays in the journal', {
    timeout: 180_000,
  }, async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const real = ledgerStore(database.queries, database.engine);
    const refuses = (batch: SettleBatch) => (batch.settles.some(({ id }) => id === 'g5') ? down() : real.settle(batch));
    store.settle = refuses;
    const ids = Array.from({ length: 12 }, (_, index) => `g${index}`);
    await Promise.all(ids.map((id) => recorder.outcome(generation({ id }), noHold())));
    await recorder.flush();
    const others = ids.filter((id) => id !== 'g5').sort();
    expect((await stored(database)).map(({ id }) => id)).toEqual(others);
    expect(recorder.state()).toMatchObject({ unflushed: 1, refused: 1, admitting: true });
    expect(recorder.find('g5')).toBeDefined();
    await recorder.outcome(generation({ id: 'later' }), noHold());
    await recorder.flush();
    expect(await stored(database)).toHaveLength(12);
    const copy = asKilled(data_dir);
    await stop(recorder);
    store.settle = real.settle;
    await (await start(store, copy)).flush();
    expect((await stored(database)).map(({ id }) => id)).toContain('g5');
  });

  test('outcomes with values that no column accepts are stored without them, at full cost, and delay no others', async () => {
    const { database, store, recorder } = await setUp();
    const odd = [{ finish_reason: Object }, { finish_reason: {} }, { model: 'a\u0000b' }, { latency: Number.NaN }];
    const records = odd.map((fields, index) => generation({ id: `odd${index}`, cost_nano: 7, ...(fields as object) }));
    const usual = Array.from({ length: 20 }, (_, index) => generation({ id: `usual${index}`, cost_nano: 7 }));
    await Promise.all([...records, ...usual].map((record) => recorder.outcome(record, noHold())));
    await recorder.flush();
    const rows = await stored(database);
    expect(rows.map(({ id }) => id)).toEqual([...records, ...usual].map(({ id }) => id).sort());
    expect(rows.every(({ cost }) => cost === 7)).toBe(true);
    expect(recorder.state()).toMatchObject({ unflushed: 0, refused: 0 });
    expect(recorder.state().reduced).toBeGreaterThan(0);
    // The refused batch and the batch in its place.
    expect(store.batches.length).toBeLessThanOrEqual(4);
  });

  test('a refused outcome is tried again automatically', { timeout: 180_000 }, async () => {
    const database = await open();
    const store = faulty(ledgerStore(database.queries, database.engine));
    const real = store.settle;
    vi.useFakeTimers({ toFake: ['setInterval'] });
    try {
      const recorder = await start(store, freshDir());
      store.settle = down;
      await recorder.outcome(generation({ id: 'g1' }), noHold());
      await recorder.flush();
      expect(recorder.state()).toMatchObject({ refused: 1 });
      store.settle = real;
      vi.advanceTimersByTime(limits.journal_sweep_ms);
      await recorder.flush();
      expect(await stored(database)).toHaveLength(1);
      expect(recorder.state()).toMatchObject({ refused: 0, unflushed: 0 });
    } finally {
      vi.useRealTimers();
    }
  });

  test('while the store refuses everything, no outcome is set aside', { timeout: 180_000 }, async () => {
    const { store, recorder } = await setUp();
    store.settle = down;
    store.register = down;
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(recorder.state()).toMatchObject({ refused: 0, unflushed: 1, store_failing: true });
    store.settle = async () => ({ is: 'applied', windows: [], now: 0 });
  });

  test('while the store is down outcomes wait, and at the bound first attempts are refused and fallbacks are not', async () => {
    const { store, recorder } = await setUp();
    store.settle = down;
    const outcomes: Promise<void>[] = [];
    for (let index = 0; index < limits.journal_unflushed_records_max; index++) {
      outcomes.push(recorder.outcome(generation({ id: `g${index}`, attempts: [] }), noHold()));
    }
    await Promise.all(outcomes);
    expect(recorder.state()).toMatchObject({ admitting: false, unflushed: limits.journal_unflushed_records_max });
    await expect(recorder.attempt(attempt('more'))).rejects.toMatchObject({ status: 503 });
    await recorder.attempt({ ...attempt('more'), attempt: 2 });
    store.settle = async () => ({ is: 'applied', windows: [], now: 0 });
    await recorder.flush();
    expect(recorder.state()).toMatchObject({ admitting: true, unflushed: 0 });
  });
});
