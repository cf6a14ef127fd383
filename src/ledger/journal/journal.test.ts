import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { generation } from '../../../test/generation-fixture.ts';
import { attempt } from '../../../test/ledger/recorder-fixture.ts';
import { limits } from '../../limits.ts';
import { realClock } from '../ledger-clock.ts';
import type { JournalRecord } from '../records.ts';
import type { AttemptEntry } from './attempt-line.ts';
import { nodeDisk, type OpenFile } from './disk.ts';
import { Journal, type JournalOptions } from './journal.ts';
import { replay } from './replay.ts';
import { Segments } from './segments.ts';

const dirs: string[] = [];
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true });
});

function journalOf(segments: Segments, over: Partial<JournalOptions> = {}): Journal {
  const clock = realClock(Date.now);
  return new Journal({
    segments,
    node: 'n',
    epoch: 1,
    boot: 'b',
    sync: 'group',
    clock,
    outcomeLineOf: () => [],
    ...over,
  });
}

test('an attempt is durable only after its own file is synced, whatever the number of full files before', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gateway-journal-'));
  dirs.push(dir);
  const waiting: { file: OpenFile; done: () => void }[] = [];
  const made: OpenFile[] = [];
  const disk = {
    ...nodeDisk,
    create: (path: string) => {
      const file = nodeDisk.create(path);
      made.push(file);
      return file;
    },
    sync: (file: OpenFile) => new Promise<void>((done) => void waiting.push({ file, done })),
  };
  const segments = new Segments(dir, { disk });
  const journal = journalOf(segments);
  const fillFile = async () => {
    const files = made.length;
    const id = 'x'.repeat(limits.journal_record_bytes_max / 2);
    while (made.length === files) {
      journal.note({ t: 'P', id, usage: {} });
      await new Promise(setImmediate);
    }
  };
  const syncOne = async () => {
    const next = waiting.shift();
    next?.done();
    await new Promise(setImmediate);
    return next && made.indexOf(next.file);
  };
  const begin = (id: string) => {
    const state = { is_durable: false };
    void journal.attempt(opened(id)).then(() => {
      state.is_durable = true;
    });
    return state;
  };

  const first = begin('first');
  await expect.poll(() => waiting.length).toBe(1);
  await fillFile();
  const second = begin('second');
  await new Promise(setImmediate);
  expect(await syncOne()).toBe(0);
  expect(first.is_durable).toBe(true);
  // The first file is synced again because it is full; meanwhile the second file, which contains the attempt, becomes full.
  await fillFile();
  expect(await syncOne()).toBe(0);
  expect(second.is_durable).toBe(false);
  expect(await syncOne()).toBe(1);
  expect(second.is_durable).toBe(true);

  disk.sync = async () => {};
  for (const { done } of waiting) done();
  await journal.close();
});

test('shared contexts are defined again in a new file, and after lines that could not be written', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gateway-journal-'));
  dirs.push(dir);
  let isFull = false;
  const write = (file: OpenFile, bytes: Buffer, from: number) => {
    if (isFull) throw new Error('no space');
    return nodeDisk.write(file, bytes, from);
  };
  const segments = new Segments(dir, { disk: { ...nodeDisk, write } });
  const journal = journalOf(segments);
  isFull = true;
  await expect(journal.attempt(opened('lost'))).rejects.toThrow('no space');
  isFull = false;
  const short = async (id: string) => {
    await journal.attempt(opened(id));
    const [file = ''] = readdirSync(dir).toReversed();
    const line = readFileSync(join(dir, file), 'utf8').split('\n').at(-2);
    return line?.includes('"d":') === false;
  };
  expect([await short('g1'), await short('g2')]).toEqual([false, true]);
  journal.beginEpoch(2);
  expect([await short('g3'), await short('g4')]).toEqual([false, true]);
  await journal.close();
  const read = replay(new Segments(dir)).unknown.map(({ id, record }) => [id, record.title]);
  expect(read).toEqual(['g1', 'g2', 'g3', 'g4'].map((id) => [id, opened(id).record.title]));
});

/** A slot in which successive runs write their journals, one file per epoch, and lose the ends of files. */
function slot() {
  const dir = mkdtempSync(join(tmpdir(), 'gateway-journal-'));
  dirs.push(dir);
  const write = async (epoch: number, ...files: JournalRecord[][]) => {
    const segments = new Segments(dir);
    segments.discard(replay(segments).lost);
    const journal = journalOf(segments, { epoch, sync: 'os' });
    for (const [index, records] of files.entries()) {
      if (index > 0) journal.beginEpoch(epoch + index);
      for (const record of records) journal.note(record);
    }
    await journal.close();
  };
  /** A file after a power loss: of its full length, without its last bytes. */
  const tear = (file: string) => {
    const path = join(dir, file);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0, bytes.length - 20));
  };
  const read = () => {
    const { unknown, lost } = replay(new Segments(dir));
    return { open: unknown.map(({ id }) => id), lost: lost.map(({ name }) => name) };
  };
  return { dir, write, tear, read };
}

function opened(id: string): AttemptEntry {
  const { endpoint, record } = attempt(id);
  return { t: 'A', id, attempt: 1, endpoint, hold: [['b', '', 9, 9]], grant_nano: 9, record };
}

function ended(id: string): JournalRecord {
  return {
    t: 'O',
    id,
    charges: [{ budget_id: 'b', window_start: '', amount: 1, cover: 1 }],
    record: generation({ id }),
  };
}

test('records after a lost end of a file are lost too, in all later files, which a start then removes', async () => {
  const { dir, write, tear, read } = slot();
  await write(1, [opened('old'), ended('old')], [opened('paid with what it freed')], [opened('and so on')]);
  expect(read()).toEqual({ open: ['paid with what it freed', 'and so on'], lost: [] });
  tear('00000001-000001.journal');
  const lost = ['00000002-000001', '00000003-000001'];
  expect(read()).toEqual({ open: ['old'], lost });
  // A start that is interrupted during the removal finds as much.
  let removed = 0;
  const removeNow = (path: string) => {
    if (removed++ > 0) throw new Error('it ends here');
    nodeDisk.removeNow(path);
  };
  const ending = new Segments(dir, { disk: { ...nodeDisk, removeNow } });
  expect(() => ending.discard(replay(ending).lost)).toThrow('it ends here');
  expect(read()).toEqual({ open: ['old'], lost: lost.slice(0, 1) });
  await write(4, [opened('new')]);
  expect(read()).toEqual({ open: ['old', 'new'], lost: [] });
  expect(readdirSync(dir)).toEqual(['00000001-000001.journal', '00000004-000001.journal']);
});

test('a later run relies on what it read of an earlier torn file', async () => {
  const { dir, write, tear, read } = slot();
  await write(1, [opened('old'), ended('old')]);
  tear('00000001-000001.journal');
  await write(2, [opened('new')]);
  expect(read()).toEqual({ open: ['old', 'new'], lost: [] });
  // A file that only a process read was not durable.
  truncateSync(join(dir, '00000001-000001.journal'), 100);
  expect(read().lost).toEqual(['00000002-000001']);
});

test('a file whose predecessor was settled or removed is read', async () => {
  const { dir, write, read } = slot();
  await write(1, [opened('old')], [opened('new')]);
  const first = join(dir, '00000001-000001.journal');
  renameSync(first, join(dir, '00000001-000001.settled'));
  expect(read()).toEqual({ open: ['new'], lost: [] });
  rmSync(join(dir, '00000001-000001.settled'));
  expect(read()).toEqual({ open: ['new'], lost: [] });
});
