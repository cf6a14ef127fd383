import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { GuardrailSettings, StoredGuardrail } from '../guardrails/policy/guardrail.ts';
import type { BoundGuardrail, KeyAssignment, MemberAssignment } from '../schemas/guardrail.ts';
import type { Page, Paged } from '../schemas/page.ts';
import { isStorable } from '../schemas/text.ts';
import { budgetStore } from './budgets.ts';
import type { Queries } from './queries.ts';
import { nextNumber } from './sequence.ts';

/** Names a guardrail of an organization; those of other organizations do not exist for it. */
export interface GuardrailId {
  organization_id: string;
  id: string;
}

/** The assignments to list. */
export interface AssignmentFilter {
  organization_id: string;
  guardrail_id?: string | undefined;
}

type Row = Omit<StoredGuardrail, 'reset_interval'> & { reset_interval: string | null };

/** The stored guardrail; the column's CHECK allows only the values of the cast. */
const toGuardrail = (row: Row): StoredGuardrail => ({
  ...row,
  reset_interval: row.reset_interval as StoredGuardrail['reset_interval'],
});

/** The part of a stored guardrail that requests are checked against. */
export function toBoundGuardrail(row: Omit<BoundGuardrail, 'scope'> & { scope: string }): BoundGuardrail {
  return {
    id: row.id,
    scope: row.scope as BoundGuardrail['scope'],
    allowed_models: row.allowed_models,
    ignored_models: row.ignored_models,
    allowed_providers: row.allowed_providers,
    ignored_providers: row.ignored_providers,
    enforce_zdr: row.enforce_zdr,
    enforce_zdr_anthropic: row.enforce_zdr_anthropic,
    enforce_zdr_openai: row.enforce_zdr_openai,
    enforce_zdr_google: row.enforce_zdr_google,
    enforce_zdr_other: row.enforce_zdr_other,
    enforce_zdr_xai: row.enforce_zdr_xai,
    content_filter_builtins: row.content_filter_builtins,
    content_filters: row.content_filters,
    content_filter_output: row.content_filter_output,
    content_filter_reversible: row.content_filter_reversible,
  };
}

const lists = [
  'allowed_models',
  'ignored_models',
  'allowed_providers',
  'ignored_providers',
  'content_filter_builtins',
  'content_filters',
] as const;
type Written = Omit<GuardrailSettings, (typeof lists)[number]> & Partial<Record<(typeof lists)[number], string | null>>;

function written(settings: GuardrailSettings): Written {
  const columns: Record<string, unknown> = { ...settings };
  for (const list of lists) {
    const value = settings[list];
    if (value !== undefined) columns[list] = value === null ? null : JSON.stringify(value);
  }
  return columns as Written;
}

/** Guardrails. */
export function guardrailStore(queries: Queries) {
  return {
    insert: async (
      guardrail: GuardrailSettings & {
        organization_id: string;
        workspace_id: string;
        name: string;
        created_at: string;
      },
    ): Promise<StoredGuardrail> => {
      const row = await queries
        .insertInto('guardrails')
        .values({
          include_byok_in_budgets: false,
          ...written(guardrail),
          organization_id: guardrail.organization_id,
          workspace_id: guardrail.workspace_id,
          name: guardrail.name,
          created_at: guardrail.created_at,
          updated_at: null,
          id: randomUUID(),
          seq: await nextNumber(queries, 'guardrails'),
          version: 1,
        })
        .returningAll()
        .executeTakeFirstOrThrow();
      return toGuardrail(row);
    },

    find: async ({ organization_id, id }: GuardrailId): Promise<StoredGuardrail | undefined> => {
      if (!isStorable(id)) return undefined;
      const row = await queries
        .selectFrom('guardrails')
        .selectAll()
        .where('organization_id', '=', organization_id)
        .where('id', '=', id)
        .executeTakeFirst();
      return row && toGuardrail(row);
    },

    /** The guardrail, locked until the transaction ends. */
    lock: async ({ organization_id, id }: GuardrailId): Promise<StoredGuardrail | undefined> => {
      if (!isStorable(id)) return undefined;
      const row = await queries
        .updateTable('guardrails')
        .set(({ ref }) => ({ version: ref('version') }))
        .where('organization_id', '=', organization_id)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst();
      return row && toGuardrail(row);
    },

    update: async (id: string, change: GuardrailSettings & { updated_at: string }): Promise<StoredGuardrail> => {
      const row = await queries
        .updateTable('guardrails')
        .set({ ...written(change), updated_at: change.updated_at })
        .set(({ eb }) => ({ version: eb('version', '+', 1) }))
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow();
      await budgetStore(queries).keepGuardrail(id, change.updated_at);
      return toGuardrail(row);
    },

    /** Deletes the guardrail; it must have no assignments. */
    delete: async (id: string): Promise<void> => {
      await queries.deleteFrom('guardrails').where('id', '=', id).execute();
      await budgetStore(queries).close({ guardrail_id: id });
    },

    /** The guardrails that apply to a key: its own, those of its parent keys, of its owner and of its workspace; one may be there in several scopes. */
    listHolding: async (holder: {
      organization_id: string;
      workspace_id: string;
      key_hash: string | null;
      user_id: string | null;
      parents?: readonly { key_hash: string }[];
    }): Promise<BoundGuardrail[]> => {
      const { organization_id, workspace_id, key_hash, user_id, parents = [] } = holder;
      const keyHashes = [key_hash ?? '', ...parents.map((parent) => parent.key_hash)];
      const guardrails = () => queries.selectFrom('guardrails as g').where('g.organization_id', '=', organization_id);
      const ofKey = guardrails()
        .innerJoin('guardrail_key_assignments as a', 'a.guardrail_id', 'g.id')
        .where('a.organization_id', '=', organization_id)
        .where('a.key_hash', 'in', keyHashes)
        .selectAll('g')
        .select(sql.lit('api-key').as('scope'));
      const ofMember = guardrails()
        .innerJoin('guardrail_member_assignments as a', 'a.guardrail_id', 'g.id')
        .where('a.organization_id', '=', organization_id)
        .where('a.user_id', '=', user_id ?? '')
        .selectAll('g')
        .select(sql.lit('member').as('scope'));
      const ofWorkspace = guardrails()
        .innerJoin('workspaces as w', 'w.default_guardrail_id', 'g.id')
        .where('w.organization_id', '=', organization_id)
        .where('w.id', '=', workspace_id)
        .selectAll('g')
        .select(sql.lit('workspace').as('scope'));
      const rows = await ofWorkspace.unionAll(ofMember).unionAll(ofKey).execute();
      return rows.map(toBoundGuardrail);
    },

    listBy: async (
      { organization_id, workspace_id }: { organization_id: string; workspace_id: string },
      page: Page,
    ): Promise<Paged<StoredGuardrail>> => {
      const query = queries
        .selectFrom('guardrails')
        .where('organization_id', '=', organization_id)
        .where('workspace_id', '=', workspace_id);
      const { count } = await query.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow();
      const rows = await query.selectAll().orderBy('seq').limit(page.limit).offset(page.offset).execute();
      return { total_count: count, data: rows.map(toGuardrail) };
    },
  };
}

