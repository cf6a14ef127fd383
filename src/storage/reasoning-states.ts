import { sql } from 'kysely';
import type { Queries } from './queries.ts';

const TURN_SWEEP_ROWS_MAX = 10_000;

/** The stored, sealed state of a turn. */
interface StoredState {
  id: string;
  owner: string;
  sealed: string;
  expires_at: string;
}

/** Reasoning state that clients do not send back, kept for a while. */
export function reasoningStateStore(queries: Queries) {
  const sweepWhere = (before: string, compare: '<=' | '<') =>
    queries
      .deleteFrom('reasoning_states')
      .where('id', 'in', ({ selectFrom }) =>
        selectFrom('reasoning_states')
          .select('id')
          .where('expires_at', compare, before)
          .orderBy('expires_at')
          .limit(TURN_SWEEP_ROWS_MAX),
      )
      .execute();

  /** Deletes the oldest states beyond a total length. */
  const sweepChars = async (charsMax: number): Promise<void> => {
    const { sum } = await queries
      .selectFrom('reasoning_states')
      .select(sql<number | null>`CAST(SUM(chars) AS BIGINT)`.as('sum'))
      .executeTakeFirstOrThrow();
    let surplus = (sum ?? 0) - charsMax;
    if (surplus <= 0) return;
    const oldest = await queries
      .selectFrom('reasoning_states')
      .select(['expires_at', 'chars'])
      .orderBy('expires_at')
      .limit(TURN_SWEEP_ROWS_MAX)
      .execute();
    let last: string | undefined;
    for (const { expires_at, chars } of oldest) {
      if (surplus <= 0) break;
      surplus -= chars;
      last = expires_at;
    }
    if (last !== undefined) await sweepWhere(last, '<=');
  };

  return {
    /** Replaces states that exist already. */
    insert: async (rows: readonly StoredState[]): Promise<void> => {
      await queries
        .insertInto('reasoning_states')
        .values(rows.map((row) => ({ ...row, chars: row.sealed.length })))
        .onConflict((conflict) =>
          conflict.column('id').doUpdateSet(({ ref }) => ({
            sealed: ref('excluded.sealed'),
            chars: ref('excluded.chars'),
            expires_at: ref('excluded.expires_at'),
          })),
        )
        .execute();
    },

    /** The states with these ids that exist and have not expired. */
    findMany: (ids: readonly string[], now: string): Promise<{ id: string; sealed: string }[]> =>
      queries
        .selectFrom('reasoning_states')
        .select(['id', 'sealed'])
        .where('id', 'in', [...ids])
        .where('expires_at', '>', now)
        .execute(),

    /** Deletes all states of an owner. */
    deleteBy: async (owner: string): Promise<void> => {
      await queries.deleteFrom('reasoning_states').where('owner', '=', owner).execute();
    },

    /** Deletes what has expired, and the oldest beyond a number and a total length; some rows at a time. */
    sweep: async (now: string, most: { rows: number; chars: number }): Promise<void> => {
      await sweepWhere(now, '<=');
      const surplus = await queries
        .selectFrom('reasoning_states')
        .select('expires_at')
        .orderBy('expires_at', 'desc')
        .offset(most.rows - 1)
        .limit(1)
        .executeTakeFirst();
      if (surplus) await sweepWhere(surplus.expires_at, '<');
      await sweepChars(most.chars);
    },
  };
}
