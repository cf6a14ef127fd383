import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FLUSH_RETRY_MS_MAX } from '../../src/ledger/pipe.ts';
import type { Recorder } from '../../src/ledger/recorder.ts';
import { limits } from '../../src/limits.ts';
import { ledgerStore } from '../../src/storage/ledger.ts';
import { boundedDisk, mountVolume, unmountable } from '../bounded-disk.ts';
import { generation, noHold } from '../generation-fixture.ts';
import { attempt, down, files, recorders, stored } from '../ledger/recorder-fixture.ts';
import { describeStores } from '../ledger/store-variants.ts';

const MB = 1024 * 1024;
/** The size of a call's records. */
const RECORD_CHARS = 20_000;
const PATIENCE = 4 * limits.journal_retry_ms;

/** One call, from its attempt to its outcome. Throws if it is refused. */
async function call(recorder: Recorder, id: string): Promise<void> {
  const first = attempt(id);
  // A key of its own, because common parts of calls are written once in a file.
  const title = id.padEnd(RECORD_CHARS, 'x');
  await recorder.attempt({ ...first, record: { ...first.record, title } });
  await recorder.outcome(generation({ id, cost_nano: 1, title }), noHold(id));
}

/** This number of calls, some of them concurrent. Returns how many were refused. */
async function callAll(recorder: Recorder, count: number, { name = 'g', flushes = true } = {}): Promise<number> {
  let refused = 0;
  for (let at = 0; at < count; at += 8) {
    const ids = Array.from({ length: Math.min(8, count - at) }, (_, index) => `${name}${at + index}`);
    const ends = await Promise.allSettled(ids.map((id) => call(recorder, id)));
    refused += ends.filter(({ status }) => status === 'rejected').length;
    if (flushes) await recorder.flush();
  }
  return refused;
}

