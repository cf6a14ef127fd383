import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { Kysely, SqliteDialect } from 'kysely';
import type { Queries } from '../../src/storage/database.ts';

/** A store in this process: every answer comes in a microtask, so that a run repeats exactly. */
export interface MemoryDatabase {
  queries: Queries;
  /** Past Kysely, for who looks on. */
  all<Row>(sql: string, ...parameters: SQLInputValue[]): Row[];
  close(): void;
}

// As the gateway's own driver does.
function toParameter(value: unknown): SQLInputValue {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  return value === undefined ? null : (value as SQLInputValue);
}

export function openMemoryDatabase(): MemoryDatabase {
  const database = new DatabaseSync(':memory:');
  const prepared = new Map<string, StatementSync>();
  const prepare = (sql: string): StatementSync => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = database.prepare(sql);
      prepared.set(sql, statement);
    }
    return statement;
  };
  const dialect = new SqliteDialect({
    database: {
      prepare: (sql) => {
        const statement = prepare(sql);
        return {
          reader: statement.columns().length > 0,
          all: (parameters) => statement.all(...parameters.map(toParameter)),
          run: (parameters) => statement.run(...parameters.map(toParameter)),
          iterate: (parameters) => statement.iterate(...parameters.map(toParameter)),
        };
      },
      close: () => database.close(),
    },
  });
  return {
    queries: new Kysely({ dialect }),
    all: <Row>(sql: string, ...parameters: SQLInputValue[]) => prepare(sql).all(...parameters) as Row[],
    close: () => database.close(),
  };
}
