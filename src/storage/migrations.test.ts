import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { migrate } from './migrations.ts';

let dir: string;
let folder: URL;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gateway-migrations-'));
  cpSync(new URL('./migrations/', import.meta.url), dir, { recursive: true });
  folder = pathToFileURL(`${dir}/`);
});
afterEach(() => rmSync(dir, { recursive: true }));

describeStores('migrations', ({ open }) => {
  test('a new migration is applied once, also if several processes start together', async () => {
    const { queries, engine } = await open();
    writeFileSync(join(dir, '0099_more.sql'), "CREATE TABLE more (a TEXT);\nINSERT INTO more (a) VALUES ('x;y');\n");
    await Promise.all([1, 2, 3, 4].map(() => migrate(queries, engine, folder)));
    await migrate(queries, engine, folder);
    expect((await sql`SELECT a FROM more`.execute(queries)).rows).toEqual([{ a: 'x;y' }]);
  });

  test('a store of a newer version is refused', async () => {
    const { queries, engine } = await open();
    writeFileSync(join(dir, '0099_more.sql'), 'CREATE TABLE more (a TEXT);\n');
    await migrate(queries, engine, folder);
    await expect(migrate(queries, engine)).rejects.toThrow(/newer version.*0099_more\.sql/);
  });

  test('a migration file that changed after it was applied is refused', async () => {
    const { queries, engine } = await open();
    writeFileSync(join(dir, '0001_foundation.sql'), 'CREATE TABLE other (a TEXT);\n');
    await expect(migrate(queries, engine, folder)).rejects.toThrow(/0001_foundation\.sql.*checksum/);
  });

  test('a migration that fails is rolled back', async () => {
    const { queries, engine } = await open();
    writeFileSync(join(dir, '0099_more.sql'), 'CREATE TABLE more (a TEXT);\nINSERT INTO nowhere (a) VALUES (1);\n');
    await expect(migrate(queries, engine, folder)).rejects.toThrow(/nowhere/);
    writeFileSync(join(dir, '0099_more.sql'), 'CREATE TABLE more (a TEXT);\n');
    await migrate(queries, engine, folder);
    expect((await sql`SELECT a FROM more`.execute(queries)).rows).toEqual([]);
  });
});
