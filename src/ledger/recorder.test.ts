import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { generation, noHold } from '../../test/generation-fixture.ts';
import { describeStores } from '../../test/store-variants.ts';
import { limits } from '../limits.ts';
import type { Database } from '../storage/database.ts';
import { generationStore } from '../storage/generations.ts';
import { ledgerStore } from '../storage/ledger.ts';
import { LineBuffer } from './journal-format.ts';
import { realClock } from './ledger-clock.ts';
import { type Recorder, startRecorder } from './recorder.ts';
import type { LedgerStore, SettleAnswer, SettleBatch } from './settle.ts';

const log = { info() {}, warn() {}, error() {} };
const { organization_id } = generation({ id: '' });

let dirs: string[];
let running: Recorder[];

beforeEach(() => {
  dirs = [];
  running = [];
});

function freshDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'gateway-recorder-'));
  dirs.push(dir);
  return dir;
}

/** The data directory as a process that is killed now would leave it. */
function asKilled(data_dir: string): string {
  const copy = freshDir();
  cpSync(data_dir, copy, { recursive: true });
  return copy;
}

async function start(store: LedgerStore, data_dir: string, now = Date.now): Promise<Recorder> {
  const recorder = await startRecorder({
    data_dir,
    store,
    journal_sync: 'group',
    unknown_outcome: 'hold',
    clock: realClock(now),
    log,
  });
  running.push(recorder);
  return recorder;
}

async function stop(recorder: Recorder): Promise<void> {
  running = running.filter((other) => other !== recorder);
  await recorder.stop();
}

function attempt(id: string) {
  const record = generation({ id, outcome: 'unknown', usage: null, attempts: [], cost_nano: 5 });
  return { id, attempt: 1, endpoint: 'acme|acme/fast-1', record, hold: noHold(id) };
}

/** A store whose answers a test may lose or change; everything else is the real one. */
function faulty(store: LedgerStore): LedgerStore & {
  batches: SettleBatch[];
  settle: LedgerStore['settle'];
  answers: ((batch: SettleBatch) => Promise<SettleAnswer>)[];
} {
  const made = {
    ...store,
    batches: [] as SettleBatch[],
    answers: [] as ((batch: SettleBatch) => Promise<SettleAnswer>)[],
    settle: (batch: SettleBatch) => {
      made.batches.push(batch);
      return (made.answers.shift() ?? store.settle)(batch);
    },
  };
  return made;
}

const down = () => Promise.reject(new Error('the store is down'));

async function stored({ queries }: Database) {
  const rows = await queries.selectFrom('ledger_generations').select(['id', 'outcome', 'cost']).orderBy('id').execute();
  const days = await queries.selectFrom('usage_days').select(['usage_nano', 'requests']).execute();
  const sum = days.reduce((all, { usage_nano }) => all + usage_nano, 0);
  const requests = days.reduce((all, day) => all + day.requests, 0);
  expect(sum).toBe(rows.reduce((all, { cost }) => all + cost, 0));
  expect(requests).toBe(rows.length);
  return rows;
}

const files = (data_dir: string, slot = 0) =>
  readdirSync(join(data_dir, 'slots', String(slot))).filter((name) => !name.startsWith('lock'));

