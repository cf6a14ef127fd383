import { type Dialect, PostgresDialect } from 'kysely';
import { Pool, types } from 'pg';
import { limits } from '../limits.ts';

/** Type ids of pg_type.dat in PostgreSQL's sources. */
const INT8 = 20;
const NUMERIC = 1700;

/** Money and counters are integers that a number holds exactly, or the program stops believing them. */
export function parseInteger(value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`The integer ${value} does not fit a number exactly`);
  return number;
}

const parsers = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === INT8) return parseInteger;
    // SUM(bigint) is numeric: a query that forgets to CAST it would get text here and a number on SQLite.
    if (oid === NUMERIC) {
      return () => {
        throw new Error('A numeric column was read; CAST it to BIGINT');
      };
    }
    return types.getTypeParser(oid, format as 'text');
  },
};

/** Kysely on a PostgreSQL pool. Idle connections that break are replaced without a word to anybody but `onError`. */
export function postgresDialect(url: string, onError: (error: Error) => void): Dialect {
  const pool = new Pool({
    connectionString: url,
    max: limits.database_connections_max,
    connectionTimeoutMillis: limits.database_connect_ms_max,
    statement_timeout: limits.database_statement_ms_max,
    idle_in_transaction_session_timeout: limits.database_statement_ms_max,
    query_timeout: limits.database_statement_ms_max + limits.database_connect_ms_max,
    keepAlive: true,
    application_name: 'model-gateway',
    types: parsers,
  });
  pool.on('error', onError);
  return new PostgresDialect({ pool });
}
