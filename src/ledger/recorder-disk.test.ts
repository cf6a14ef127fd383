import { dirname, join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { generation, noHold } from '../../test/generation-fixture.ts';
import { attempt, budgetOf, down, files, recorders, stored } from '../../test/ledger/recorder-fixture.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { limits } from '../limits.ts';
import { ledgerStore } from '../storage/ledger.ts';
import { type Disk, nodeDisk } from './journal/disk.ts';
import { realClock } from './ledger-clock.ts';

/** The disk of the machine, with parts that a test replaces by failing ones. */
function breakable(): Disk {
  return { ...nodeDisk };
}

const errorOf = (code: string) => Object.assign(new Error(code), { code });

/** A full disk: it takes the first bytes of a record and then fails. */
function full(disk: Disk): void {
  let taken = 0;
  disk.write = (file, bytes, from) => {
    if (taken > 0) throw errorOf('ENOSPC');
    taken = nodeDisk.write(file, bytes.subarray(0, from + 10), from);
    return taken;
  };
}

/** Writes nothing and reports no error. */
function silent(disk: Disk): void {
  disk.write = () => 0;
}

describeStores('the recorder with a failing disk', ({ open }) => {
  const { asKilled, freshDir, setUp, start } = recorders(open);
  afterEach(() => void vi.useRealTimers());

  async function onDisk(disk: Disk) {
    const { database, store, recorder: sound } = await setUp();
    const dataDir = freshDir();
    return { database, store, sound, data_dir: dataDir, recorder: await start(store, dataDir, { disk }) };
  }

  test('writes a record whole if each write takes only a few bytes', async () => {
    const disk = breakable();
    disk.write = (file, bytes, from) => nodeDisk.write(file, bytes.subarray(0, from + 7), from);
    const { database, store, data_dir, recorder } = await onDisk(disk);
    store.settle = down;
    await recorder.attempt(attempt('g1'));
    await recorder.attempt(attempt('g2'));
    await recorder.outcome(generation({ id: 'g1', cost_nano: 3 }), noHold());
    const next = await start(ledgerStore(database.queries, database.engine), asKilled(data_dir));
    await next.flush();
    expect(await stored(database)).toMatchObject([
      { id: 'g1', outcome: 'completed', cost: 3 },
      { id: 'g2', outcome: 'unknown' },
    ]);
  });

  test.each([
    ['full', full],
    ['that writes nothing and reports no error', silent],
  ])('on a disk %s refuses attempts, loses no outcome, damages no file, and recovers', async (_, spoil) => {
    const disk = breakable();
    const { database, store, data_dir, recorder } = await onDisk(disk);
    await recorder.attempt(attempt('g1'));
    spoil(disk);
    await expect(recorder.attempt(attempt('g2'))).rejects.toMatchObject({ status: 503 });
    expect(recorder.admits()).toBe(false);
    await recorder.outcome(generation({ id: 'g1', cost_nano: 3 }), noHold());
    await recorder.flush();
    disk.write = nodeDisk.write;
    await expect.poll(() => recorder.admits()).toBe(true);
    await recorder.attempt(attempt('g3'));
    await (await start(store, asKilled(data_dir))).flush();
    expect(await stored(database)).toMatchObject([
      { id: 'g1', cost: 3 },
      { id: 'g3', outcome: 'unknown' },
    ]);
  });

  test('after a failed sync attempts are refused, and outcomes reach the store', async () => {
    const disk = breakable();
    const { database, store, data_dir, recorder } = await onDisk(disk);
    await recorder.attempt(attempt('g1'));
    disk.sync = () => Promise.reject(errorOf('EIO'));
    await expect(recorder.attempt(attempt('g2'))).rejects.toMatchObject({ status: 503 });
    disk.sync = nodeDisk.sync;
    await expect(recorder.attempt(attempt('g3'))).rejects.toMatchObject({ status: 503 });
    expect(recorder.admits()).toBe(false);
    await recorder.outcome(generation({ id: 'g1', cost_nano: 3 }), noHold());
    await recorder.flush();
    await (await start(store, asKilled(data_dir))).flush();
    // The record of the second one is in the file, durable or not: it is refused, and counted with an unknown outcome.
    expect(await stored(database)).toMatchObject([
      { id: 'g1', cost: 3 },
      { id: 'g2', outcome: 'unknown' },
    ]);
  });

  test('an outcome that neither the disk nor the store took leaves its attempt to the next start', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] });
    const disk = breakable();
    const { database, store, data_dir, recorder } = await onDisk(disk);
    await recorder.attempt(attempt('lost'));
    for (let index = 0; files(data_dir).length < 2; index++) {
      await recorder.outcome(generation({ id: `g${index}`, cost_nano: 0, title: 'x'.repeat(100_000) }), noHold());
    }
    await recorder.flush();
    store.settle = down;
    full(disk);
    await recorder.outcome(generation({ id: 'lost', cost_nano: 5 }), noHold());
    await vi.advanceTimersByTimeAsync(limits.journal_sweep_ms);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const next = await start(ledgerStore(database.queries, database.engine), asKilled(data_dir));
    await next.flush();
    expect((await stored(database)).filter(({ id }) => id === 'lost')).toMatchObject([{ outcome: 'unknown' }]);
  });

  test('an outcome that a full disk did not take is written before any later record', async () => {
    const disk = breakable();
    const { database, store, data_dir, recorder } = await onDisk(disk);
    const budget = await budgetOf(database, 1_000);
    const request = (id: string, nano: number) => ({
      id,
      budgets: [budget],
      is_byok: false,
      full_nano: nano,
      least_nano: nano,
    });
    const hold = await recorder.reserve(request('g1', 900));
    await recorder.attempt({ ...attempt('g1'), hold });
    await recorder.flush();
    store.settle = down;
    full(disk);
    await recorder.outcome(generation({ id: 'g1', cost_nano: 100 }), hold);
    disk.write = nodeDisk.write;
    // The second call uses money that the first one's outcome freed. It is killed with its attempt written.
    const next = await recorder.reserve(request('g2', 800));
    await recorder.attempt({ ...attempt('g2'), hold: next });
    const restarted = await start(ledgerStore(database.queries, database.engine), asKilled(data_dir));
    await restarted.flush();
    expect(await stored(database)).toMatchObject([
      { id: 'g1', outcome: 'completed', cost: 100 },
      { id: 'g2', outcome: 'unknown', cost: 800 },
    ]);
    const [window] = await database.queries.selectFrom('ledger_windows').select('spent').execute();
    expect(window?.spent).toBe(900);
  });

  test('an outcome that disk and store refused for a while is written when the disk has room', async () => {
    const disk = breakable();
    const { database, store, data_dir, recorder } = await onDisk(disk);
    await recorder.attempt(attempt('g1'));
    store.settle = down;
    full(disk);
    await recorder.outcome(generation({ id: 'g1', cost_nano: 3 }), noHold());
    disk.write = nodeDisk.write;
    await expect.poll(() => recorder.admits()).toBe(true);
    await (await start(ledgerStore(database.queries, database.engine), asKilled(data_dir))).flush();
    expect(await stored(database)).toMatchObject([{ id: 'g1', outcome: 'completed', cost: 3 }]);
  });

  test('an outcome is written whatever its length', async () => {
    const { database, store, data_dir, recorder } = await onDisk(breakable());
    await recorder.attempt(attempt('g1'));
    store.settle = down;
    const title = 'x'.repeat(limits.journal_record_bytes_max);
    await recorder.outcome(generation({ id: 'g1', cost_nano: 3, title }), noHold());
    await (await start(ledgerStore(database.queries, database.engine), asKilled(data_dir))).flush();
    expect(await stored(database)).toMatchObject([{ id: 'g1', outcome: 'completed', cost: 3 }]);
  });

  test('an attempt that was refused after a failed sync keeps its hold, since the next start may count it', async () => {
    const disk = breakable();
    const { database, store, data_dir, recorder } = await onDisk(disk);
    const budget = await budgetOf(database, 1_000);
    const hold = await recorder.reserve({
      id: 'g1',
      budgets: [budget],
      is_byok: false,
      full_nano: 900,
      least_nano: 900,
    });
    disk.sync = () => Promise.reject(errorOf('EIO'));
    await expect(recorder.attempt({ ...attempt('g1'), hold })).rejects.toMatchObject({ status: 503 });
    expect(recorder.state().held_nano).toBe(900);
    // A later attempt is not in the file.
    const later = await recorder.reserve({
      id: 'g2',
      budgets: [budget],
      is_byok: false,
      full_nano: 50,
      least_nano: 50,
    });
    await expect(recorder.attempt({ ...attempt('g2'), hold: later })).rejects.toMatchObject({ status: 503 });
    expect(recorder.state().held_nano).toBe(900);
    disk.sync = nodeDisk.sync;
    await (await start(store, asKilled(data_dir))).flush();
    expect(await stored(database)).toMatchObject([{ id: 'g1', outcome: 'unknown', cost: 900 }]);
  });

  test('a larger hold that cannot be written is not granted', async () => {
    const disk = breakable();
    const { database, recorder } = await onDisk(disk);
    const budget = await budgetOf(database, 1_000_000);
    const ask = { id: 'g', budgets: [budget], is_byok: false, full_nano: 1_000, least_nano: 1_000 };
    const hold = await recorder.reserve(ask);
    const record = generation({ id: 'g', outcome: 'unknown', attempts: [], cost_nano: 0 });
    await recorder.attempt({ id: 'g', attempt: 1, endpoint: 'e', record, hold });
    await recorder.flush();
    full(disk);
    const extend = (to: number) => expect.poll(() => recorder.extend(hold, to), { interval: 20 });
    // The store answers first; then the disk fails.
    await expect.poll(() => recorder.admits(), { interval: 20 }).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await recorder.extend(hold, 1_500)).toBe(false);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await recorder.extend(hold, 1_500)).toBe(false);
    expect(hold.granted_nano).toBe(1_000);
    expect(await recorder.extend(hold, 1_200)).toBe(false);
    disk.write = nodeDisk.write;
    await extend(1_500).toBe(true);
    await recorder.outcome(generation({ id: 'g', cost_nano: 1_400 }), hold);
    await recorder.flush();
    expect(recorder.state().held_nano).toBe(0);
  });

  test('the folders of a new slot are synced, up to the existing one', async () => {
    const { store } = await setUp();
    const home = freshDir();
    const synced = vi.spyOn(nodeDisk, 'syncNames');
    await start(store, join(home, 'data'), { clock: realClock(Date.now) });
    const slot = join(home, 'data', 'slots', '0');
    const parents = [dirname(slot), dirname(dirname(slot)), home];
    expect(synced.mock.calls.map(([dir]) => dir)).toEqual(expect.arrayContaining(parents));
    synced.mockRestore();
  });
});
