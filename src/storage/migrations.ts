import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { type Kysely, sql } from 'kysely';
import { BulkStatement, type Step, transact } from './bulk.ts';
import type { Tables } from './schema.ts';

interface Migration {
  name: string;
  checksum: string;
  statements: string[];
}

interface Migrated extends Tables {
  schema_migrations: { name: string; checksum: string; applied_at: string };
}

const FOLDER = new URL('./migrations/', import.meta.url);
/** Any constant: whoever migrates a PostgreSQL database holds this advisory lock. */
export const MIGRATION_LOCK = 7_205_931;

function statementsOf(text: string): string[] {
  return text
    .replaceAll(/^--.*$/gm, '')
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

async function readMigrations(folder: URL): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, folder), 'utf8');
      const checksum = createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex');
      return { name, checksum, statements: statementsOf(text) };
    }),
  );
}

function verify(applied: readonly { name: string; checksum: string }[], migrations: readonly Migration[]): void {
  const newest = migrations.at(-1)?.name ?? 'none';
  for (const { name, checksum } of applied) {
    const known = migrations.find((migration) => migration.name === name);
    if (!known) {
      throw new Error(
        `The store was written by a newer version of this program: it has migration ${name}, this version ends with ${newest}. ` +
          'Start the newer version, or restore a backup that this version wrote.',
      );
    }
    if (known.checksum !== checksum) {
      throw new Error(
        `Migration ${name} is not the file that was applied to this store (its checksum differs). ` +
          'A released migration is never edited: restore the file and add a new one.',
      );
    }
  }
}

/** Refuses what a newer version applied, and a migration file that changed since. */
export async function verifyMigrations(applied: readonly { name: string; checksum: string }[]): Promise<void> {
  verify(applied, await readMigrations(FOLDER));
}

/** A statement of a migration, as a part of its transaction. */
function statement(text: string): Step {
  return {
    answers: [],
    must_change: false,
    is_empty: false,
    run: async (tx) => {
      await sql.raw(text).execute(tx);
      return true;
    },
    toSqlite: () => ({ sql: text, rows: [[]], must_change: false }),
  };
}

/** Notes a migration as applied; changes nothing where it is noted already. */
const noting = () =>
  new BulkStatement<Migrated['schema_migrations']>((queries, rows) =>
    (queries as unknown as Kysely<Migrated>)
      .insertInto('schema_migrations')
      .values(rows)
      .onConflict((conflict) => conflict.column('name').doNothing())
      .compile(),
  );

/**
 * Brings the store to this version: each missing migration in its own transaction, in order, once, also when several
 * processes start together. Refuses a store that a newer version wrote, and a migration file that changed.
 */
export async function migrate(database: Kysely<Tables>, engine: 'sqlite' | 'postgres', folder = FOLDER): Promise<void> {
  const migrations = await readMigrations(folder);
  const db = database as unknown as Kysely<Migrated>;
  const locks =
    engine === 'sqlite'
      ? []
      : [
          // Also where the server, the database or the role has a bound of its own.
          'SET LOCAL statement_timeout = 0',
          `SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`,
        ];
  const missing = () =>
    db.transaction().execute(async (tx) => {
      for (const lock of locks) await sql.raw(lock).execute(tx);
      await sql`CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL)`.execute(
        tx,
      );
      const applied = await tx.selectFrom('schema_migrations').select(['name', 'checksum']).execute();
      verify(applied, migrations);
      const names = new Set(applied.map(({ name }) => name));
      return migrations.filter(({ name }) => !names.has(name));
    });
  const note = noting();
  for (const { name, checksum, statements } of await missing()) {
    const noted = note.step([{ name, checksum, applied_at: new Date().toISOString() }], { must_change: true });
    const undone = await transact(database, [...locks.map(statement), noted, ...statements.map(statement)]);
    // Another process was faster: what it applied is looked at, too.
    if (undone !== undefined) await missing();
  }
}
