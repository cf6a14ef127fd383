import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { afterEach, describe } from 'vitest';
import { type Database, openDatabase } from '../../src/storage/database.ts';

/** One engine that a test runs on. */
export interface StoreVariant {
  engine: Database['engine'];
  /** A fresh, migrated store of this test's own; closed and removed after it. */
  open: () => Promise<Database>;
  /** A URL with a fresh, empty PostgreSQL schema behind it, for tests that start processes; undefined on SQLite. */
  freshUrl: () => Promise<string | undefined>;
}

const TEST_DATABASE_URL = process.env['TEST_DATABASE_URL'];

async function ask(statement: string): Promise<void> {
  const client = new Client({ connectionString: TEST_DATABASE_URL });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

function variants(cleanups: (() => Promise<void>)[]): StoreVariant[] {
  const opened = async (database: Database) => {
    cleanups.push(() => database.close());
    return database;
  };
  const sqlite: StoreVariant = {
    engine: 'sqlite',
    open: async () => opened(await openDatabase({})),
    freshUrl: async () => undefined,
  };
  if (TEST_DATABASE_URL === undefined) return [sqlite];
  const freshUrl = async () => {
    const schema = `test_${randomBytes(8).toString('hex')}`;
    await ask(`CREATE SCHEMA ${schema}`);
    cleanups.push(() => ask(`DROP SCHEMA ${schema} CASCADE`));
    const url = new URL(TEST_DATABASE_URL);
    url.searchParams.set('options', `-c search_path=${schema}`);
    return url.href;
  };
  const postgres: StoreVariant = {
    engine: 'postgres',
    open: async () => opened(await openDatabase({ database_url: await freshUrl() })),
    freshUrl,
  };
  return [sqlite, postgres];
}

/** Runs a suite on every engine: SQLite in memory always, PostgreSQL if `TEST_DATABASE_URL` names a server. */
export function describeStores(title: string, suite: (variant: StoreVariant) => void): void {
  const cleanups: (() => Promise<void>)[] = [];
  for (const variant of variants(cleanups)) {
    describe(`${title} (${variant.engine})`, () => {
      afterEach(async () => {
        for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
      });
      suite(variant);
    });
  }
}
