import { sql } from 'kysely';
import { limits } from '../limits.ts';
import type { Queries } from './database.ts';

/** What was asked and answered in one call, sealed, and whose call it was. */
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

/** Where a list of contents went on: the last that was seen. */
export type ContentPlace = Pick<LoggedContentRow, 'created_at' | 'id'>;

/** Contents of calls, of workspaces that keep them. */
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
        .limit(limits.logged_sweep_rows_max)
        .execute();
      if (expired.length > 0) await deleteAll(expired.map(({ id }) => id));
      if (expired.length < limits.logged_sweep_rows_max) return;
    }
  };

  /** Deletes the oldest beyond a length; of one workspace, or of all. */
  const sweepSurplus = async (surplus: number, workspace_id?: string): Promise<void> => {
    let left = surplus;
    while (left > 0) {
      const all = queries.selectFrom('logged_contents').select(['id', 'chars']).limit(limits.logged_sweep_rows_max);
      const of =
        workspace_id === undefined
          ? all.orderBy('expires_at')
          : all.where('workspace_id', '=', workspace_id).orderBy('created_at');
      const ids: string[] = [];
      for (const { id, chars } of await of.execute()) {
        if (left <= 0) break;
        left -= chars;
        ids.push(id);
      }
      if (ids.length === 0) return;
      await deleteAll(ids);
    }
  };

  /** The length of all that each workspace has, some rows at a time: one question over all of them would hold up every other. */
  const lengths = async (rows_at_once: number): Promise<Map<string, number>> => {
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
        .offset(rows_at_once - 1)
        .limit(1)
        .executeTakeFirst();
      const some =
        last === undefined
          ? rest
          : rest.where(
              sql<boolean>`(workspace_id, created_at, id) <= (${last.workspace_id}, ${last.created_at}, ${last.id})`,
            );
      const found = await some
        .select(['workspace_id', sql<number>`CAST(SUM(chars) AS BIGINT)`.as('sum')])
        .groupBy('workspace_id')
        .execute();
      for (const { workspace_id: of, sum } of found) sums.set(of, (sums.get(of) ?? 0) + sum);
      after = last;
    } while (after !== undefined);
    return sums;
  };

  return {
    /** Rows that are there already stay. Throws where a workspace is gone. */
    insert: async (rows: readonly LoggedContentRow[]): Promise<void> => {
      await queries
        .insertInto('logged_contents')
        .values(rows.map((row) => ({ ...row, chars: row.sealed.length })))
        .onConflict((conflict) => conflict.column('id').doNothing())
        .execute();
    },

    /** That of an organization, unless it has expired. */
    find: async (id: string, organization_id: string, now: string): Promise<LoggedContentRow | undefined> =>
      queries
        .selectFrom('logged_contents')
        .selectAll()
        .where('id', '=', id)
        .where('organization_id', '=', organization_id)
        .where('expires_at', '>', now)
        .executeTakeFirst(),

    /** Those of a workspace that have not expired, the newest first; from `after` on where a list is gone on with. */
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
      const found = queries
        .selectFrom('logged_contents')
        .selectAll()
        .where('workspace_id', '=', workspace_id)
        .where('created_at', '>=', since)
        .where('expires_at', '>', now)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit);
      if (after === undefined) return found.execute();
      const { created_at, id } = after;
      return found
        .where((eb) =>
          eb.or([eb('created_at', '<', created_at), eb.and([eb('created_at', '=', created_at), eb('id', '<', id)])]),
        )
        .execute();
    },

    /** Deletes what has expired, and the oldest beyond a length: of each workspace, and of all. */
    sweep: async (
      now: string,
      most: { workspace_chars: number; chars: number },
      rows_at_once: number = limits.logged_sum_rows,
    ): Promise<void> => {
      await sweepExpired(now);
      let all = 0;
      for (const [workspace_id, sum] of await lengths(rows_at_once)) {
        await sweepSurplus(sum - most.workspace_chars, workspace_id);
        all += Math.min(sum, most.workspace_chars);
      }
      await sweepSurplus(all - most.chars);
    },
  };
}

export type LoggedContentStore = ReturnType<typeof loggedContentStore>;
