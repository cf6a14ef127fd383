import { sql } from 'kysely';
import type { Queries } from './queries.ts';

const STORED_RESPONSE_SWEEP_ROWS_MAX = 1_000;

/** A stored, sealed response. */
export interface StoredResponseRow {
  id: string;
  workspace_id: string;
  sealed: string;
  expires_at: string;
}

/** Responses with `store: true`, of workspaces. */
export function storedResponseStore(queries: Queries) {
  /** Deletes some rows at a time, so that no statement blocks others for long. */
  const sweepExpired = async (now: string): Promise<void> => {
    for (;;) {
      const { numDeletedRows } = await queries
        .deleteFrom('stored_responses')
        .where('id', 'in', ({ selectFrom }) =>
          selectFrom('stored_responses')
            .select('id')
            .where('expires_at', '<=', now)
            .orderBy('expires_at')
            .limit(STORED_RESPONSE_SWEEP_ROWS_MAX),
        )
        .executeTakeFirst();
      if (numDeletedRows < BigInt(STORED_RESPONSE_SWEEP_ROWS_MAX)) return;
    }
  };

  /** Deletes the oldest responses beyond a total length. */
  const sweepChars = async (charsMax: number): Promise<void> => {
    const { sum } = await queries
      .selectFrom('stored_responses')
      .select(sql<number | null>`CAST(SUM(chars) AS BIGINT)`.as('sum'))
      .executeTakeFirstOrThrow();
    let surplus = (sum ?? 0) - charsMax;
    while (surplus > 0) {
      const oldest = await queries
        .selectFrom('stored_responses')
        .select(['id', 'chars'])
        .orderBy('expires_at')
        .limit(STORED_RESPONSE_SWEEP_ROWS_MAX)
        .execute();
      const ids: string[] = [];
      for (const { id, chars } of oldest) {
        if (surplus <= 0) break;
        surplus -= chars;
        ids.push(id);
      }
      if (ids.length === 0) return;
      await queries.deleteFrom('stored_responses').where('id', 'in', ids).execute();
    }
  };

  return {
    /** Throws if its workspace does not exist any more. */
    insert: async (row: StoredResponseRow): Promise<void> => {
      await queries
        .insertInto('stored_responses')
        .values({ ...row, chars: row.sealed.length })
        .execute();
    },

    /** The sealed response of a workspace, unless it has expired. */
    find: async (id: string, workspaceId: string, now: string): Promise<string | undefined> => {
      const row = await queries
        .selectFrom('stored_responses')
        .select('sealed')
        .where('id', '=', id)
        .where('workspace_id', '=', workspaceId)
        .where('expires_at', '>', now)
        .executeTakeFirst();
      return row?.sealed;
    },

    /** Deletes a response. False if there is none, or if it has expired. */
    delete: async (id: string, workspaceId: string, now: string): Promise<boolean> => {
      const { numDeletedRows } = await queries
        .deleteFrom('stored_responses')
        .where('id', '=', id)
        .where('workspace_id', '=', workspaceId)
        .where('expires_at', '>', now)
        .executeTakeFirst();
      return numDeletedRows > 0n;
    },

    /** Deletes what has expired, and the oldest responses beyond a total length. */
    sweep: async (now: string, charsMax: number): Promise<void> => {
      await sweepExpired(now);
      await sweepChars(charsMax);
    },
  };
}

export type StoredResponseStore = ReturnType<typeof storedResponseStore>;
