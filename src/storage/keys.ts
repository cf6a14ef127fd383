import { type Selectable, sql } from 'kysely';
import { type KeyUsage, type StoredKey, UNUSED, type WindowStarts } from '../accounts/key.ts';
import { type KeySecrets, NEVER_ROTATED } from '../accounts/key-secrets.ts';
import { limits } from '../limits.ts';
import { append } from '../schemas/append.ts';
import type { Page } from '../schemas/page.ts';
import { budgetStore } from './budgets.ts';
import { portionsOf } from './portions.ts';
import type { Queries } from './queries.ts';
import type { Tables } from './schema.ts';
import { nextNumber } from './sequence.ts';
import { settledOf } from './settled.ts';

/** The stored key; the columns' CHECKs allow only the values of the casts. */
export function toKey(row: Selectable<Tables['api_keys']>): StoredKey {
  return {
    ...row,
    limit_reset: row.limit_reset as StoredKey['limit_reset'],
    budget_mode: row.budget_mode as StoredKey['budget_mode'],
    made_by: row.made_by as StoredKey['made_by'],
  };
}

/** Names a key of an organization; those of other organizations do not exist for it. */
export interface KeyId {
  organization_id: string;
  hash: string;
}

/** The keys to list. A filter that is not set matches all. */
export interface KeyFilter {
  organization_id: string;
  workspace_id?: string | undefined;
  is_management?: boolean | undefined;
  disabled?: boolean | undefined;
  creator_user_id?: string | undefined;
}

/** A key to insert. Without `budget_mode`, the mode is that of the gateway's settings. */
export type NewKey = Omit<
  StoredKey,
  'id' | 'version' | 'budget_mode' | 'parent_hash' | 'made_by' | 'external_user' | keyof typeof NEVER_ROTATED
> &
  Partial<Pick<StoredKey, 'budget_mode' | 'parent_hash' | 'made_by' | 'external_user'>>;

/** The changeable fields of a key. */
export type KeyChange = { updated_at: string } & Partial<
  Pick<StoredKey, 'name' | 'disabled' | 'limit_nano' | 'limit_reset' | 'include_byok_in_limit' | 'budget_mode'> &
    Omit<KeySecrets, 'hash'>
>;