describeStores('a disk without space', ({ open }) => {
  const { asKilled, freshDir, setUp, start, stop } = recorders(open);

  async function onDisk(bytes: number) {
    const { database, store } = await setUp();
    const dataDir = freshDir();
    const disk = boundedDisk(dataDir, bytes);
    return { database, store, data_dir: dataDir, disk, recorder: await start(store, dataDir, { disk }) };
  }

  test('acknowledged segments make room for new calls: three times the size of the disk is served', async () => {
    const { database, recorder } = await onDisk(4 * MB);
    expect(await callAll(recorder, 300)).toBe(0);
    await recorder.flush();
    expect(await stored(database)).toHaveLength(300);
    const { problem, journal_discarded_bytes: discardedBytes } = recorder.state();
    expect(problem).toBeUndefined();
    expect(discardedBytes).toBeGreaterThan(4 * MB);
  });

  test.skipIf(unmountable !== undefined)(
    `the same on a volume of its own${unmountable === undefined ? '' : ` (skipped: ${unmountable})`}`,
    async () => {
      const { database, store } = await setUp();
      const recorder = await start(store, join(mountVolume(4 * MB), 'data'));
      expect(await callAll(recorder, 300)).toBe(0);
      await recorder.flush();
      expect(await stored(database)).toHaveLength(300);
      expect(recorder.state().journal_discarded_bytes).toBeGreaterThan(4 * MB);
    },
  );

  test.skipIf(unmountable !== undefined)(
    `a volume that something else fills is served on when that goes${unmountable === undefined ? '' : ` (skipped: ${unmountable})`}`,
    async () => {
      const { store } = await setUp();
      const volume = mountVolume(4 * MB);
      const recorder = await start(store, join(volume, 'data'));
      const other = join(volume, 'other');
      expect(() => writeFileSync(other, Buffer.alloc(5 * MB))).toThrow('ENOSPC');
      await expect.poll(async () => (await callAll(recorder, 8, { name: `${Math.random()}` })) > 0).toBe(true);
      expect(recorder.state().problem).toMatch(`the disk is full: the journal in ${join(volume, 'data')}`);
      writeFileSync(other, '');
      await expect.poll(() => recorder.admits(), { timeout: PATIENCE }).toBe(true);
      expect(await callAll(recorder, 8)).toBe(0);
    },
  );

  test('a journal of one segment closes that segment so that it can be deleted', async () => {
    const { recorder, disk } = await onDisk(1_000 * MB);
    expect(await callAll(recorder, 40)).toBe(0);
    await recorder.flush();
    disk.taken_bytes = 1_000 * MB - recorder.state().journal_bytes - 50_000;
    const isDiscarded = async () => {
      await callAll(recorder, 1);
      return recorder.state().journal_discarded_bytes > MB;
    };
    await expect.poll(isDiscarded, { timeout: PATIENCE, interval: 100 }).toBe(true);
    await expect.poll(() => recorder.admits(), { timeout: PATIENCE }).toBe(true);
    expect(await callAll(recorder, 20, { name: 'later' })).toBe(0);
  });

  test('records that only the journal has are kept: calls are refused with the cause until the store accepts outcomes again', async () => {
    const { database, store, data_dir, recorder } = await onDisk(4 * MB);
    const settle = store.settle;
    store.settle = down;
    const refused = await callAll(recorder, 200, { flushes: false });
    expect(refused).toBeGreaterThan(80);
    expect(recorder.state()).toMatchObject({
      admitting: false,
      problem: `the disk is full: the journal in ${join(data_dir, 'slots', '0')} cannot be written; free some space there`,
      journal_discarded_bytes: 0,
    });
    const next = await start(ledgerStore(database.queries, database.engine), asKilled(data_dir));
    await next.flush();
    expect(await stored(database)).toHaveLength(200 - refused);
    await stop(next);
    store.settle = settle;
    // A little space is always free, and there is enough once the outcomes are stored and their segments settled.
    await recorder.flush();
    await expect.poll(() => files(data_dir).some((name) => name.endsWith('.settled'))).toBe(true);
    await expect.poll(() => recorder.admits(), { timeout: PATIENCE + FLUSH_RETRY_MS_MAX }).toBe(true);
    expect(await callAll(recorder, 100, { name: 'again' })).toBe(0);
    await recorder.flush();
    expect(await stored(database)).toHaveLength(300 - refused);
  });

  test('a start on a full disk serves as soon as the recovered outcomes are in the store', async () => {
    const { database, store, data_dir, recorder, disk } = await onDisk(4 * MB);
    const { settle } = store;
    store.settle = down;
    for (let index = 0; index < 40; index++) await recorder.attempt(attempt(`open${index}`));
    await callAll(recorder, 200, { flushes: false });
    const copy = asKilled(data_dir);
    const full = boundedDisk(copy, 4 * MB);
    full.taken_bytes = 4 * MB - 1_000 - (4 * MB - disk.space(data_dir).free_bytes);
    const next = await start(ledgerStore(database.queries, database.engine), copy, { disk: full });
    await next.flush();
    await expect.poll(() => next.admits(), { timeout: PATIENCE }).toBe(true);
    expect(await callAll(next, 100, { name: 'again' })).toBe(0);
    store.settle = settle;
  });

  test('settled segments are kept up to the setting', async () => {
    const { store } = await setUp();
    const dataDir = freshDir();
    const disk = boundedDisk(dataDir, 16 * MB);
    const recorder = await start(store, dataDir, { disk, journal_keep: { ms: 3_600_000, bytes: 3 * MB } });
    expect(await callAll(recorder, 200)).toBe(0);
    await recorder.flush();
    const isSettled = () => files(dataDir).some((name) => name.endsWith('.settled'));
    await expect.poll(isSettled, { timeout: PATIENCE }).toBe(true);
    await expect.poll(() => recorder.state().journal_bytes, { timeout: PATIENCE }).toBeLessThanOrEqual(3 * MB);
    expect(recorder.state().journal_discarded_bytes).toBe(0);
  });

  test('records for a store that was restored to an earlier state are kept, and a full disk does not prevent their delivery', async () => {
    const { database, store, data_dir, recorder, disk } = await onDisk(8 * MB);
    expect(await callAll(recorder, 100)).toBe(0);
    await recorder.flush();
    for (const table of ['ledger_generations', 'usage_days', 'activity_days'] as const)
      await database.queries.deleteFrom(table).execute();
    await database.queries.updateTable('ledger_nodes').set({ batch: 0 }).execute();
    const { settle } = ledgerStore(database.queries, database.engine);
    store.answers.push(async (batch) => {
      const answer = await settle(batch);
      disk.taken_bytes = disk.space(data_dir).free_bytes;
      return answer;
    });
    await recorder.outcome(generation({ id: 'notices', cost_nano: 1 }), noHold('notices'));
    await expect.poll(async () => (await stored(database)).length, { timeout: PATIENCE }).toBe(101);
    await expect.poll(() => recorder.admits(), { timeout: PATIENCE }).toBe(true);
    await expect.poll(() => files(data_dir).includes('owed.json'), { timeout: PATIENCE }).toBe(false);
    expect(await callAll(recorder, 50, { name: 'later' })).toBe(0);
  });
});
