import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { nodeDisk, type OpenFile } from './disk.ts';
import { Journal } from './journal.ts';
import { realClock } from './ledger-clock.ts';
import { Segments } from './segments.ts';

const dirs: string[] = [];
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true });
});

test('an attempt is durable only when its own file is synced, however many are full before', async () => {
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
  const segments = new Segments(dir, () => {}, disk);
  const journal = new Journal({ segments, node: 'n', epoch: 1, boot: 'b', sync: 'group', clock: realClock(Date.now) });
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
  const attempt = (id: string) => {
    const told = { is_durable: false };
    void journal.attempt(id, `{"t":"A","id":"${id}"}`).then(() => {
      told.is_durable = true;
    });
    return told;
  };

  const first = attempt('first');
  await expect.poll(() => waiting.length).toBe(1);
  await fillFile();
  const second = attempt('second');
  await new Promise(setImmediate);
  expect(await syncOne()).toBe(0);
  expect(first.is_durable).toBe(true);
  // The first file is synced once more, because it is full; meanwhile the second, in which the attempt is, comes to be full.
  await fillFile();
  expect(await syncOne()).toBe(0);
  expect(second.is_durable).toBe(false);
  expect(await syncOne()).toBe(1);
  expect(second.is_durable).toBe(true);

  disk.sync = async () => {};
  for (const { done } of waiting) done();
  await journal.close();
});
