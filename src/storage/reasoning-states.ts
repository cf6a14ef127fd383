import { limits } from '../limits.ts';
import type { Queries } from './database.ts';

/** A turn's state at rest, sealed. */
interface StoredState {
  id: string;
  sealed: string;
  expires_at: string;
}

/** What clients drop of their conversations, for a while. */
export function reasoningStateStore(queries: Queries) {
  const sweepWhere = (before: string, compare: '<=' | '<') =>
    queries
      .deleteFrom('reasoning_states')
      .where('id', 'in', ({ selectFrom }) =>
        selectFrom('reasoning_states')
          .select('id')
          .where('expires_at', compare, before)
          .orderBy('expires_at')
          .limit(limits.turn_sweep_rows_max),
      )
      .execute();

  return {
    /** A state that is there already is replaced. */
    insert: async (rows: readonly StoredState[]): Promise<void> => {
      await queries
        .insertInto('reasoning_states')
        .values([...rows])
        .onConflict((conflict) =>
          conflict.column('id').doUpdateSet(({ ref }) => ({
            sealed: ref('excluded.sealed'),
            expires_at: ref('excluded.expires_at'),
          })),
        )
        .execute();
    },

    /** Those of the ids that are there and have not expired. */
    findMany: (ids: readonly string[], now: string): Promise<{ id: string; sealed: string }[]> =>
      queries
        .selectFrom('reasoning_states')
        .select(['id', 'sealed'])
        .where('id', 'in', [...ids])
        .where('expires_at', '>', now)
        .execute(),

    /** Deletes what has expired, and the oldest beyond a number; not more than some at a time. */
    sweep: async (now: string, rows_max: number): Promise<void> => {
      await sweepWhere(now, '<=');
      const surplus = await queries
        .selectFrom('reasoning_states')
        .select('expires_at')
        .orderBy('expires_at', 'desc')
        .offset(rows_max - 1)
        .limit(1)
        .executeTakeFirst();
      if (surplus) await sweepWhere(surplus.expires_at, '<');
    },
  };
}
