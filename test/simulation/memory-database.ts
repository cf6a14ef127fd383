import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { stepsOf } from '../../src/storage/bulk.ts';
import type { Queries } from '../../src/storage/database.ts';
import { DATABASE_STATEMENTS_MAX } from '../../src/storage/sqlite-driver.ts';
import { SqliteStatements } from '../../src/storage/sqlite-statements.js';

/** A store in this process: every answer arrives in a microtask, so that a run repeats exactly. */
export interface MemoryDatabase {
  queries: Queries;
  /** Bypasses Kysely, for observers. */
  all<Row>(sql: string, ...parameters: SQLInputValue[]): Row[];
  close(): void;
}

/** Does on one connection what the thread does for the gateway's own driver. */
function connectionTo(statements: SqliteStatements): DatabaseConnection {
  return {
    executeQuery: async (query) => {
      const steps = stepsOf(query);
      if (steps !== undefined) return { rows: statements.transact(steps) as never[] };
      const { rows, changes } = statements.query(query.sql, query.parameters as SQLInputValue[]);
      return { rows: rows as never[], numAffectedRows: BigInt(changes ?? 0) };
    },
    streamQuery() {
      throw new Error('Nothing is streamed');
    },
  };
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
  const connection = connectionTo(new SqliteStatements(database, DATABASE_STATEMENTS_MAX));
  const run = async (sql: string) => void (await connection.executeQuery(CompiledQuery.raw(sql)));
  const driver: Driver = {
    init: async () => {},
    acquireConnection: async () => connection,
    beginTransaction: () => run('BEGIN'),
    commitTransaction: () => run('COMMIT'),
    rollbackTransaction: () => run('ROLLBACK'),
    releaseConnection: async () => {},
    destroy: async () => database.close(),
  };
  const dialect: Dialect = {
    createDriver: () => driver,
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => Object.assign(new SqliteAdapter(), { takes_whole_transactions: true }),
    createIntrospector: (queries) => new SqliteIntrospector(queries),
  };
  return {
    queries: new Kysely({ dialect }),
    all: <Row>(sql: string, ...parameters: SQLInputValue[]) => prepare(sql).all(...parameters) as Row[],
    close: () => database.close(),
  };
}