/** Stored API keys. */
export function keyStore(queries: Queries) {
  return {
    /** Inserts a key with the next number. Numbers are never reused, not even those of deleted keys. */
    insert: (key: NewKey): Promise<StoredKey> =>
      inTransaction(queries, async (tx) => {
        const unset = { budget_mode: null, parent_hash: null, made_by: null, external_user: null };
        const row = { ...NEVER_ROTATED, ...unset, ...key, id: await nextNumber(tx, 'api_keys'), version: 1 };
        await tx.insertInto('api_keys').values(row).execute();
        await insertAncestors(tx, row);
        await budgetStore(tx).keepKey(row, row.created_at);
        return row;
      }),

    findByHash: async (hash: string): Promise<StoredKey | undefined> => {
      const row = await queries.selectFrom('api_keys').selectAll().where('hash', '=', hash).executeTakeFirst();
      return row && toKey(row);
    },

    /** The chain of keys that a key was made with, the nearest first. */
    findAncestors: async (hash: string): Promise<StoredKey[]> => {
      const rows = await queries
        .selectFrom('api_key_ancestors as a')
        .innerJoin('api_keys as k', 'k.hash', 'a.ancestor_hash')
        .selectAll('k')
        .where('a.key_hash', '=', hash)
        // A key's number is above its parent's.
        .orderBy('k.id', 'desc')
        .execute();
      return rows.map(toKey);
    },

    /** The keys that were made with these keys, directly or not, without these keys, the oldest first. */
    findDescendants: async (hashes: readonly string[]): Promise<StoredKey[]> => {
      const descendants = new Map<string, StoredKey>();
      for (const chunk of portionsOf(hashes)) {
        const rows = await queries
          .selectFrom('api_key_ancestors as a')
          .innerJoin('api_keys as k', 'k.hash', 'a.key_hash')
          .selectAll('k')
          .where('a.ancestor_hash', 'in', chunk)
          .execute();
        for (const row of rows) descendants.set(row.hash, toKey(row));
      }
      for (const hash of hashes) descendants.delete(hash);
      return [...descendants.values()].sort((a, b) => a.id - b.id);
    },

    countDescendants: async (hash: string): Promise<number> => {
      const { count } = await queries
        .selectFrom('api_key_ancestors as a')
        .innerJoin('api_keys as k', 'k.hash', 'a.key_hash')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('a.ancestor_hash', '=', hash)
        .executeTakeFirstOrThrow();
      return count;
    },

    /** How many keys of a workspace a member made in its sessions. */
    countOfSessions: async (whose: {
      organization_id: string;
      workspace_id: string;
      user_id: string;
    }): Promise<number> => {
      const { count } = await queries
        .selectFrom('api_keys')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('organization_id', '=', whose.organization_id)
        .where('creator_user_id', '=', whose.user_id)
        .where('workspace_id', '=', whose.workspace_id)
        .where('made_by', '=', 'session')
        .executeTakeFirstOrThrow();
      return count;
    },

    /** The key, locked until the transaction ends. */
    lock: async ({ organization_id, hash }: KeyId): Promise<StoredKey | undefined> => {
      const row = await queries
        .updateTable('api_keys')
        .set(({ ref }) => ({ version: ref('version') }))
        .where('organization_id', '=', organization_id)
        .where('hash', '=', hash)
        .returningAll()
        .executeTakeFirst();
      return row && toKey(row);
    },

    /** The keys of a workspace, each locked as by `lock`, in the order of their hashes. */
    lockAll: async (which: { organization_id: string; workspace_id: string }): Promise<StoredKey[]> => {
      const rows = await queries
        .updateTable('api_keys')
        .set(({ ref }) => ({ version: ref('version') }))
        .where('organization_id', '=', which.organization_id)
        .where('workspace_id', '=', which.workspace_id)
        .returningAll()
        .execute();
      return rows.map(toKey).sort((a, b) => (a.hash < b.hash ? -1 : 1));
    },

    /** The keys of a user, management keys too, each locked as by `lock`, in the order of their hashes. */
    lockOf: async (whose: { organization_id: string; user_id: string }): Promise<StoredKey[]> => {
      const rows = await queries
        .updateTable('api_keys')
        .set(({ ref }) => ({ version: ref('version') }))
        .where('organization_id', '=', whose.organization_id)
        .where('creator_user_id', '=', whose.user_id)
        .returningAll()
        .execute();
      return rows.map(toKey).sort((a, b) => (a.hash < b.hash ? -1 : 1));
    },

    /** Disables keys, or changes their owner. */
    updateAll: async (
      which: { organization_id: string; hashes: readonly string[] },
      change: Partial<Pick<StoredKey, 'disabled' | 'creator_user_id'>> & { updated_at: string },
    ): Promise<void> => {
      for (const chunk of portionsOf(which.hashes)) {
        await queries
          .updateTable('api_keys')
          .set(change)
          .set(({ eb }) => ({ version: eb('version', '+', 1) }))
          .where('organization_id', '=', which.organization_id)
          .where('hash', 'in', chunk)
          .execute();
      }
    },

    update: async ({ organization_id, hash }: KeyId, change: KeyChange): Promise<StoredKey> => {
      const row = await queries
        .updateTable('api_keys')
        .set(change)
        .set(({ eb }) => ({ version: eb('version', '+', 1) }))
        .where('organization_id', '=', organization_id)
        .where('hash', '=', hash)
        .returningAll()
        .executeTakeFirstOrThrow();
      const key = toKey(row);
      await budgetStore(queries).keepKey(key, change.updated_at);
      return key;
    },

    /** Records that a request used the previous secret of a key, unless that secret is another one meanwhile. No change of the key. */
    markPreviousUse: async (digest: string, at: string): Promise<void> => {
      await queries
        .updateTable('api_keys')
        .set({ previous_secret_used_at: at })
        .where('previous_secret_hash', '=', digest)
        .where((eb) => eb.or([eb('previous_secret_used_at', 'is', null), eb('previous_secret_used_at', '<', at)]))
        .execute();
    },

    /**
     * Deletes keys. All keys that were made with them must be among them. Returns the deleted assignments of guardrails. Their
     * usage and generations are kept.
     */
    delete: async ({
      organization_id,
      keys,
    }: {
      organization_id: string;
      keys: readonly Pick<StoredKey, 'id' | 'hash'>[];
    }) => {
      const removed: { id: string; guardrail_id: string; key_hash: string }[] = [];
      // The newest first: keys are deleted before their parents.
      const hashes = [...keys].sort((a, b) => b.id - a.id).map(({ hash }) => hash);
      for (const chunk of portionsOf(hashes)) {
        const unassigned = await queries
          .deleteFrom('guardrail_key_assignments')
          .where('organization_id', '=', organization_id)
          .where('key_hash', 'in', chunk)
          .returning(['id', 'guardrail_id', 'key_hash'])
          .execute();
        append(removed, unassigned);
        await queries
          .deleteFrom('api_keys')
          .where('organization_id', '=', organization_id)
          .where('hash', 'in', chunk)
          .execute();
      }
      const payers = hashes.map((id) => ({ by: 'key_hash' as const, id, organization_id }));
      await budgetStore(queries).close({ payers });
      return removed;
    },

    /** In the order of creation. */
    listBy: async (filter: KeyFilter, page?: Page): Promise<StoredKey[]> => {
      let query = queries.selectFrom('api_keys').selectAll().where('organization_id', '=', filter.organization_id);
      for (const column of ['workspace_id', 'is_management', 'disabled', 'creator_user_id'] as const) {
        const value = filter[column];
        if (value !== undefined) query = query.where(column, '=', value);
      }
      let ordered = query.orderBy('id');
      if (page) ordered = ordered.limit(page.limit).offset(page.offset);
      return (await ordered.execute()).map(toKey);
    },

    /** The usage of each of these keys, over all time and since each day of `starts`. */
    findUsages: async (hashes: readonly string[], starts: WindowStarts): Promise<Map<string, KeyUsage>> => {
      const sum = (column: 'usage_nano' | 'byok_usage_nano', since: string) =>
        sql<number>`CAST(SUM(CASE WHEN day >= ${since} THEN ${sql.ref(column)} ELSE 0 END) AS BIGINT)`;
      const sums = (column: 'usage_nano' | 'byok_usage_nano') => ({
        total: sum(column, ''),
        daily: sum(column, starts.daily),
        weekly: sum(column, starts.weekly),
        monthly: sum(column, starts.monthly),
      });
      const [usage, byok] = [sums('usage_nano'), sums('byok_usage_nano')];
      const rows =
        hashes.length === 0
          ? []
          : await queries
              .selectFrom('usage_days')
              .select([
                'scope_id',
                usage.total.as('total'),
                usage.daily.as('daily'),
                usage.weekly.as('weekly'),
                usage.monthly.as('monthly'),
                byok.total.as('byok_total'),
                byok.daily.as('byok_daily'),
                byok.weekly.as('byok_weekly'),
                byok.monthly.as('byok_monthly'),
                sql<string | null>`MAX(last_used_at)`.as('last_used_at'),
              ])
              .where('scope', '=', 'key')
              .where('scope_id', 'in', hashes)
              .groupBy('scope_id')
              .execute();
      const counted = await findCounted(queries, hashes, starts);
      const usages = new Map<string, KeyUsage>(hashes.map((hash) => [hash, { ...UNUSED, ...counted.get(hash) }]));
      for (const row of rows) {
        usages.set(row.scope_id, {
          ...counted.get(row.scope_id),
          usage: { total: row.total, daily: row.daily, weekly: row.weekly, monthly: row.monthly },
          byok_usage: {
            total: row.byok_total,
            daily: row.byok_daily,
            weekly: row.byok_weekly,
            monthly: row.byok_monthly,
          },
          ...(row.last_used_at === null ? {} : { last_used_at: row.last_used_at }),
        });
      }
      return usages;
    },

    findUsage: async (hash: string, starts: WindowStarts): Promise<KeyUsage> =>
      (await keyStore(queries).findUsages([hash], starts)).get(hash) ?? UNUSED,
  };
}

