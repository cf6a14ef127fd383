import { type Dialect, PostgresDialect, type PostgresPoolClient } from 'kysely';
import { types } from 'pg';
import { limits } from '../limits.ts';
import { PostgresPool } from './postgres-pool.ts';
import type { StoreReach } from './store-reach.ts';
import { isUnavailable, StoreUnavailable } from './unavailable.ts';

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

export interface PostgresOptions {
  /** 0: no bound. */
  statement_ms_max: number;
  connections_max: number;
  /** A pooler stands between, which hands servers out by the transaction: it refuses what is said of a session at its start. */
  is_pooled: boolean;
  onConnectionLost(error: Error): void;
  onAnswer(): void;
}

/** The connections of one process to a PostgreSQL server. Idle ones that break are replaced without a word to anybody but `onConnectionLost`. */
export function openPool(url: string, options: PostgresOptions): PostgresPool {
  const { statement_ms_max, is_pooled, connections_max, onConnectionLost, onAnswer } = options;
  const session = { statement_timeout: statement_ms_max, idle_in_transaction_session_timeout: statement_ms_max };
  return new PostgresPool({
    client: {
      connectionString: url,
      connectionTimeoutMillis: limits.database_connect_ms_max,
      ...(is_pooled ? {} : session),
      // Later than the server's own, which tells more.
      query_timeout: statement_ms_max + Math.min(statement_ms_max, limits.database_connect_ms_max),
      keepAlive: true,
      application_name: 'model-gateway',
      types: parsers,
    },
    connections_max,
    onConnectionLost,
    onAnswer,
  });
}

/** Kysely on a pool, for everything that may take its time. */
export function postgresDialect(pool: PostgresPool): Dialect {
  return new PostgresDialect({
    pool: { connect: () => pool.connect(limits.database_connect_ms_max), end: () => pool.end(), options: {} },
  });
}

/**
 * Kysely on the same pool for what requests wait for: each statement has `store_read_ms_max`, the wait for a connection
 * included, and none is sent while the store does not answer. Its end leaves the pool open.
 */
export function promptDialect(pool: PostgresPool, reach: StoreReach): Dialect {
  return new PostgresDialect({
    pool: {
      async connect() {
        if (reach.is_away) throw new StoreUnavailable('The store does not answer');
        const until_ms = performance.now() + limits.store_read_ms_max;
        const client = await missing(reach, pool.connect(limits.store_read_ms_max, true));
        return {
          query: <Row>(text: string, values: readonly unknown[]) => {
            const query_timeout = Math.max(1, until_ms - performance.now());
            const question = { text, values: [...values], query_timeout };
            return missing(reach, (client as { query(question: object): Promise<QueryResult<Row>> }).query(question));
          },
          release: client.release,
        } as unknown as PostgresPoolClient;
      },
      end: async () => {},
      options: {},
    },
  });
}

type QueryResult<Row> = { command: 'SELECT'; rowCount: number; rows: Row[] };

/** A store that does not answer is one that the next requests need not ask. */
async function missing<T>(reach: StoreReach, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isUnavailable(error)) reach.missed();
    throw error;
  }
}
