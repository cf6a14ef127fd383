import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { limits } from '../limits.ts';
import { DATABASE_FILE, openDatabase } from './database.ts';
import { MIGRATION_LOCK } from './migrations.ts';

const TEST_DATABASE_URL = process.env['TEST_DATABASE_URL'];

const organization = (id: string) => ({ id, name: 'n', created_at: '2026-11-21T10:00:00.000Z' });

describeStores('the database', ({ open }) => {
  test('a transaction is visible to others only after its commit', async () => {
    const { queries } = await open();
    const count = async () => (await queries.selectFrom('organizations').selectAll().execute()).length;
    let during: Promise<number> | undefined;
    await queries.transaction().execute(async (tx) => {
      await tx.insertInto('organizations').values(organization('a')).execute();
      expect(await tx.selectFrom('organizations').selectAll().execute()).toHaveLength(1);
      // In memory the reader waits for its turn; in other databases it sees the state before.
      during = count();
      await Promise.race([during, new Promise((resolve) => setTimeout(resolve, 50))]);
    });
    expect(await during).toBeLessThanOrEqual(1);
    expect(await count()).toBe(1);
  });

  test('a transaction that throws is rolled back, and the next one works', async () => {
    const { queries } = await open();
    const broken = queries.transaction().execute(async (tx) => {
      await tx.insertInto('organizations').values(organization('a')).execute();
      throw new Error('changed my mind');
    });
    await expect(broken).rejects.toThrow('changed my mind');
    expect(await queries.selectFrom('organizations').selectAll().execute()).toEqual([]);
    await queries.insertInto('organizations').values(organization('b')).execute();
    expect(await queries.selectFrom('organizations').select('id').execute()).toEqual([{ id: 'b' }]);
  });

  test('concurrent writers are serialized, and no write is lost', async () => {
    const { queries } = await open();
    await queries.insertInto('counters').values({ name: 'c', value: 0 }).execute();
    const raise = () =>
      queries.transaction().execute(async (tx) => {
        await tx.updateTable('counters').set({ value: sql`value + 1` }).where('name', '=', 'c').execute();
      });
    await Promise.all(Array.from({ length: 40 }, raise));
    expect(await queries.selectFrom('counters').select('value').execute()).toEqual([{ value: 40 }]);
  });

  test('the count of changed rows is returned', async () => {
    const { queries } = await open();
    await queries
      .insertInto('organizations')
      .values([organization('a'), organization('b')])
      .execute();
    const { numUpdatedRows } = await queries.updateTable('organizations').set({ name: 'm' }).executeTakeFirstOrThrow();
    expect(numUpdatedRows).toBe(2n);
    const [deleted] = await queries.deleteFrom('organizations').where('id', '=', 'a').execute();
    expect(deleted?.numDeletedRows).toBe(1n);
  });

  test('a reference to a missing row is refused', async () => {
    const { queries } = await open();
    const member = { id: 'm', organization_id: 'none', user_id: 'none', role: 'admin', created_at: 'now', seq: 1 };
    await expect(queries.insertInto('organization_members').values(member).execute()).rejects.toThrow(/foreign key/i);
  });

  test('integers beyond the safe range are an error, not another number', async () => {
    const { queries } = await open();
    const read = (value: string) => sql`SELECT CAST(${sql.lit(value)} AS BIGINT) AS value`.execute(queries);
    expect((await read('9007199254740991')).rows).toEqual([{ value: 9_007_199_254_740_991 }]);
    await expect(read('9007199254740993')).rejects.toThrow();
  });

  test('whole numbers are integers at every place of a statement', async () => {
    const { queries } = await open();
    const value = sql`CAST(${7} AS BIGINT) / ${2}`;
    expect((await sql`SELECT ${value} AS half`.execute(queries)).rows).toEqual([{ half: 3 }]);
    await queries.insertInto('counters').values({ name: 'c', value: 9_007_199_254_740_991 }).execute();
    const [read] = await queries.selectFrom('counters').select('value').limit(1).execute();
    expect(read?.value).toBe(9_007_199_254_740_991);
  });

  test('the error of a failed statement does not contain its values', async () => {
    const { queries } = await open();
    const secret = 'sk-gw-v1-secret';
    const refused = await queries
      .insertInto('api_keys')
      .values({ hash: secret } as never)
      .execute()
      .catch((error: unknown) => error);
    expect(String(refused)).toMatch(/null/i);
    expect(String(refused)).not.toContain(secret);
  });
});

