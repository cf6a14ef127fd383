import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { generation, noHold } from '../../test/generation-fixture.ts';
import { attempt, budgetOf, down, faulty, files, recorders, stored } from '../../test/ledger/recorder-fixture.ts';
import { registerNode } from '../../test/ledger/registered-node.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { limits } from '../limits.ts';
import type { Database } from '../storage/database.ts';
import { generationStore } from '../storage/generations.ts';
import { ledgerStore } from '../storage/ledger.ts';
import { realClock } from './ledger-clock.ts';
import type { Recorder } from './recorder.ts';
import { SLOTS_LOOK_MS } from './start-recorder.ts';

const { organization_id } = generation({ id: '' });

describeStores('the recorder', ({ open }) => {
  const { freshDir, asKilled, start, stop, setUp } = recorders(open);

  test('an outcome is visible immediately, and in the store after a flush', async () => {
    const { database, recorder } = await setUp();
    const record = generation({ id: 'g1' });
    await recorder.attempt(attempt('g1'));
    await recorder.outcome(record, noHold());
    expect(recorder.find('g1')).toEqual(record);
    await recorder.flush();
    expect(recorder.find('g1')).toBeUndefined();
    expect(await generationStore(database.queries).findById({ organization_id, id: 'g1' })).toEqual(record);
    expect(recorder.state()).toMatchObject({ unflushed: 0, oldest_unflushed_ms: 0, admitting: true });
  });

  test('the first outcome of a call counts, and a second one is not sent to the store', async () => {
    const { database, store, recorder } = await setUp();
    await recorder.outcome(generation({ id: 'g1', cost_nano: 7 }), noHold());
    await recorder.outcome(generation({ id: 'g1', cost_nano: 8 }), noHold());
    expect(recorder.find('g1')?.cost_nano).toBe(7);
    await recorder.flush();
    expect(store.batches.flatMap(({ settles }) => settles)).toHaveLength(1);
    expect(await stored(database)).toEqual([{ id: 'g1', outcome: 'completed', cost: 7 }]);
  });

  test('an outcome reaches the store without an explicit flush', async () => {
    const { database, recorder } = await setUp();
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    await expect.poll(() => stored(database)).toHaveLength(1);
  });

  test('after a kill every outcome is stored once, and an attempt without one is unknown', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    store.answers = Array.from({ length: 50 }, () => down);
    await recorder.attempt(attempt('stored'));
    await recorder.outcome(generation({ id: 'stored', cost_nano: 7 }), noHold());
    await recorder.attempt(attempt('metered'));
    recorder.progress('metered', { in_uncached: 5, out_text: 2 }, 0);
    await recorder.attempt(attempt('silent'));
    const copy = asKilled(data_dir);

    store.answers = [];
    const next = await start(store, copy);
    await next.flush();
    expect(await stored(database)).toEqual([
      { id: 'metered', outcome: 'unknown', cost: 0 },
      { id: 'silent', outcome: 'unknown', cost: 0 },
      { id: 'stored', outcome: 'completed', cost: 7 },
    ]);
    const metered = await generationStore(database.queries).findById({ organization_id, id: 'metered' });
    expect(metered?.usage).toEqual({ in_uncached: 5, out_text: 2, estimated: true });
  });

  test('an attempt without a hold costs its declared minimum, or the metered usage if that is more', async () => {
    const { database, data_dir, store, recorder } = await setUp();
    const prompt = { usage: { in_uncached: 5 }, cost_nano: 50 };
    await recorder.attempt({ ...attempt('silent'), least: prompt });
    await recorder.attempt({ ...attempt('metered'), least: prompt });
    recorder.progress('metered', { in_uncached: 5, out_text: 2 }, 70);
    await recorder.attempt({ ...attempt('second'), least: prompt });
    recorder.progress('second', { in_uncached: 5, out_text: 9 }, 900);
    await recorder.attempt({ ...attempt('second'), attempt: 2, least: { usage: { in_uncached: 6 }, cost_nano: 60 } });
    const own = { ...attempt('own'), least: prompt };
    await recorder.attempt({ ...own, record: { ...own.record, is_byok: true } });
    await (await start(store, asKilled(data_dir))).flush();
    expect(await stored(database)).toEqual([
      { id: 'metered', outcome: 'unknown', cost: 70 },
      { id: 'own', outcome: 'unknown', cost: 0 },
      { id: 'second', outcome: 'unknown', cost: 60 },
      { id: 'silent', outcome: 'unknown', cost: 50 },
    ]);
    const find = (id: string) => generationStore(database.queries).findById({ organization_id, id });
    expect((await find('silent'))?.usage).toEqual({ in_uncached: 5, estimated: true });
    expect((await find('second'))?.usage).toEqual({ in_uncached: 6, estimated: true });
    expect(await find('own')).toMatchObject({ cost_nano: 0, byok_cost_nano: 50 });
  });

  test('an unknown outcome with a hold costs the hold', async () => {
    const database = await open();
    const budget = await budgetOf(database, 10_000_000);
    const store = ledgerStore(database.queries, database.engine);
    const dataDir = freshDir();
    const recorder = await start(store, dataDir);
    const ask = { id: 'g1', budgets: [budget], is_byok: false, full_nano: 1_000, least_nano: 1_000 };
    const hold = await recorder.reserve(ask);
    await recorder.attempt({ ...attempt('g1'), hold });
    await (await start(store, asKilled(dataDir))).flush();
    expect(await stored(database)).toEqual([{ id: 'g1', outcome: 'unknown', cost: 1_000 }]);
  });

  test('a call that is lost by an internal error costs its declared minimum, as after a kill', async () => {
    const { database, recorder } = await setUp();
    const lost = { ...attempt('g1'), least: { usage: { in_uncached: 5 }, cost_nano: 50 } };
    await recorder.attempt(lost);
    await recorder.lose(lost.hold);
    await recorder.flush();
    expect(await stored(database)).toEqual([{ id: 'g1', outcome: 'unknown', cost: 50 }]);
  });

  test('a kill between the commit and its note in the journal charges nothing twice', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const before = asKilled(data_dir);
    await recorder.outcome(generation({ id: 'g1', cost_nano: 7 }), noHold());
    const copy = asKilled(data_dir);
    await stop(recorder);
    expect(files(before)).toHaveLength(1);
    await (await start(store, copy)).flush();
    expect(await stored(database)).toEqual([{ id: 'g1', outcome: 'completed', cost: 7 }]);
  });

  test('a replay that is killed is replayed again', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    await recorder.attempt(attempt('g1'));
    store.answers = Array.from({ length: 50 }, () => down);
    await recorder.outcome(generation({ id: 'g2' }), noHold());
    const first = asKilled(data_dir);
    await start(store, first);
    const second = asKilled(first);
    store.answers = [];
    await (await start(store, second)).flush();
    expect((await stored(database)).map(({ id }) => id)).toEqual(['g1', 'g2']);
  });

  test('a batch whose answer is lost is sent again, and counts once', async () => {
    const { database, store, recorder } = await setUp();
    const real = ledgerStore(database.queries, database.engine);
    store.answers = [
      async (batch) => {
        await real.settle(batch);
        return down();
      },
      down,
    ];
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    const flushed = recorder.flush();
    await recorder.outcome(generation({ id: 'g2' }), noHold());
    await flushed;
    await recorder.flush();
    expect(store.batches.map(({ number, settles }) => [number, settles.map(({ id }) => id)])).toEqual([
      [1, ['g1']],
      [1, ['g1']],
      [1, ['g1']],
      [2, ['g2']],
    ]);
    expect(await stored(database)).toHaveLength(2);
  });

  test('batches are first in, first out, and bounded', async () => {
    const { store, recorder } = await setUp();
    const ids = Array.from({ length: 1_200 }, (_, index) => `g${String(index).padStart(4, '0')}`);
    await Promise.all(ids.map((id) => recorder.outcome(generation({ id }), noHold())));
    await recorder.flush();
    expect(store.batches.flatMap(({ settles }) => settles.map(({ id }) => id))).toEqual(ids);
    for (const { settles } of store.batches) expect(settles.length).toBeLessThanOrEqual(limits.flush_batch_records_max);
  });

  test('a fenced node registers again and loses nothing', async () => {
    const { database, store, recorder } = await setUp();
    const { node, epoch } = recorder.state();
    await registerNode(store, node, { epoch_seen: epoch + 5 });
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    await recorder.flush();
    expect(recorder.state().epoch).toBe(epoch + 7);
    expect(await stored(database)).toHaveLength(1);
  });

  /** A node that fills files and advances the clock until open calls in them are written again. */
  async function carriedOn(record: (recorder: Recorder, fillFile: () => Promise<void>) => Promise<void>) {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    const dataDir = freshDir();
    let passedMs = 0;
    vi.useFakeTimers({ toFake: ['setInterval'] });
    try {
      const clock = { ...realClock(() => Date.now() + passedMs), monotonic: () => performance.now() + passedMs };
      const recorder = await start(store, dataDir, { clock });
      const fillFile = async () => {
        const before = files(dataDir).length;
        for (let index = 0; files(dataDir).length === before; index++) {
          await recorder.outcome(generation({ id: `g${before}-${index}`, title: 'x'.repeat(100_000) }), noHold());
        }
      };
      await record(recorder, fillFile);
      await recorder.flush();
      passedMs = limits.journal_carry_ms + 60_000;
      vi.advanceTimersByTime(limits.journal_sweep_ms);
      await expect.poll(() => files(dataDir).map((name) => name.split('.')[1])).toEqual(['journal']);
    } finally {
      vi.useRealTimers();
    }
    await (await start(store, asKilled(dataDir))).flush();
    return database;
  }

  test('an unfinished call is carried forward, so that its file is released, and is unknown after a kill', async () => {
    const database = await carriedOn(async (recorder, fillFile) => {
      await recorder.attempt(attempt('endless'));
      recorder.progress('endless', { out_text: 7 }, 0);
      await fillFile();
    });
    const stored = await generationStore(database.queries).findById({ organization_id, id: 'endless' });
    expect(stored).toMatchObject({ outcome: 'unknown', usage: { out_text: 7, estimated: true } });
  });

  test('the newest attempt of a call is carried forward: no older attempt is written after a newer one', async () => {
    const first = { ...generation({ id: '' }).attempts[0]!, cost_nano: 40 };
    const again = (id: string) => {
      const { record, ...rest } = attempt(id);
      return { ...rest, attempt: 2, record: { ...record, attempts: [first] } };
    };
    const database = await carriedOn(async (recorder, fillFile) => {
      for (const id of ['both in the old file', 'one in each']) await recorder.attempt(attempt(id));
      await recorder.attempt(again('both in the old file'));
      await fillFile();
      await recorder.attempt(again('one in each'));
    });
    const unknown = (await stored(database)).filter(({ outcome }) => outcome === 'unknown');
    expect(unknown.map(({ id, cost }) => [id, cost])).toEqual([
      ['both in the old file', 40],
      ['one in each', 40],
    ]);
  });

  test('a call is carried forward with its metered progress, and without that of an earlier attempt', async () => {
    const database = await carriedOn(async (recorder, fillFile) => {
      const [extended, ...ids] = ['1 extended', '2 metered later', '3 tried again'];
      const hold = await recorder.reserve({ id: extended, budgets: [], is_byok: false, full_nano: 5, least_nano: 5 });
      await recorder.attempt({ ...attempt(extended), hold });
      for (const id of ids) await recorder.attempt(attempt(id));
      for (const id of ['1 extended', '3 tried again']) recorder.progress(id, { out_text: 7 }, 7);
      await recorder.attempt({ ...attempt('3 tried again'), attempt: 2 });
      await fillFile();
      recorder.progress('2 metered later', { out_text: 8 }, 8);
      expect(await recorder.extend(hold, 6)).toBe(true);
    });
    const unknown = (await stored(database)).filter(({ outcome }) => outcome === 'unknown');
    expect(unknown.map(({ id, cost }) => [id, cost])).toEqual([
      ['1 extended', 7],
      ['2 metered later', 8],
      ['3 tried again', 0],
    ]);
  });

  test('the cost of earlier attempts of a call is charged, also if its outcome is unknown', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const again = attempt('g1');
    const [earlier] = generation({ id: 'g1' }).attempts;
    await recorder.attempt({ ...again, attempt: 2, record: { ...again.record, attempts: earlier ? [earlier] : [] } });
    await (await start(store, asKilled(data_dir))).flush();
    expect(await stored(database)).toEqual([{ id: 'g1', outcome: 'unknown', cost: 669_000 }]);
  });

  test('a clean stop leaves nothing to replay', async () => {
    const { store, data_dir, recorder } = await setUp();
    await recorder.attempt(attempt('g1'));
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    await stop(recorder);
    expect(files(data_dir)).toEqual([expect.stringMatching(/\.settled$/)]);
    const sent = store.batches.length;
    await stop(await start(store, data_dir));
    expect(store.batches).toHaveLength(sent);
  });

  test('recorders in one directory use different slots, and the slot of a stopped process is replayed', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    store.settle = down;
    const second = await start(store, data_dir);
    expect(second.state().node).not.toBe(recorder.state().node);
    await second.outcome(generation({ id: 'left behind' }), noHold());
    const copy = asKilled(data_dir);
    const whole = faulty(ledgerStore(database.queries, database.engine));
    await start(whole, copy);
    await expect.poll(() => stored(database)).toHaveLength(1);
    await expect.poll(() => files(copy, 1).every((name) => name.endsWith('.settled'))).toBe(true);
    store.settle = whole.settle;
  });

  describe('a gateway killed in a slot that no later process uses', () => {
    async function leased({ queries }: Database): Promise<number> {
      const rows = await queries.selectFrom('ledger_windows').select(['leased', 'spent']).execute();
      return rows.reduce((sum, row) => sum + row.leased, 0);
    }

    test.each(['while another runs', 'when the other stops'])('leaves no money reserved: %s', async (when) => {
      vi.useFakeTimers({ toFake: ['setInterval'] });
      try {
        const database = await open();
        const budget = await budgetOf(database, 10_000_000);
        const store = faulty(ledgerStore(database.queries, database.engine));
        const firstDir = freshDir();
        await start(store, firstDir);
        const second = await start(store, firstDir);
        const ask = { id: 'g1', budgets: [budget], is_byok: false, full_nano: 1_000, least_nano: 1_000 };
        const hold = await second.reserve(ask);
        await second.attempt({ ...attempt('g1'), hold });
        const killed = join(asKilled(firstDir), 'slots', '1');

        const dataDir = freshDir();
        const living = await start(ledgerStore(database.queries, database.engine), dataDir);
        cpSync(killed, join(dataDir, 'slots', '7'), { recursive: true });
        store.settle = down;
        expect(await leased(database)).toBeGreaterThan(0);
        if (when === 'when the other stops') await stop(living);
        else vi.advanceTimersByTime(SLOTS_LOOK_MS);
        await expect.poll(() => leased(database)).toBe(0);
        expect(await stored(database)).toMatchObject([{ id: 'g1', outcome: 'unknown', cost: 1_000 }]);
        store.settle = ledgerStore(database.queries, database.engine).settle;
      } finally {
        vi.useRealTimers();
      }
    });
  });

  test('an amount that is not an integer is not stored', async () => {
    const { database, recorder } = await setUp();
    await recorder.outcome(generation({ id: 'g1', cost_nano: 0.5 }), noHold());
    await recorder.outcome(generation({ id: 'g2', cost_nano: 1 }), noHold());
    await recorder.flush();
    expect(await stored(database)).toEqual([{ id: 'g2', outcome: 'completed', cost: 1 }]);
  });
});
