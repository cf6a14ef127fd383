import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { registerNode } from '../../test/ledger/registered-node.ts';
import { toSettle } from '../ledger/settle.ts';
import { backUp } from './backup.ts';
import { DATABASE_FILE, type Database, openDatabase } from './database.ts';
import { ledgerStore } from './ledger.ts';

let dataDir: string;
let database: Database;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'gateway-backup-'));
  database = await openDatabase({ data_dir: dataDir });
});
afterEach(async () => {
  await database.close();
  rmSync(dataDir, { recursive: true });
});

/** Writes batches until stopped; generations and usage rise together in each. */
function writeOn(): { stop: () => Promise<number> } {
  let going = true;
  const run = async () => {
    const store = ledgerStore(database.queries, database.engine);
    const { epoch } = await registerNode(store, 'n');
    let number = 1;
    for (; going; number++) {
      const settles = Array.from({ length: 20 }, (_, index) => {
        const record = generation({ id: `g${number}-${index}`, cost_nano: 3 });
        return toSettle(record, []);
      });
      await store.settle({ node: 'n', epoch, number, at: 1, settles, windows: [], divisor: 2 });
    }
    return number - 1;
  };
  const done = run();
  return {
    stop: () => {
      going = false;
      return done;
    },
  };
}

test('a copy of a store under write load is consistent and can be opened', async () => {
  const writer = writeOn();
  const counts: number[] = [];
  const first = () => database.queries.selectFrom('ledger_generations').select('id').executeTakeFirst();
  await expect.poll(first).toBeDefined();
  for (let round = 0; round < 5; round++) {
    const restored = join(dataDir, `restored-${round}`);
    mkdirSync(restored);
    await backUp({ data_dir: dataDir, file: join(restored, DATABASE_FILE) });
    const copy = new DatabaseSync(join(restored, DATABASE_FILE));
    expect(copy.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    const { count, cost } = copy
      .prepare('SELECT count(*) AS count, sum(cost) AS cost FROM ledger_generations')
      .get() as {
      count: number;
      cost: number;
    };
    const usage = copy.prepare('SELECT sum(requests) AS requests, sum(usage_nano) AS nano FROM usage_days').get();
    const node = copy.prepare('SELECT batch FROM ledger_nodes').get();
    expect(usage).toEqual({ requests: count, nano: cost });
    expect(node).toEqual({ batch: count / 20 });
    copy.close();
    counts.push(count);
    const opened = await openDatabase({ data_dir: restored });
    await opened.ping();
    await opened.close();
  }
  const batches = await writer.stop();
  expect(counts.at(-1)).toBeGreaterThan(counts[0] ?? 0);
  expect(counts.at(-1)).toBeLessThanOrEqual(batches * 20);
});

test('a backup file is accessible to its owner only', async () => {
  const file = join(dataDir, 'copy');
  await backUp({ data_dir: dataDir, file });
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('a backup never overwrites a file, and leaves no partial file', async () => {
  const file = join(dataDir, 'taken');
  writeFileSync(file, 'precious');
  await expect(backUp({ data_dir: dataDir, file })).rejects.toThrow(`${file} exists`);
  expect(readFileSync(file, 'utf8')).toBe('precious');
  expect(readdirSync(dataDir).filter((name) => name.includes('partial'))).toEqual([]);
});

test('a backup creates no folders, since the name may be mistyped', async () => {
  const folder = join(dataDir, 'no', 'such');
  const sentence = `The folder ${folder} does not exist: create it, or choose a file in another folder`;
  await expect(backUp({ data_dir: dataDir, file: join(folder, 'copy') })).rejects.toThrow(sentence);
  expect(existsSync(join(dataDir, 'no'))).toBe(false);
});

test('without a store a backup fails and creates none', async () => {
  const empty = join(dataDir, 'empty');
  await expect(backUp({ data_dir: empty, file: join(dataDir, 'copy') })).rejects.toThrow('There is no embedded store');
  expect(existsSync(empty)).toBe(false);
});