export type KeyStore = ReturnType<typeof keyStore>;

/** What was spent in the current windows of these keys' own limits, and the part of the windows that is leased to lost nodes and cannot be spent. */
async function findCounted(queries: Queries, hashes: readonly string[], starts: WindowStarts) {
  if (hashes.length === 0) return new Map<string, { counted: number; stuck: number }>();
  const rows = await queries
    .selectFrom('ledger_budgets as b')
    .innerJoin('ledger_windows as w', 'w.budget_id', 'b.id')
    .select(['b.subject', 'b.id', 'w.window_start', 'w.leased'])
    .select((eb) => eb('w.spent', '+', settledOf('w')).as('spent'))
    .where('b.scope', '=', 'key')
    .where(
      'b.subject',
      'in',
      hashes.map((hash) => `key:${hash}`),
    )
    .where('b.limit_nano', 'is not', null)
    .where(
      'w.window_start',
      '=',
      sql<string>`CASE b.reset_interval WHEN 'daily' THEN ${starts.daily} WHEN 'weekly' THEN ${starts.weekly}
        WHEN 'monthly' THEN ${starts.monthly} ELSE '' END`,
    )
    .execute();
  const stuck = await findStuck(queries, rows, starts.at);
  return new Map(
    rows.map(({ subject, id, spent }) => [subject.slice('key:'.length), { counted: spent, stuck: stuck.get(id) ?? 0 }]),
  );
}