export type GuardrailStore = ReturnType<typeof guardrailStore>;

/** An assignment that a new one of the same key or member replaces. */
export interface FormerAssignment {
  id: string;
  guardrail_id: string;
  /** The key's hash or the user's id. */
  assignee: string;
}

/** A guardrail, and the keys (by hash) or members (by user id) that it is assigned to. */
export interface Assigned {
  organization_id: string;
  guardrail_id: string;
  assignees: readonly string[];
}

/** Assignments of guardrails to keys and members. Each has at most one. */
export function assignmentStore(queries: Queries) {
  const keys = (filter: AssignmentFilter) => {
    const query = queries
      .selectFrom('guardrail_key_assignments')
      .where('guardrail_key_assignments.organization_id', '=', filter.organization_id);
    return filter.guardrail_id === undefined ? query : query.where('guardrail_id', '=', filter.guardrail_id);
  };
  const members = (filter: AssignmentFilter) => {
    const query = queries
      .selectFrom('guardrail_member_assignments')
      .where('organization_id', '=', filter.organization_id);
    return filter.guardrail_id === undefined ? query : query.where('guardrail_id', '=', filter.guardrail_id);
  };
  return {
    /**
     * Waits until no other transaction locks several keys or members, and keeps others waiting until this one ends: two that
     * lock them in different orders would deadlock.
     */
    takeTurn: async (): Promise<void> => void (await nextNumber(queries, 'guardrail_assignments', 0)),

    /**
     * Locks the keys with these hashes until the transaction ends, in one order, so that two transactions that assign the same
     * keys cannot deadlock. Returns the hashes of those that the organization has.
     */
    lockKeys: async (organizationId: string, hashes: readonly string[]): Promise<Set<string>> => {
      const locked = new Set<string>();
      for (const hash of [...hashes].sort()) {
        const row = await queries
          .updateTable('api_keys')
          .set(({ ref }) => ({ version: ref('version') }))
          .where('organization_id', '=', organizationId)
          .where('is_management', '=', false)
          .where('hash', '=', hash)
          .returning('hash')
          .executeTakeFirst();
        if (row) locked.add(hash);
      }
      return locked;
    },

    /** Locks these members of the organization as `lockKeys` locks keys. Returns the user ids of those that exist. */
    lockMembers: async (organizationId: string, userIds: readonly string[]): Promise<Set<string>> => {
      const locked = new Set<string>();
      for (const userId of [...userIds].sort()) {
        const row = await queries
          .updateTable('organization_members')
          .set(({ ref }) => ({ seq: ref('seq') }))
          .where('organization_id', '=', organizationId)
          .where('user_id', '=', userId)
          .returning('user_id')
          .executeTakeFirst();
        if (row) locked.add(userId);
      }
      return locked;
    },

    findKeys: async ({ organization_id }: AssignmentFilter, hashes: readonly string[]): Promise<FormerAssignment[]> =>
      keys({ organization_id })
        .select(['id', 'guardrail_id', 'key_hash as assignee'])
        .where('key_hash', 'in', [...hashes])
        .execute(),

    findMembers: async (
      { organization_id }: AssignmentFilter,
      userIds: readonly string[],
    ): Promise<FormerAssignment[]> =>
      members({ organization_id })
        .select(['id', 'guardrail_id', 'user_id as assignee'])
        .where('user_id', 'in', [...userIds])
        .execute(),

    /** Assigns a guardrail to keys without one. Returns the ids of the assignments, in the order of the keys. */
    insertKeys: async (assigned: Assigned & { assigned_by: string | null; created_at: string }): Promise<string[]> => {
      const { assignees, ...shared } = assigned;
      const first = await nextNumber(queries, 'guardrail_assignments', assignees.length);
      const rows = assignees.map((keyHash, index) => ({
        id: randomUUID(),
        seq: first + index,
        key_hash: keyHash,
        ...shared,
      }));
      await queries.insertInto('guardrail_key_assignments').values(rows).execute();
      await budgetStore(queries).keepGuardrail(assigned.guardrail_id, assigned.created_at);
      return rows.map(({ id }) => id);
    },

    /** Assigns a guardrail to members without one. Returns the ids of the assignments, in the order of the members. */
    insertMembers: async (
      assigned: Assigned & { assigned_by: string | null; created_at: string },
    ): Promise<string[]> => {
      const { assignees, ...shared } = assigned;
      const first = await nextNumber(queries, 'guardrail_assignments', assignees.length);
      const rows = assignees.map((userId, index) => ({
        id: randomUUID(),
        seq: first + index,
        user_id: userId,
        ...shared,
      }));
      await queries.insertInto('guardrail_member_assignments').values(rows).execute();
      await budgetStore(queries).keepGuardrail(assigned.guardrail_id, assigned.created_at);
      return rows.map(({ id }) => id);
    },

    /** Returns the deleted assignments: another transaction may have deleted some. */
    deleteKeys: async (ids: readonly string[]): Promise<FormerAssignment[]> => {
      const deleted = await queries
        .deleteFrom('guardrail_key_assignments')
        .where('id', 'in', [...ids])
        .returning(['id', 'guardrail_id', 'organization_id', 'key_hash as assignee'])
        .execute();
      for (const { guardrail_id, organization_id, assignee: id } of deleted) {
        await budgetStore(queries).close({ guardrail_id, payers: [{ by: 'key_hash', id, organization_id }] });
      }
      return deleted;
    },

    /** Returns the deleted assignments: another transaction may have deleted some. */
    deleteMembers: async (ids: readonly string[]): Promise<FormerAssignment[]> => {
      const deleted = await queries
        .deleteFrom('guardrail_member_assignments')
        .where('id', 'in', [...ids])
        .returning(['id', 'guardrail_id', 'organization_id', 'user_id as assignee'])
        .execute();
      for (const { guardrail_id, organization_id, assignee: id } of deleted) {
        await budgetStore(queries).close({ guardrail_id, payers: [{ by: 'user_id', id, organization_id }] });
      }
      return deleted;
    },

    /** Deletes the guardrail's assignments to keys, and returns them. */
    deleteAllKeys: (guardrailId: string): Promise<FormerAssignment[]> =>
      queries
        .deleteFrom('guardrail_key_assignments')
        .where('guardrail_id', '=', guardrailId)
        .returning(['id', 'guardrail_id', 'key_hash as assignee'])
        .execute(),

    /** Deletes the guardrail's assignments to members, and returns them. */
    deleteAllMembers: (guardrailId: string): Promise<FormerAssignment[]> =>
      queries
        .deleteFrom('guardrail_member_assignments')
        .where('guardrail_id', '=', guardrailId)
        .returning(['id', 'guardrail_id', 'user_id as assignee'])
        .execute(),

    listKeys: async (filter: AssignmentFilter, page: Page): Promise<Paged<KeyAssignment>> => {
      const { count } = await keys(filter)
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow();
      const data = await keys(filter)
        .innerJoin('api_keys', 'api_keys.hash', 'guardrail_key_assignments.key_hash')
        .select([
          'guardrail_key_assignments.id as id',
          'guardrail_id',
          'key_hash',
          'api_keys.name as key_name',
          'api_keys.label as key_label',
          'assigned_by',
          'guardrail_key_assignments.created_at as created_at',
        ])
        .orderBy('seq')
        .limit(page.limit)
        .offset(page.offset)
        .execute();
      return { total_count: count, data };
    },

    listMembers: async (filter: AssignmentFilter, page: Page): Promise<Paged<MemberAssignment>> => {
      const { count } = await members(filter)
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow();
      const data = await members(filter)
        .select(['id', 'guardrail_id', 'organization_id', 'user_id', 'assigned_by', 'created_at'])
        .orderBy('seq')
        .limit(page.limit)
        .offset(page.offset)
        .execute();
      return { total_count: count, data };
    },
  };
}

export type AssignmentStore = ReturnType<typeof assignmentStore>;