describe.skipIf(TEST_DATABASE_URL === undefined)('the statement timeout (postgres)', () => {
  test('does not apply to migrations, nor to the wait for those of another process', async () => {
    const url = new URL(TEST_DATABASE_URL ?? '');
    const schema = `test_${process.pid}_patience`;
    url.searchParams.set('options', `-c search_path=${schema} -c statement_timeout=150`);
    const other = new Client({ connectionString: TEST_DATABASE_URL });
    await other.connect();
    try {
      await other.query(`CREATE SCHEMA ${schema}`);
      await other.query(`SELECT pg_advisory_lock(${MIGRATION_LOCK})`);
      const opening = openDatabase({ database_url: url.href, statement_ms_max: 150 });
      await Promise.race([opening, new Promise((resolve) => setTimeout(resolve, 800))]);
      await other.query(`SELECT pg_advisory_unlock(${MIGRATION_LOCK})`);
      const { queries, close } = await opening;
      await expect(sql`SELECT pg_sleep(2)`.execute(queries)).rejects.toThrow(/timeout/);
      await close();
    } finally {
      await other.query(`DROP SCHEMA ${schema} CASCADE`);
      await other.end();
    }
  });
});

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'gateway-database-'));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

test('a file has a write-ahead log that is synced at every commit, and keeps its rows', async () => {
  const first = await openDatabase({ data_dir: dataDir });
  expect((await sql`PRAGMA journal_mode`.execute(first.queries)).rows).toEqual([{ journal_mode: 'wal' }]);
  await first.queries.transaction().execute(async (tx) => {
    // 2 is FULL (sqlite.org/pragma.html#pragma_synchronous).
    expect((await sql`PRAGMA synchronous`.execute(tx)).rows).toEqual([{ synchronous: 2 }]);
    await tx.insertInto('organizations').values(organization('a')).execute();
  });
  await first.close();
  const second = await openDatabase({ data_dir: dataDir });
  expect(await second.queries.selectFrom('organizations').select('id').execute()).toEqual([{ id: 'a' }]);
  await second.close();
});

test('a reader of a file does not wait for an open transaction, and sees the state before it', async () => {
  const { queries, close } = await openDatabase({ data_dir: dataDir });
  await queries.transaction().execute(async (tx) => {
    await tx.insertInto('organizations').values(organization('a')).execute();
    expect(await queries.selectFrom('organizations').selectAll().execute()).toEqual([]);
  });
  expect(await queries.selectFrom('organizations').selectAll().execute()).toHaveLength(1);
  await close();
});

test('several processes can open a new file together and write to it', async () => {
  const all = await Promise.all([1, 2, 3, 4].map(() => openDatabase({ data_dir: dataDir })));
  await Promise.all(
    all.flatMap(({ queries }, process) =>
      Array.from({ length: 25 }, (_, index) =>
        queries
          .insertInto('organizations')
          .values(organization(`${process}-${index}`))
          .execute(),
      ),
    ),
  );
  for (const { queries } of all) {
    expect(await queries.selectFrom('organizations').selectAll().execute()).toHaveLength(100);
  }
  await Promise.all(all.map((database) => database.close()));
});

test('a file that is not a database fails the start immediately with a message', async () => {
  writeFileSync(join(dataDir, DATABASE_FILE), 'not a database, and long enough to be looked at '.repeat(30));
  const began = performance.now();
  await expect(openDatabase({ data_dir: dataDir })).rejects.toThrow(/not a database/);
  expect(performance.now() - began).toBeLessThan(limits.database_busy_ms_max);
});

test('a closed database answers with an error', async () => {
  const database = await openDatabase({ data_dir: dataDir });
  await database.close();
  await database.close();
  await expect(database.ping()).rejects.toThrow();
});

test('a server that does not answer is named without its password', async () => {
  const opened = openDatabase({ database_url: 'postgres://user:hunter2@127.0.0.1:9/gateway' });
  const error = await opened.catch((refused: Error) => refused);
  expect(String(error)).toBe('Error: PostgreSQL at 127.0.0.1:9/gateway does not answer');
});
