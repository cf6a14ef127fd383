import { sql } from 'kysely';
import type { Database } from './database.ts';

/** The store's clock as SQL, milliseconds since 1970. On the embedded store it is `at`, the machine's time. */
export function storeNow(engine: Database['engine'], at: number) {
  return engine === 'sqlite'
    ? sql<number>`CAST(${at} AS BIGINT)`
    : sql<number>`CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)`;
}
