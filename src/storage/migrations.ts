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
/** An arbitrary constant: the advisory lock that a process holds while it migrates a PostgreSQL database. */
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

/** Throws if a newer version has migrated the store, or if the file of an applied migration has changed. */
export async function verifyMigrations(applied: readonly { name: string; checksum: string }[]): Promise<void> {
  verify(applied, await readMigrations(FOLDER));
}

/** A statement of a migration, as a step of its transaction. */
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

/** Records a migration as applied; changes nothing if it is recorded already. */
const recording = () =>
  new BulkStatement<Migrated['schema_migrations']>((queries, rows) =>
    (queries as unknown as Kysely<Migrated>)
      .insertInto('schema_migrations')
      .values(rows)
      .onConflict((conflict) => conflict.column('name').doNothing())
      .compile(),
  );

/**
 * Migrates the store to this version: each missing migration in its own transaction, in order, once, also if several
 * processes start together. Rejects if a newer version has migrated the store, or if the file of an applied migration has changed.
 */
export async function migrate(database: Kysely<Tables>, engine: 'sqlite' | 'postgres', folder = FOLDER): Promise<void> {
  const migrations = await readMigrations(folder);
  const db = database as unknown as Kysely<Migrated>;
  const locks =
    engine === 'sqlite'
      ? []
      : [
          // The server, the database or the role may have a timeout of its own.
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
  const record = recording();
  for (const { name, checksum, statements } of await missing()) {
    const recorded = record.step([{ name, checksum, applied_at: new Date().toISOString() }], { must_change: true });
    const undone = await transact(database, [...locks.map(statement), recorded, ...statements.map(statement)]);
    // Another process was faster: verify what it has applied.
    if (undone !== undefined) await missing();
  }
}
