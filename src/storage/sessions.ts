import { SIGN_IN_CODE_CREDENTIAL, type StoredSession } from '../accounts/session.ts';
import { limits } from '../limits.ts';
import type { Queries } from './queries.ts';

/** Stored sign-ins to the pages. */
export function sessionStore(queries: Queries) {
  return {
    /** Inserts a session. Deletes some expired sessions, and the user's oldest ones beyond `sessions_per_user_max`. */
    insert: async (session: StoredSession): Promise<void> => {
      const { user_id, created_at } = session;
      await queries
        .deleteFrom('sessions')
        .where('id', 'in', ({ selectFrom }) =>
          selectFrom('sessions')
            .select('id')
            .where('expires_at', '<=', created_at)
            .orderBy('expires_at')
            .orderBy('id')
            .limit(limits.sweep_rows_max),
        )
        .execute();
      const surplus = await queries
        .selectFrom('sessions')
        .select('id')
        .where('user_id', '=', user_id)
        .orderBy('created_at', 'desc')
        .orderBy('id')
        .offset(limits.sessions_per_user_max - 1)
        .limit(limits.sweep_rows_max)
        .execute();
      if (surplus.length > 0) {
        const ids = surplus.map(({ id }) => id);
        await queries.deleteFrom('sessions').where('id', 'in', ids).execute();
      }
      await queries.insertInto('sessions').values(session).execute();
    },

    /** The session of a cookie's secret, current or from before the last rotation, with its user. Undefined if the user is no member any more. */
    find: (tokenHash: string) =>
      queries
        .selectFrom('sessions')
        .innerJoin('users', 'users.id', 'sessions.user_id')
        .innerJoin('organization_members', (join) =>
          join
            .onRef('organization_members.user_id', '=', 'sessions.user_id')
            .onRef('organization_members.organization_id', '=', 'sessions.organization_id'),
        )
        .selectAll('sessions')
        .select(['users.name as user_name', 'users.email as user_email', 'organization_members.role as user_role'])
        .where(({ eb, or }) =>
          or([eb('sessions.token_hash', '=', tokenHash), eb('sessions.previous_hash', '=', tokenHash)]),
        )
        .executeTakeFirst(),

    /** Replaces a session's secret; false if another request has just done so. */
    rotate: async (session: { id: string; token_hash: string; next_hash: string; at: string }): Promise<boolean> => {
      const { numUpdatedRows } = await queries
        .updateTable('sessions')
        .set({ token_hash: session.next_hash, previous_hash: session.token_hash, rotated_at: session.at })
        .where('id', '=', session.id)
        .where('token_hash', '=', session.token_hash)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },

    /** The role of a session's member and the credential that opened it; undefined if the session or the membership has ended. */
    findOpen: async (session: { organization_id: string; user_id: string; id: string; at: string }) => {
      return queries
        .selectFrom('sessions')
        .innerJoin('organization_members', (join) =>
          join
            .onRef('organization_members.user_id', '=', 'sessions.user_id')
            .onRef('organization_members.organization_id', '=', 'sessions.organization_id'),
        )
        .select(['organization_members.role', 'sessions.credential'])
        .where('sessions.id', '=', session.id)
        .where('sessions.organization_id', '=', session.organization_id)
        .where('sessions.user_id', '=', session.user_id)
        .where('sessions.expires_at', '>', session.at)
        .executeTakeFirst();
    },

    /** Whether a session exists and has not expired; if so, locks it until the transaction ends, so that it cannot end before. */
    holdOpen: async ({ id, at }: { id: string; at: string }): Promise<boolean> => {
      const { numUpdatedRows } = await queries
        .updateTable('sessions')
        .set(({ ref }) => ({ user_id: ref('user_id') }))
        .where('id', '=', id)
        .where('expires_at', '>', at)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },

    /** The pending sign-in of a one-time code; undefined if the code is unknown, used or expired. */
    findCode: ({ token_hash, at }: { token_hash: string; at: string }) =>
      queries
        .selectFrom('sessions')
        .select(['id', 'organization_id', 'user_id'])
        .where('token_hash', '=', token_hash)
        .where('credential', '=', SIGN_IN_CODE_CREDENTIAL)
        .where('expires_at', '>', at)
        .executeTakeFirst(),

    /** Deletes all sessions of a user, and returns their ids. */
    deleteOf: async ({ organization_id, user_id }: { organization_id: string; user_id: string }): Promise<string[]> => {
      const ended = await queries
        .deleteFrom('sessions')
        .where('organization_id', '=', organization_id)
        .where('user_id', '=', user_id)
        .returning('id')
        .execute();
      return ended.map(({ id }) => id);
    },

    delete: async (id: string): Promise<boolean> => {
      const { numDeletedRows } = await queries.deleteFrom('sessions').where('id', '=', id).executeTakeFirst();
      return numDeletedRows === 1n;
    },
  };
}
