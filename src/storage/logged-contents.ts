import { sql } from 'kysely';
import type { Queries } from './queries.ts';

const LOGGED_SWEEP_ROWS_MAX = 1_000;
/** Rows whose lengths are added up in one query. */
const LOGGED_SUM_ROWS = 20_000;

/** The sealed request and answer of one call, and its owners. */
export interface LoggedContentRow {
  id: string;
  organization_id: string;
  workspace_id: string;
  key_hash: string;
  user_id: string | null;
  created_at: string;
  sealed: string;
  expires_at: string;
}

/** The position in a list of contents: its last row. */
export type ContentPlace = Pick<LoggedContentRow, 'created_at' | 'id'>;

/** Contents of calls, for workspaces that log them. */
export function loggedContentStore(queries: Queries) {
  const deleteAll = async (ids: readonly string[]): Promise<void> => {
    await queries
      .deleteFrom('logged_contents')
      .where('id', 'in', [...ids])
      .execute();
  };

  const sweepExpired = async (now: string): Promise<void> => {
    for (;;) {
      const expired = await queries
        .selectFrom('logged_contents')
        .select('id')
        .where('expires_at', '<=', now)
        .orderBy('expires_at')
        .limit(LOGGED_SWEEP_ROWS_MAX)
        .execute();
      if (expired.length > 0) await deleteAll(expired.map(({ id }) => id));
      if (expired.length < LOGGED_SWEEP_ROWS_MAX) return;
    }
  };

  /** Deletes the oldest contents, of one workspace or of all, until `surplus` characters are deleted. */
  const sweepSurplus = async (surplus: number, workspaceId?: string): Promise<void> => {
    let left = surplus;
    while (left > 0) {
      const all = queries.selectFrom('logged_contents').select(['id', 'chars']).limit(LOGGED_SWEEP_ROWS_MAX);
      const oldest =
        workspaceId === undefined
          ? all.orderBy('expires_at')
          : all.where('workspace_id', '=', workspaceId).orderBy('created_at');
      const ids: string[] = [];
      for (const { id, chars } of await oldest.execute()) {
        if (left <= 0) break;
        left -= chars;
        ids.push(id);
      }
      if (ids.length === 0) return;
      await deleteAll(ids);
    }
  };

  /** The total length of each workspace's contents, `rowsAtOnce` rows at a time: one query over all would block others for long. */
  const lengths = async (rowsAtOnce: number): Promise<Map<string, number>> => {
    const sums = new Map<string, number>();
    let after: (ContentPlace & { workspace_id: string }) | undefined;
    do {
      const { workspace_id = '', created_at = '', id = '' } = after ?? {};
      const rest = queries
        .selectFrom('logged_contents')
        .where(sql<boolean>`(workspace_id, created_at, id) > (${workspace_id}, ${created_at}, ${id})`);
      const last = await rest
        .select(['workspace_id', 'created_at', 'id'])
        .orderBy('workspace_id')
        .orderBy('created_at')
        .orderBy('id')
        .offset(rowsAtOnce - 1)
        .limit(1)
        .executeTakeFirst();
      const some =
        last === undefined
          ? rest
          : rest.where(
              sql<boolean>`(workspace_id, created_at, id) <= (${last.workspace_id}, ${last.created_at}, ${last.id})`,
            );
      const rows = await some
        .select(['workspace_id', sql<number>`CAST(SUM(chars) AS BIGINT)`.as('sum')])
        .groupBy('workspace_id')
        .execute();
      for (const { workspace_id: workspace, sum } of rows) sums.set(workspace, (sums.get(workspace) ?? 0) + sum);
      after = last;
    } while (after !== undefined);
    return sums;
  };

  return {
    /** Rows that exist already are kept. Throws if a workspace does not exist any more. */
    insert: async (rows: readonly LoggedContentRow[]): Promise<void> => {
      await queries
        .insertInto('logged_contents')
        .values(rows.map((row) => ({ ...row, chars: row.sealed.length })))
        .onConflict((conflict) => conflict.column('id').doNothing())
        .execute();
    },

    /** The content of an organization's call, unless it has expired. */
    find: async (id: string, organizationId: string, now: string): Promise<LoggedContentRow | undefined> =>
      queries
        .selectFrom('logged_contents')
        .selectAll()
        .where('id', '=', id)
        .where('organization_id', '=', organizationId)
        .where('expires_at', '>', now)
        .executeTakeFirst(),

    /** The contents of a workspace that have not expired, the newest first; from `after` on for a later page. */
    list: async ({
      workspace_id,
      since,
      now,
      limit,
      after,
    }: {
      workspace_id: string;
      since: string;
      now: string;
      limit: number;
      after?: ContentPlace | undefined;
    }): Promise<LoggedContentRow[]> => {
      const query = queries
        .selectFrom('logged_contents')
        .selectAll()
        .where('workspace_id', '=', workspace_id)
        .where('created_at', '>=', since)
        .where('expires_at', '>', now)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit);
      if (after === undefined) return query.execute();
      const { created_at, id } = after;
      return query
        .where((eb) =>
          eb.or([eb('created_at', '<', created_at), eb.and([eb('created_at', '=', created_at), eb('id', '<', id)])]),
        )
        .execute();
    },

    /** Deletes what has expired, and the oldest contents beyond a length: of each workspace, and of all. */
    sweep: async (
      now: string,
      most: { workspace_chars: number; chars: number },
      rowsAtOnce: number = LOGGED_SUM_ROWS,
    ): Promise<void> => {
      await sweepExpired(now);
      let all = 0;
      for (const [workspaceId, sum] of await lengths(rowsAtOnce)) {
        await sweepSurplus(sum - most.workspace_chars, workspaceId);
        all += Math.min(sum, most.workspace_chars);
      }
      await sweepSurplus(all - most.chars);
    },
  };
}

export type LoggedContentStore = ReturnType<typeof loggedContentStore>;
