import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import type { Database } from './database.ts';
import { tables } from './schema.ts';

type Described = Record<string, Record<string, string>>;

/** The actual tables of the database, in the terms of schema.ts. */
async function introspect({ engine, queries }: Database): Promise<Described> {
  const query =
    engine === 'sqlite'
      ? sql<{ table: string; column: string; type: string; nullable: boolean | number }>`
          SELECT m.name AS "table", c.name AS "column", c.type AS "type", c."notnull" = 0 AS nullable
          FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'`
      : sql<{ table: string; column: string; type: string; nullable: boolean | number }>`
          SELECT table_name AS "table", column_name AS "column", data_type AS "type", is_nullable = 'YES' AS nullable
          FROM information_schema.columns WHERE table_schema = current_schema()`;
  const described: Described = {};
  for (const { table, column, type, nullable } of (await query.execute(queries)).rows) {
    if (table === 'schema_migrations') continue;
    described[table] ??= {};
    described[table][column] = `${type.toLowerCase()}${nullable ? ' or null' : ''}`;
  }
  return described;
}

describeStores('the schema', ({ open }) => {
  test('a migrated empty store has exactly the tables and columns of schema.ts', async () => {
    const described: Described = {};
    for (const [table, columns] of Object.entries(tables)) {
      described[table] = {};
      for (const [name, { kind, nullable }] of Object.entries(columns)) {
        described[table][name] = `${kind}${nullable ? ' or null' : ''}`;
      }
    }
    expect(await introspect(await open())).toEqual(described);
  });
});
