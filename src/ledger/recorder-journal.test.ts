import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { generation, noHold } from '../../test/generation-fixture.ts';
import { attempt, down, files, recorders, stored } from '../../test/ledger/recorder-fixture.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { limits } from '../limits.ts';
import { generationStore } from '../storage/generations.ts';
import { ledgerStore } from '../storage/ledger.ts';
import { JOURNAL_FORMAT, LineBuffer } from './journal/journal-format.ts';
import { realClock } from './ledger-clock.ts';
import type { OpenRecord } from './records.ts';
import { SLOTS_LOOK_MS } from './start-recorder.ts';

const { organization_id } = generation({ id: '' });

describeStores('the journal files of the recorder', ({ open }) => {
  const { freshDir, asKilled, start, stop, setUp } = recorders(open);

  test('a journal that was deleted while the gateway runs continues in a new file', async () => {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    const dataDir = freshDir();
    vi.useFakeTimers({ toFake: ['setInterval'] });
    try {
      const recorder = await start(store, dataDir);
      for (const name of files(dataDir)) rmSync(join(dataDir, 'slots', '0', name));
      vi.advanceTimersByTime(limits.journal_sweep_ms);
      await expect.poll(() => files(dataDir)).toHaveLength(1);
      await recorder.attempt(attempt('g1'));
      await (await start(store, asKilled(dataDir))).flush();
      expect(await stored(database)).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test('damage in the journal of a running gateway is logged once, not at every check', async () => {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    const dataDir = freshDir();
    let skewMs = 0;
    const logged: string[] = [];
    const log = { info() {}, warn() {}, error: (_facts: object, message: string) => void logged.push(message) };
    vi.useFakeTimers({ toFake: ['setInterval'] });
    try {
      const recorder = await start(store, dataDir, { clock: realClock(() => Date.now() + skewMs), log });
      await recorder.attempt(attempt('open'));
      for (let index = 0; files(dataDir).length < 2; index++) {
        await recorder.outcome(generation({ id: `g${index}`, cost_nano: 0, title: 'x'.repeat(100_000) }), noHold());
      }
      const file = join(dataDir, 'slots', '0', files(dataDir)[0] ?? '');
      const bytes = readFileSync(file);
      const damaged = bytes.indexOf(10) + 30;
      bytes[damaged] = (bytes[damaged] ?? 0) ^ 1;
      writeFileSync(file, bytes);
      skewMs = limits.journal_carry_ms + 60_000;
      for (let look = 0; look < 3; look++) {
        await vi.advanceTimersByTimeAsync(limits.journal_sweep_ms);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(logged).toEqual(['the journal cannot be written']);
    } finally {
      vi.useRealTimers();
    }
  });

  test('a start drops files that continue a lost end, and the records that it then writes are read', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const { settle } = store;
    store.settle = down;
    await recorder.attempt(attempt('old'));
    for (let index = 0; files(data_dir).length < 2; index++)
      await recorder.outcome(generation({ id: `g${index}`, title: 'x'.repeat(100_000) }), noHold());
    await recorder.attempt(attempt('paid with what was freed'));
    const copy = asKilled(data_dir);
    const [first = '', second = ''] = files(copy);
    const path = join(copy, 'slots', '0', first);
    writeFileSync(path, readFileSync(path).subarray(0, -1));
    const next = await start(store, copy);
    expect(files(copy)).not.toContain(second);
    await next.attempt(attempt('new'));
    await (await start(ledgerStore(database.queries, database.engine), asKilled(copy))).flush();
    const unknown = (await stored(database)).filter(({ outcome }) => outcome === 'unknown');
    expect(unknown.map(({ id }) => id)).toEqual(['new', 'old']);
    // Nodes stop as soon as the store has all of their outcomes.
    store.settle = settle;
  });

  test('a journal of a newer version stops the start', async () => {
    const { store, data_dir, recorder } = await setUp();
    await recorder.attempt(attempt('g1'));
    const copy = asKilled(data_dir);
    const lines = new LineBuffer();
    lines.add(JSON.stringify({ t: 'S', node: 'n', epoch: 1, boot: '', format: JOURNAL_FORMAT + 1 }));
    writeFileSync(join(copy, 'slots', '0', files(copy)[0] ?? ''), lines.take());
    await expect(start(store, copy)).rejects.toThrow(/newer version/);
  });

  test('attempts of an older journal with a recorded end and of this version become the same outcome', async () => {
    const { database, store, data_dir, recorder } = await setUp();
    const known: OpenRecord = {
      id: '',
      request_id: 'req-1',
      api_type: 'completions',
      created_at: '2026-11-21T10:00:00.000Z',
      key_hash: 'a'.repeat(64),
      workspace_id: '6f2c1d1e-3c1b-4b7a-9f43-0c8f5a4c2b11',
      organization_id,
      user_id: null,
      model: 'acme/fast-1',
      requested_model: null,
      provider_name: 'Acme AI',
      endpoint_id: 'acme|acme/fast-1',
      streamed: false,
      is_byok: false,
      external_user: null,
      session_id: null,
      http_referer: null,
      title: null,
      categories: [],
      user_agent: null,
      num_media_prompt: 0,
      num_input_audio_prompt: 0,
      attempts: [],
    };
    const end = {
      upstream_id: null,
      outcome: 'unknown',
      cancelled: false,
      finish_reason: null,
      native_finish_reason: null,
      service_tier: null,
      latency: null,
      generation_time: null,
      usage: null,
      cost_nano: 0,
      upstream_cost_nano: 0,
      cache_discount_nano: null,
    };
    await recorder.attempt({ ...attempt('now'), record: { ...known, id: 'now' } });
    const copy = asKilled(data_dir);
    const file = join(copy, 'slots', '0', files(copy)[0] ?? '');
    const lines = new LineBuffer();
    const before = { t: 'A', id: 'before', attempt: 1, endpoint: 'e', at: 1, hold: [], grant_nano: 0, is_byok: false };
    lines.add(JSON.stringify({ t: 'S', node: 'n', epoch: 1, boot: '', format: 1 }));
    lines.add(JSON.stringify({ ...before, record: { ...known, ...end, id: 'before' } }));
    writeFileSync(file, Buffer.concat([lines.take(), readFileSync(file)]));
    await (await start(store, copy)).flush();
    expect(await stored(database)).toHaveLength(2);
    const find = (id: string) => generationStore(database.queries).findById({ organization_id, id });
    const [one, other] = [await find('now'), await find('before')];
    expect(one).toStrictEqual({ ...known, ...end, id: 'now', usage: { estimated: true }, byok_cost_nano: 0 });
    expect(other).toStrictEqual({ ...one, id: 'before' });
  });

  test('a damaged journal in the slot of a stopped process does not delay the other slots', async () => {
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

  test('an unreadable slot folder is logged once, and does not prevent a clean stop', async () => {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    const dataDir = freshDir();
    const logged: string[] = [];
    const log = { info() {}, warn() {}, error: (_facts: object, message: string) => void logged.push(message) };
    vi.useFakeTimers({ toFake: ['setInterval'] });
    try {
      const recorder = await start(store, dataDir, { log });
      const slots = join(dataDir, 'slots');
      renameSync(slots, join(dataDir, 'away'));
      writeFileSync(slots, 'no folder');
      await vi.advanceTimersByTimeAsync(2 * SLOTS_LOOK_MS);
      await recorder.outcome(generation({ id: 'g1' }), noHold());
      await stop(recorder);
    } finally {
      vi.useRealTimers();
    }
    expect(logged.filter((message) => message.includes('could not be searched'))).toHaveLength(1);
    expect(await stored(database)).toHaveLength(1);
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

  test('a journal that cannot be written refuses attempts with 503, and outcomes still reach the store', async () => {
    const { database, recorder } = await setUp();
    const id = 'g'.repeat(limits.journal_record_bytes_max);
    await expect(recorder.attempt(attempt(id))).rejects.toMatchObject({ status: 503 });
    await recorder.outcome(generation({ id: 'g1', title: id }), noHold());
    await recorder.flush();
    expect(await stored(database)).toHaveLength(1);
  });

  test('a slot folder that cannot be created fails the start', async () => {
    const { store } = await setUp();
    const dataDir = freshDir();
    mkdirSync(join(dataDir, 'slots'));
    writeFileSync(join(dataDir, 'slots', '0'), 'a file where a folder should be');
    await expect(start(store, dataDir)).rejects.toThrow(/EEXIST|ENOTDIR/);
  });

  test('full segments are settled in order, and deleted after their retention', async () => {
    const database = await open();
    let skewMs = 0;
    let passedMs = 0;
    const dataDir = freshDir();
    const recorder = await start(ledgerStore(database.queries, database.engine), dataDir, {
      clock: { ...realClock(() => Date.now() + skewMs), monotonic: () => performance.now() + passedMs },
    });
    const segments = async (count: number) => {
      const long = 'x'.repeat(100_000);
      for (let index = 0; files(dataDir).length < count; index++) {
        await recorder.outcome(generation({ id: `g${count}-${index}`, title: long }), noHold());
      }
      await recorder.flush();
    };
    await recorder.attempt(attempt('open'));
    await segments(2);
    expect(files(dataDir).map((name) => name.split('.')[1])).toEqual(['journal', 'journal']);
    await recorder.outcome(generation({ id: 'open' }), noHold());
    await recorder.flush();
    await expect.poll(() => files(dataDir).map((name) => name.split('.')[1])).toEqual(['settled', 'journal']);
    // Setting a clock forward is no passage of time.
    skewMs = limits.journal_keep_ms + 60_000;
    await recorder.outcome(generation({ id: 'later' }), noHold());
    await recorder.flush();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(files(dataDir)).toHaveLength(2);
    passedMs = limits.journal_keep_ms + 60_000;
    await recorder.outcome(generation({ id: 'last' }), noHold());
    await recorder.flush();
    await expect.poll(() => files(dataDir)).toHaveLength(1);
  });
});
