import { type Dialect, PostgresDialect, type PostgresPoolClient } from 'kysely';
import { types } from 'pg';
import { limits } from '../limits.ts';
import { type MortalClient, PostgresPool } from './postgres-pool.ts';
import type { StoreReach } from './store-reach.ts';
import { inTime, isUnavailable, StoreUnavailable } from './unavailable.ts';

/** Type ids of pg_type.dat in PostgreSQL's sources. */
const INT8 = 20;
const NUMERIC = 1700;

/** Parses money and counters. Throws if a number cannot hold the integer exactly. */
export function parseInteger(value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`The integer ${value} does not fit a number exactly`);
  return number;
}

const parsers = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === INT8) return parseInteger;
    // SUM(bigint) is numeric: without a CAST the result would be text here and a number on SQLite.
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
  /** The URL leads to a pooler in transaction mode, which refuses session parameters. */
  is_pooled: boolean;
  onConnectionLost(error: Error): void;
  onAnswer(): void;
}

/** The connections of one process to a PostgreSQL server. Idle ones that break are replaced and reported to `onConnectionLost` only. */
export function openPool(url: string, options: PostgresOptions): PostgresPool {
  const { statement_ms_max, is_pooled, connections_max, onConnectionLost, onAnswer } = options;
  const session = { statement_timeout: statement_ms_max, idle_in_transaction_session_timeout: statement_ms_max };
  return new PostgresPool({
    client: {
      connectionString: url,
      connectionTimeoutMillis: limits.database_connect_ms_max,
      ...(is_pooled ? {} : session),
      // Later than the server's timeout, whose error has more details.
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

/** Kysely on a pool, for queries without a time limit of their own. */
export function postgresDialect(pool: PostgresPool): Dialect {
  return new PostgresDialect({
    pool: { connect: () => pool.connect(limits.database_connect_ms_max), end: () => pool.end(), options: {} },
  });
}

/**
 * Kysely on the same pool for reads that requests wait for: a connection and its statements have `store_read_ms_max` in all,
 * and while the store does not answer, none is requested. Destroying it leaves the pool open.
 */
export function promptDialect(pool: PostgresPool, reach: StoreReach): Dialect {
  return new PostgresDialect({
    pool: {
      async connect() {
        if (reach.is_away) throw new StoreUnavailable('The store does not answer');
        const untilMs = performance.now() + limits.store_read_ms_max;
        try {
          return new PromptClient(await pool.connect(limits.store_read_ms_max), untilMs, reach);
        } catch (error) {
          reach.missed();
          throw error;
        }
      },
      end: async () => {},
      options: {},
    },
  });
}

/**
 * A connection lent to a request. The request gives up when its time is over; the connection returns to the pool when its
 * statement is done, so that a server that is only slow loses none. If the store does not answer at all, it is closed.
 */
class PromptClient implements PostgresPoolClient {
  readonly #client: MortalClient;
  readonly #untilMs: number;
  readonly #reach: StoreReach;
  #running: Promise<unknown> = Promise.resolve();

  constructor(client: MortalClient, untilMs: number, reach: StoreReach) {
    this.#client = client;
    this.#untilMs = untilMs;
    this.#reach = reach;
  }

  // Kysely's type has a second overload, for cursors, which nothing here uses.
  readonly query = (async (text: string, values: readonly unknown[]) => {
    const queryTimeout = limits.database_connect_ms_max;
    const running = this.#client.run({ text, values: [...values], query_timeout: queryTimeout });
    this.#running = running.catch(() => undefined);
    try {
      return await inTime(running, Math.max(1, this.#untilMs - performance.now()));
    } catch (error) {
      if (isUnavailable(error)) this.#reach.missed();
      if (this.#reach.is_away) void this.#client.die();
      throw error;
    }
  }) as PostgresPoolClient['query'];

  readonly release = (): void => {
    void this.#running.then(() => this.#client.release());
  };
}
