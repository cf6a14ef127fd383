import { type Dialect, PostgresDialect } from 'kysely';
import { Client, Pool, types } from 'pg';
import { limits } from '../limits.ts';
import { StoreUnavailable } from './unavailable.ts';

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

/** PostgreSQL, appendix A: read_only_sql_transaction. */
const READ_ONLY = '25006';

/**
 * A connection that does not answer in time is closed: it may be dead without either end having been told, and would be
 * handed out again and again, each time for the whole timeout.
 */
class MortalClient extends Client {
  /** The server only reads, as a standby does that was reached after a failover: another connection may lead to the one that writes. */
  only_reads = false;

  // The driver asks in one way only: by configuration, for a promise.
  override query(...question: unknown[]): never {
    const ask = super.query as (...question: unknown[]) => Promise<unknown>;
    return ask.apply(this, question).catch(async (error: unknown) => {
      // The text of pg's client.js, which has no code for it.
      if (error instanceof Error && error.message === 'Query read timeout') await this.#die();
      if ((error as { code?: unknown }).code === READ_ONLY) this.only_reads = true;
      throw error;
    }) as never;
  }

  /** Resolves when the pool would see that this connection is gone. */
  #die(): Promise<void> {
    const { stream } = this.connection;
    return new Promise((resolve) => {
      if (stream.closed) resolve();
      else stream.once('close', () => resolve()).destroy();
    });
  }
}

/** Kysely on a PostgreSQL pool. `statement_ms_max` 0: no bound. Idle connections that break are replaced without a word to anybody but `onError`. */
export function postgresDialect(url: string, onError: (error: Error) => void, statement_ms_max: number): Dialect {
  const pool = new Pool({
    Client: MortalClient,
    connectionString: url,
    max: limits.database_connections_max,
    connectionTimeoutMillis: limits.database_connect_ms_max,
    statement_timeout: statement_ms_max,
    idle_in_transaction_session_timeout: statement_ms_max,
    // Later than the server's own, which tells more.
    query_timeout: statement_ms_max + Math.min(statement_ms_max, limits.database_connect_ms_max),
    keepAlive: true,
    application_name: 'model-gateway',
    types: parsers,
  });
  pool.on('error', onError);
  // One that breaks while it is in use tells its query; without a listener its event would end the process.
  pool.on('connect', (client) => client.on('error', () => {}));
  // Before the pool looks whether it can be handed out again, and after the end of its transaction.
  pool.on('release', (_error, client) => {
    if (client instanceof MortalClient && client.only_reads) void client.end();
  });
  return new PostgresDialect({
    pool: {
      connect: () =>
        pool.connect().catch((error: Error) => {
          throw new StoreUnavailable(error.message, { cause: error });
        }),
      end: () => pool.end(),
      options: pool.options,
    },
  });
}
