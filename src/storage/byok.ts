import type { StoredByok } from '../accounts/byok.ts';
import type { Page, Paged } from '../schemas/page.ts';
import type { Queries } from './queries.ts';
import { nextNumber } from './sequence.ts';

/** Names a credential of an organization; those of other organizations do not exist for it. */
export interface ByokId {
  organization_id: string;
  id: string;
}

/** The credentials to list. A filter that is not set matches all. */
export interface ByokFilter {
  organization_id: string;
  workspace_id?: string | undefined;
  provider?: string | undefined;
}

type Settings = Pick<
  StoredByok,
  | 'name'
  | 'disabled'
  | 'is_fallback'
  | 'allow_shared_fallback'
  | 'sort_order'
  | 'allowed_models'
  | 'allowed_api_key_hashes'
  | 'allowed_user_ids'
  | 'declared_zdr'
  | 'declared_region'
  | 'is_byok_only'
>;

const json = (list: string[] | null) => (list === null ? null : JSON.stringify(list));

function written<T extends Partial<Settings>>(settings: T) {
  const { allowed_models, allowed_api_key_hashes, allowed_user_ids, ...rest } = settings;
  return {
    ...rest,
    ...(allowed_models === undefined ? {} : { allowed_models: json(allowed_models) }),
    ...(allowed_api_key_hashes === undefined ? {} : { allowed_api_key_hashes: json(allowed_api_key_hashes) }),
    ...(allowed_user_ids === undefined ? {} : { allowed_user_ids: json(allowed_user_ids) }),
  };
}

/** Sealed credentials of organizations' own provider accounts. */
export function byokStore(queries: Queries) {
  const one = ({ organization_id, id }: ByokId) =>
    queries.selectFrom('byok_credentials').where('organization_id', '=', organization_id).where('id', '=', id);
  return {
    insert: async (credential: Omit<StoredByok, 'seq' | 'version'>): Promise<StoredByok> => {
      const stored = { ...credential, seq: await nextNumber(queries, 'byok_credentials'), version: 1 };
      const { allowed_models, allowed_api_key_hashes, allowed_user_ids } = stored;
      await queries
        .insertInto('byok_credentials')
        .values({
          ...stored,
          allowed_models: json(allowed_models),
          allowed_api_key_hashes: json(allowed_api_key_hashes),
          allowed_user_ids: json(allowed_user_ids),
        })
        .execute();
      return stored;
    },

    find: (which: ByokId): Promise<StoredByok | undefined> => one(which).selectAll().executeTakeFirst(),

    /** The credential, locked until the transaction ends. */
    lock: ({ organization_id, id }: ByokId): Promise<StoredByok | undefined> =>
      queries
        .updateTable('byok_credentials')
        .set(({ ref }) => ({ version: ref('version') }))
        .where('organization_id', '=', organization_id)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst(),

    update: (
      { organization_id, id }: ByokId,
      change: Partial<Settings & Pick<StoredByok, 'sealed' | 'label'>> & { updated_at: string },
    ): Promise<StoredByok> =>
      queries
        .updateTable('byok_credentials')
        .set(written(change))
        .set(({ eb }) => ({ version: eb('version', '+', 1) }))
        .where('organization_id', '=', organization_id)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow(),

    delete: async ({ organization_id, id }: ByokId): Promise<void> => {
      await queries
        .deleteFrom('byok_credentials')
        .where('organization_id', '=', organization_id)
        .where('id', '=', id)
        .execute();
    },

    /** The position after the last credential of a workspace for a provider. */
    nextSortOrder: async ({ workspace_id, provider }: { workspace_id: string; provider: string }): Promise<number> => {
      const { last } = await queries
        .selectFrom('byok_credentials')
        .where('workspace_id', '=', workspace_id)
        .where('provider', '=', provider)
        .select(({ fn, val }) => fn.coalesce(fn.max('sort_order'), val(-1)).as('last'))
        .executeTakeFirstOrThrow();
      return Number(last) + 1;
    },

    count: async (workspaceId: string): Promise<number> => {
      const { count } = await queries
        .selectFrom('byok_credentials')
        .where('workspace_id', '=', workspaceId)
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow();
      return Number(count);
    },

    /** The credentials that requests of a workspace may use. */
    findEnabled: (workspaceId: string): Promise<StoredByok[]> =>
      queries
        .selectFrom('byok_credentials')
        .where('workspace_id', '=', workspaceId)
        .where('disabled', '=', false)
        .selectAll()
        .orderBy('sort_order')
        .orderBy('seq')
        .execute(),

    /** The credentials that allow a user by name. */
    listNaming: async (who: { organization_id: string; user_id: string }): Promise<{ id: string }[]> => {
      const rows = await queries
        .selectFrom('byok_credentials')
        .select(['id', 'allowed_user_ids'])
        .where('organization_id', '=', who.organization_id)
        .where('allowed_user_ids', 'is not', null)
        .orderBy('id')
        .execute();
      return rows.filter(({ allowed_user_ids }) => allowed_user_ids?.includes(who.user_id));
    },

    listBy: async (filter: ByokFilter, page: Page): Promise<Paged<StoredByok>> => {
      let query = queries.selectFrom('byok_credentials').where('organization_id', '=', filter.organization_id);
      for (const column of ['workspace_id', 'provider'] as const) {
        const value = filter[column];
        if (value !== undefined) query = query.where(column, '=', value);
      }
      const { count } = await query.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow();
      const data = await query.selectAll().orderBy('seq').limit(page.limit).offset(page.offset).execute();
      return { total_count: count, data };
    },
  };
}

export type ByokStore = ReturnType<typeof byokStore>;
