import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { migrate } from './migrations.ts';
import { BUCKET_COLUMNS } from './usage-rows.ts';

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

  test('the histograms of earlier versions are those of hours and days afterwards', async () => {
    const { queries, engine } = await open();
    const run = (text: string) => sql.raw(text).execute(queries);
    await run('DROP TABLE analytics_histograms');
    await run(`CREATE TABLE analytics_buckets (span BIGINT NOT NULL, start BIGINT NOT NULL, series BIGINT NOT NULL,
      metric BIGINT NOT NULL, bucket BIGINT NOT NULL, calls BIGINT NOT NULL)`);
    const first = 24 * 20_000;
    // Hours of two days, buckets at the edges of parts, two series.
    const rows: [start: number, series: number, metric: number, bucket: number, calls: number][] = [
      [first, 1, 0, 15, 2],
      [first, 1, 0, 16, 3],
      [first + 23, 1, 0, 15, 5],
      [first + 24, 1, 0, 218, 7],
      [first, 2, 2, 0, 11],
    ];
    for (const row of rows) await run(`INSERT INTO analytics_buckets VALUES (1, ${row.join(', ')})`);
    await run("DELETE FROM schema_migrations WHERE name = '0036_histograms.sql'");
    await migrate(queries, engine);
    const kept = await queries.selectFrom('analytics_histograms').selectAll().execute();
    const counts = new Map<string, number>();
    for (const row of kept) {
      for (const [at, column] of BUCKET_COLUMNS.entries()) {
        if (row[column] > 0)
          counts.set([row.span, row.start, row.series, row.metric, row.part * 16 + at].join(), row[column]);
      }
    }
    expect(counts).toEqual(
      new Map([
        ...rows.map(
          ([start, series, metric, bucket, calls]) => [[1, start, series, metric, bucket].join(), calls] as const,
        ),
        [[24, first, 1, 0, 15].join(), 7],
        [[24, first, 1, 0, 16].join(), 3],
        [[24, first + 24, 1, 0, 218].join(), 7],
        [[24, first, 2, 2, 0].join(), 11],
      ]),
    );
  });
});
