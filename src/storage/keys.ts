import { type Selectable, sql } from 'kysely';
import type { KeyUsage, StoredKey, WindowStarts } from '../accounts/key.ts';
import type { Queries } from './database.ts';
import type { Tables } from './schema.ts';
import { nextNumber } from './sequence.ts';

/** The column's CHECK names the values that TypeScript cannot know. */
function toKey(row: Selectable<Tables['api_keys']>): StoredKey {
  return { ...row, limit_reset: row.limit_reset as StoredKey['limit_reset'] };
}

/** API keys at rest. */
export function keyStore(queries: Queries) {
  return {
    /** Stores a key under the next number. Numbers are never given twice, also after a key was deleted. */
    insert: (key: Omit<StoredKey, 'id' | 'version'>): Promise<StoredKey> =>
      inTransaction(queries, async (tx) => {
        const row = { ...key, id: await nextNumber(tx, 'api_keys'), version: 1 };
        await tx.insertInto('api_keys').values(row).execute();
        return row;
      }),

    findByHash: async (hash: string): Promise<StoredKey | undefined> => {
      const row = await queries.selectFrom('api_keys').selectAll().where('hash', '=', hash).executeTakeFirst();
      return row && toKey(row);
    },

    /** What a key has spent, over all time and since each of the given days. */
    findUsage: async (hash: string, starts: WindowStarts): Promise<KeyUsage> => {
      const sum = (column: 'usage_nano' | 'byok_usage_nano', since: string) =>
        sql<number>`CAST(COALESCE(SUM(CASE WHEN day >= ${since} THEN ${sql.ref(column)} ELSE 0 END), 0) AS BIGINT)`;
      const sums = (column: 'usage_nano' | 'byok_usage_nano') => ({
        total: sum(column, ''),
        daily: sum(column, starts.daily),
        weekly: sum(column, starts.weekly),
        monthly: sum(column, starts.monthly),
      });
      const [usage, byok] = [sums('usage_nano'), sums('byok_usage_nano')];
      const row = await queries
        .selectFrom('usage_days')
        .select([
          usage.total.as('total'),
          usage.daily.as('daily'),
          usage.weekly.as('weekly'),
          usage.monthly.as('monthly'),
          byok.total.as('byok_total'),
          byok.daily.as('byok_daily'),
          byok.weekly.as('byok_weekly'),
          byok.monthly.as('byok_monthly'),
        ])
        .where('scope', '=', 'key')
        .where('scope_id', '=', hash)
        .executeTakeFirstOrThrow();
      return {
        usage: { total: row.total, daily: row.daily, weekly: row.weekly, monthly: row.monthly },
        byok_usage: {
          total: row.byok_total,
          daily: row.byok_daily,
          weekly: row.byok_weekly,
          monthly: row.byok_monthly,
        },
      };
    },
  };
}

export type KeyStore = ReturnType<typeof keyStore>;

/** Runs in the transaction that `queries` already is, or in one of its own. */
function inTransaction<T>(queries: Queries, run: (tx: Queries) => Promise<T>): Promise<T> {
  return queries.isTransaction ? run(queries) : queries.transaction().execute(run);
}
