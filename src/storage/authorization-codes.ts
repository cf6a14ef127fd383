import { type Selectable, sql } from 'kysely';
import type { ChallengeMethod, StoredCode } from '../accounts/authorization-code.ts';
import { limits } from '../limits.ts';
import type { LimitReset } from '../schemas/key.ts';
import type { Queries } from './queries.ts';
import type { Tables } from './schema.ts';
import { nextNumber } from './sequence.ts';

/** How long an expired code is kept so that a late exchange is refused with the reason. */
export const AUTHORIZATION_CODE_KEEP_MS = 3_600_000;

/** The stored code; the columns' CHECKs allow only the values that the casts name. */
function toCode(row: Selectable<Tables['authorization_codes']>): StoredCode {
  return {
    ...row,
    code_challenge_method: row.code_challenge_method as ChallengeMethod | null,
    limit_reset: row.limit_reset as LimitReset | null,
    made_by: row.made_by as StoredCode['made_by'],
  };
}

/** Authorization codes, and the applications that requested them. Call writes in the transaction of a change. */
export function authorizationCodeStore(queries: Queries) {
  return {
    /** Throws a unique violation if a code with the same challenge is pending in the organization. */
    insert: async (code: StoredCode): Promise<void> => {
      await queries.insertInto('authorization_codes').values(code).execute();
    },

    /** Deletes ended codes with this challenge, so that it may be used again, and some codes that ended long ago. */
    sweep: async (ended: { organization_id: string; code_challenge: string | null; at: string }): Promise<void> => {
      const { organization_id, code_challenge, at } = ended;
      if (code_challenge !== null) {
        await queries
          .deleteFrom('authorization_codes')
          .where('organization_id', '=', organization_id)
          .where('code_challenge', '=', code_challenge)
          .where('used_at', 'is', null)
          .where(({ eb, or }) =>
            or([eb('expires_at', '<=', at), eb('failures', '>=', limits.authorization_code_failures_max)]),
          )
          .execute();
      }
      const keptUntil = new Date(Date.parse(at) - AUTHORIZATION_CODE_KEEP_MS).toISOString();
      await queries
        .deleteFrom('authorization_codes')
        .where('code_hash', 'in', ({ selectFrom }) =>
          selectFrom('authorization_codes')
            .select('code_hash')
            .where('expires_at', '<=', keptUntil)
            .orderBy('expires_at')
            .orderBy('code_hash')
            .limit(limits.sweep_rows_max),
        )
        .execute();
    },

    /** How many codes of a user are pending. */
    countWaiting: async (of: { organization_id: string; user_id: string | null; at: string }): Promise<number> => {
      const { count } = await queries
        .selectFrom('authorization_codes')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('organization_id', '=', of.organization_id)
        .where('user_id', of.user_id === null ? 'is' : '=', of.user_id)
        .where('used_at', 'is', null)
        .where('expires_at', '>', of.at)
        .executeTakeFirstOrThrow();
      return count;
    },

    find: async (codeHash: string): Promise<StoredCode | undefined> => {
      const row = await queries
        .selectFrom('authorization_codes')
        .selectAll()
        .where('code_hash', '=', codeHash)
        .executeTakeFirst();
      return row && toCode(row);
    },

    /** The code, locked until the transaction ends. */
    lock: async (codeHash: string): Promise<StoredCode | undefined> => {
      const row = await queries
        .updateTable('authorization_codes')
        .set(({ ref }) => ({ failures: ref('failures') }))
        .where('code_hash', '=', codeHash)
        .returningAll()
        .executeTakeFirst();
      return row && toCode(row);
    },

    countFailure: async (codeHash: string): Promise<void> => {
      await queries
        .updateTable('authorization_codes')
        .set(({ eb }) => ({ failures: eb('failures', '+', 1) }))
        .where('code_hash', '=', codeHash)
        .execute();
    },

    /** Deletes the pending codes of a user, and returns them. */
    deleteWaiting: async (of: { organization_id: string; user_id: string }): Promise<StoredCode[]> => {
      const rows = await queries
        .deleteFrom('authorization_codes')
        .where('organization_id', '=', of.organization_id)
        .where('user_id', '=', of.user_id)
        .where('used_at', 'is', null)
        .returningAll()
        .execute();
      return rows.map(toCode);
    },

    use: async (codeHash: string, at: string): Promise<void> => {
      await queries.updateTable('authorization_codes').set({ used_at: at }).where('code_hash', '=', codeHash).execute();
    },

    /** Deletes some applications without pending codes, the oldest first. The app id of their ended codes becomes null. */
    sweepApps: async ({ organization_id, at }: { organization_id: string; at: string }): Promise<void> => {
      const unused = await queries
        .selectFrom('apps')
        .select('id')
        .where('organization_id', '=', organization_id)
        .where(({ exists, not, selectFrom }) =>
          not(
            exists(
              selectFrom('authorization_codes')
                .select('code_hash')
                .whereRef('app_id', '=', 'apps.id')
                .where('used_at', 'is', null)
                .where('expires_at', '>', at),
            ),
          ),
        )
        .orderBy('id')
        .limit(limits.sweep_rows_max)
        .execute();
      if (unused.length === 0) return;
      const ids = unused.map(({ id }) => id);
      await queries.updateTable('authorization_codes').set({ app_id: null }).where('app_id', 'in', ids).execute();
      await queries.deleteFrom('apps').where('id', 'in', ids).execute();
    },

    /** The number of an application; an origin has one number in an organization. Undefined if it is new and the organization has `apps_max`. */
    appOf: async (of: { organization_id: string; origin: string; at: string }): Promise<number | undefined> => {
      const { organization_id, origin, at } = of;
      const known = await queries
        .selectFrom('apps')
        .select('id')
        .where('organization_id', '=', organization_id)
        .where('origin', '=', origin)
        .executeTakeFirst();
      if (known) return known.id;
      const { count } = await queries
        .selectFrom('apps')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('organization_id', '=', organization_id)
        .executeTakeFirstOrThrow();
      if (count >= limits.apps_max) return undefined;
      const id = await nextNumber(queries, 'apps');
      const inserted = await queries
        .insertInto('apps')
        .values({ id, organization_id, origin, created_at: at })
        // If another process has inserted it meanwhile, this returns its number.
        .onConflict((conflict) =>
          conflict.columns(['organization_id', 'origin']).doUpdateSet({ origin: sql`excluded.origin` }),
        )
        .returning('id')
        .executeTakeFirstOrThrow();
      return inserted.id;
    },
  };
}