describeStores('the recorder', ({ open }) => {
  // In here, so that it runs before the store is closed.
  afterEach(async () => {
    for (const recorder of running) await recorder.stop();
    for (const dir of dirs) rmSync(dir, { recursive: true });
  });

  async function setUp() {
    const database = await open();
    const store = faulty(ledgerStore(database.queries, database.engine));
    const data_dir = freshDir();
    return { database, store, data_dir, recorder: await start(store, data_dir) };
  }

  test('an outcome is found at once, and in the store after a flush', async () => {
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

  test('the first outcome of a call counts, a second one is not told on', async () => {
    const { database, store, recorder } = await setUp();
    await recorder.outcome(generation({ id: 'g1', cost_nano: 7 }), noHold());
    await recorder.outcome(generation({ id: 'g1', cost_nano: 8 }), noHold());
    expect(recorder.find('g1')?.cost_nano).toBe(7);
    await recorder.flush();
    expect(store.batches.flatMap(({ settles }) => settles)).toHaveLength(1);
    expect(await stored(database)).toEqual([{ id: 'g1', outcome: 'completed', cost: 7 }]);
  });

  test('an outcome reaches the store by itself, without a flush', async () => {
    const { database, recorder } = await setUp();
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    await expect.poll(() => stored(database)).toHaveLength(1);
  });

  test('after a kill every outcome is there once, and an attempt without one is unknown and free', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    store.answers = Array.from({ length: 50 }, () => down);
    await recorder.attempt(attempt('told'));
    await recorder.outcome(generation({ id: 'told', cost_nano: 7 }), noHold());
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
      { id: 'told', outcome: 'completed', cost: 7 },
    ]);
    const metered = await generationStore(database.queries).findById({ organization_id, id: 'metered' });
    expect(metered?.usage).toEqual({ in_uncached: 5, out_text: 2, estimated: true });
  });

  test('a kill between the commit and the note of it charges nothing twice', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const before = asKilled(data_dir);
    await recorder.outcome(generation({ id: 'g1', cost_nano: 7 }), noHold());
    const copy = asKilled(data_dir);
    await stop(recorder);
    expect(files(before)).toHaveLength(1);
    await (await start(store, copy)).flush();
    expect(await stored(database)).toEqual([{ id: 'g1', outcome: 'completed', cost: 7 }]);
  });

  test('a replay that is killed itself is replayed again', async () => {
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

  test('a lost answer sends the same batch again, also when it had been applied', async () => {
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
    const ids = Array.from({ length: 450 }, (_, index) => `g${String(index).padStart(3, '0')}`);
    await Promise.all(ids.map((id) => recorder.outcome(generation({ id }), noHold())));
    await recorder.flush();
    expect(store.batches.flatMap(({ settles }) => settles.map(({ id }) => id))).toEqual(ids);
    for (const { settles } of store.batches) expect(settles.length).toBeLessThanOrEqual(limits.flush_batch_records_max);
  });

  test('a fenced node registers again and loses nothing', async () => {
    const { database, store, recorder } = await setUp();
    const { node, epoch } = recorder.state();
    await store.register({ node, instance: 'somebody', epoch_seen: epoch + 5, at: 1 });
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    await recorder.flush();
    expect(recorder.state().epoch).toBe(epoch + 7);
    expect(await stored(database)).toHaveLength(1);
  });

  /** Records calls one batch each, and takes the store back to what it was after the first. */
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

  test('a store that forgot acknowledged batches gets them again', async () => {
    const { database, data_dir, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await forget();
    await recorder.outcome(generation({ id: 'g4' }), noHold());
    await recorder.flush();
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual([...ids, 'g4']);
    await expect.poll(() => files(data_dir).filter((name) => name.startsWith('owed'))).toEqual([]);
  });

  test('a store restored to an earlier batch of the same epoch, while the gateway was down, gets what it misses', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await stop(recorder);
    await forget();
    await start(store, data_dir);
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(ids);
  });

  test('damage in a kept segment costs what is damaged, not the start and not the rest of what a store forgot', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const ids = ['g1', 'g2', 'g3'];
    const forget = await forgetAllButFirst(database, recorder, ids);
    await stop(recorder);
    await forget();
    const [kept = ''] = files(data_dir);
    expect(kept).toMatch(/\.settled$/);
    const file = join(data_dir, 'slots', '0', kept);
    const bytes = readFileSync(file);
    const damaged = bytes.indexOf('"t":"O","id":"g2"');
    bytes[damaged + 30] = (bytes[damaged + 30] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    const error = vi.spyOn(log, 'error');
    await start(store, data_dir);
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(['g1', 'g3']);
    await expect.poll(() => files(data_dir).filter((name) => name.startsWith('owed'))).toEqual([]);
    const at = bytes.lastIndexOf(10, damaged) + 1;
    expect(error).toHaveBeenCalledWith({ file, at }, expect.stringContaining('damaged'));
    error.mockRestore();
  });

  test('a kill while a restored store is being sent what it misses loses nothing of it', async () => {
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

  test('an outcome that the store refuses is put aside: the others arrive, and it stays in the journal', {
    timeout: 60_000,
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

  test('a refused outcome is tried again by itself', { timeout: 60_000 }, async () => {
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

  test('while the store takes nothing at all, nothing is put aside', { timeout: 60_000 }, async () => {
    const { store, recorder } = await setUp();
    store.settle = down;
    store.register = down;
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(recorder.state()).toMatchObject({ refused: 0, unflushed: 1, store_failing: true });
    store.settle = async () => ({ is: 'applied', windows: [], now: 0 });
  });

  test('a call without an end is carried on, so that it keeps no file, and is still unknown after a kill', async () => {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    const data_dir = freshDir();
    let skew_ms = 0;
    vi.useFakeTimers({ toFake: ['setInterval'] });
    try {
      const recorder = await start(store, data_dir, () => Date.now() + skew_ms);
      await recorder.attempt(attempt('endless'));
      recorder.progress('endless', { out_text: 7 }, 0);
      for (let index = 0; files(data_dir).length < 2; index++) {
        await recorder.outcome(generation({ id: `g${index}`, title: 'x'.repeat(100_000) }), noHold());
      }
      await recorder.flush();
      skew_ms = limits.journal_carry_ms + 60_000;
      vi.advanceTimersByTime(limits.journal_sweep_ms);
      await expect.poll(() => files(data_dir).map((name) => name.split('.')[1])).toEqual(['journal']);
    } finally {
      vi.useRealTimers();
    }
    await start(store, asKilled(data_dir));
    const found = () => generationStore(database.queries).findById({ organization_id, id: 'endless' });
    await expect.poll(found).toMatchObject({ outcome: 'unknown', usage: { out_text: 7, estimated: true } });
  });

  test('what earlier attempts of a call cost is charged, also when its end is unknown', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const again = attempt('g1');
    const [earlier] = generation({ id: 'g1' }).attempts;
    await recorder.attempt({ ...again, attempt: 2, record: { ...again.record, attempts: earlier ? [earlier] : [] } });
    await (await start(store, asKilled(data_dir))).flush();
    expect(await stored(database)).toEqual([{ id: 'g1', outcome: 'unknown', cost: 669_000 }]);
  });

  test('a journal that was deleted under the running gateway is gone on with in a new file', async () => {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    const data_dir = freshDir();
    vi.useFakeTimers({ toFake: ['setInterval'] });
    try {
      const recorder = await start(store, data_dir);
      for (const name of files(data_dir)) rmSync(join(data_dir, 'slots', '0', name));
      vi.advanceTimersByTime(limits.journal_sweep_ms);
      await expect.poll(() => files(data_dir)).toHaveLength(1);
      await recorder.attempt(attempt('g1'));
      await (await start(store, asKilled(data_dir))).flush();
      expect(await stored(database)).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test('a journal of a newer version stops the start', async () => {
    const { store, data_dir, recorder } = await setUp();
    await recorder.attempt(attempt('g1'));
    const copy = asKilled(data_dir);
    const lines = new LineBuffer();
    lines.add(JSON.stringify({ t: 'S', node: 'n', epoch: 1, boot: '', format: 2 }));
    writeFileSync(join(copy, 'slots', '0', files(copy)[0] ?? ''), lines.take());
    await expect(start(store, copy)).rejects.toThrow(/newer version/);
  });

  test('a store restored from a backup while the gateway was down gets what it misses', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    await recorder.outcome(generation({ id: 'g1' }), noHold());
    await stop(recorder);
    for (const table of ['ledger_generations', 'usage_days', 'ledger_nodes'] as const) {
      await database.queries.deleteFrom(table).execute();
    }
    await start(store, data_dir);
    await expect.poll(async () => (await stored(database)).map(({ id }) => id)).toEqual(['g1']);
  });

  test('while the store is down outcomes wait; at the bound first attempts are refused, fallbacks are not', async () => {
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

  test('full segments are settled in order, and deleted when they were kept long enough', async () => {
    const database = await open();
    let skew_ms = 0;
    const data_dir = freshDir();
    const recorder = await start(ledgerStore(database.queries, database.engine), data_dir, () => Date.now() + skew_ms);
    const segments = async (count: number) => {
      const long = 'x'.repeat(100_000);
      for (let index = 0; files(data_dir).length < count; index++) {
        await recorder.outcome(generation({ id: `g${count}-${index}`, title: long }), noHold());
      }
      await recorder.flush();
    };
    await recorder.attempt(attempt('open'));
    await segments(2);
    expect(files(data_dir).map((name) => name.split('.')[1])).toEqual(['journal', 'journal']);
    await recorder.outcome(generation({ id: 'open' }), noHold());
    await recorder.flush();
    await expect.poll(() => files(data_dir).map((name) => name.split('.')[1])).toEqual(['settled', 'journal']);
    skew_ms = limits.journal_keep_ms + 60_000;
    await recorder.outcome(generation({ id: 'last' }), noHold());
    await recorder.flush();
    await expect.poll(() => files(data_dir)).toHaveLength(1);
  });

  test('recorders on one directory take different slots; a slot nobody came back for is replayed', async () => {
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

  test('a damaged journal in one slot that nobody came back for does not keep the others waiting', async () => {
    const { database, store, data_dir } = await setUp();
    store.settle = down;
    const [second, third] = [await start(store, data_dir), await start(store, data_dir)];
    await second.attempt(attempt('damaged'));
    await second.outcome(generation({ id: 'damaged' }), noHold());
    await third.outcome(generation({ id: 'left behind' }), noHold());
    const copy = asKilled(data_dir);
    const file = join(copy, 'slots', '1', files(copy, 1)[0] ?? '');
    const bytes = readFileSync(file);
    bytes[bytes.indexOf(10) + 30] = 0;
    writeFileSync(file, bytes);
    const whole = ledgerStore(database.queries, database.engine);
    const next = await start(whole, copy);
    await expect.poll(() => stored(database)).toMatchObject([{ id: 'left behind' }]);
    await stop(next);
    store.settle = whole.settle;
  });

  test('a damaged journal stops the start with its name and offset, and frees the slot', async () => {
    const { store, data_dir, recorder } = await setUp();
    await recorder.attempt(attempt('g1'));
    await recorder.attempt(attempt('g2'));
    const copy = asKilled(data_dir);
    const file = join(copy, 'slots', '0', files(copy)[0] ?? '');
    const bytes = readFileSync(file);
    const damaged = bytes.indexOf(10) + 30;
    bytes[damaged] = (bytes[damaged] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    await expect(start(store, copy)).rejects.toThrow(`${file} is damaged at byte ${bytes.indexOf(10) + 1}`);
    rmSync(file);
    expect((await start(store, copy)).state().node).toBe(recorder.state().node);
  });

  test('money that is not whole never enters the store', async () => {
    const { database, recorder } = await setUp();
    await recorder.outcome(generation({ id: 'g1', cost_nano: 0.5 }), noHold());
    await recorder.outcome(generation({ id: 'g2', cost_nano: 1 }), noHold());
    await recorder.flush();
    expect(await stored(database)).toEqual([{ id: 'g2', outcome: 'completed', cost: 1 }]);
  });

  test('a journal that cannot be written refuses attempts with 503, and outcomes still reach the store', async () => {
    const { database, recorder } = await setUp();
    const id = 'g'.repeat(limits.journal_record_bytes_max);
    await expect(recorder.attempt(attempt(id))).rejects.toMatchObject({ status: 503 });
    await recorder.outcome(generation({ id: 'g1', title: id }), noHold());
    await recorder.flush();
    expect(await stored(database)).toHaveLength(1);
  });

  test('an unreachable slot folder fails the start', async () => {
    const { store } = await setUp();
    const data_dir = freshDir();
    mkdirSync(join(data_dir, 'slots'));
    writeFileSync(join(data_dir, 'slots', '0'), 'a file where a folder should be');
    await expect(start(store, data_dir)).rejects.toThrow(/EEXIST|ENOTDIR/);
  });
});
