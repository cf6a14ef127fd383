import { sql } from 'kysely';
import type { Database } from './database.ts';

/** The store's clock, milliseconds since 1970: the machine's own, as the caller has it, where the store is on it. */
export function storeNow(engine: Database['engine'], at: number) {
  return engine === 'sqlite'
    ? sql<number>`CAST(${at} AS BIGINT)`
    : sql<number>`CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)`;
}