/** By budget: the part of these windows that is leased to nodes not seen for `limits.node_lost_ms`. */
async function findStuck(
  queries: Queries,
  windows: readonly { id: string; window_start: string; leased: number }[],
  at: number,
): Promise<Map<string, number>> {
  const leased = windows.filter((window) => window.leased > 0);
  if (leased.length === 0) return new Map();
  const rows = await queries
    .selectFrom('ledger_leases as l')
    .innerJoin('ledger_nodes as n', 'n.id', 'l.node_id')
    .select(['l.budget_id', 'l.window_start', sql<number>`CAST(SUM(l.amount) AS BIGINT)`.as('amount')])
    .where(
      'l.budget_id',
      'in',
      leased.map(({ id }) => id),
    )
    .where('n.seen_at', '<', at - limits.node_lost_ms)
    .groupBy(['l.budget_id', 'l.window_start'])
    .execute();
  const isOpen = ({ budget_id, window_start }: { budget_id: string; window_start: string }) =>
    leased.some((window) => window.id === budget_id && window.window_start === window_start);
  return new Map(rows.filter(isOpen).map(({ budget_id, amount }) => [budget_id, amount]));
}

/** Inserts a key's ancestors: its parent, and the parent's ancestors. */
async function insertAncestors(tx: Queries, { hash, parent_hash }: StoredKey): Promise<void> {
  if (parent_hash === null) return;
  const known = await tx
    .selectFrom('api_key_ancestors')
    .select('ancestor_hash')
    .where('key_hash', '=', parent_hash)
    .execute();
  const ancestors = [parent_hash, ...known.map(({ ancestor_hash }) => ancestor_hash)];
  await tx
    .insertInto('api_key_ancestors')
    .values(ancestors.map((ancestorHash) => ({ key_hash: hash, ancestor_hash: ancestorHash })))
    .execute();
}

/** Runs in the transaction that `queries` is already, or in a new one. */
function inTransaction<T>(queries: Queries, run: (tx: Queries) => Promise<T>): Promise<T> {
  return queries.isTransaction ? run(queries) : queries.transaction().execute(run);
}
