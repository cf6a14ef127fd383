import { randomUUID } from 'node:crypto';
import type { OrganizationMember } from '../schemas/organization.ts';
import type { Page, Paged } from '../schemas/page.ts';
import type { WorkspaceMember } from '../schemas/workspace.ts';
import type { Queries } from './queries.ts';
import { nextNumber } from './sequence.ts';

/** Names a workspace whose members are meant; members of the default workspace are all members of the organization. */
export interface Membership {
  organization_id: string;
  workspace_id: string;
  is_default: boolean;
}

/** A member of an organization, with the user's name. */
export interface NamedMember extends Omit<OrganizationMember, 'email'> {
  email: string | null;
  name: string;
}

interface RoleRow {
  role: string;
}
const withRole = <T extends RoleRow>(row: T) => ({ ...row, role: row.role as WorkspaceMember['role'] });

/** Members of organizations and of their workspaces. */
export function memberStore(queries: Queries) {
  const organization = (organizationId: string) =>
    queries.selectFrom('organization_members').where('organization_members.organization_id', '=', organizationId);
  return {
    /** The roles of these users in the organization; users that are not members are missing. */
    findRoles: async (
      organizationId: string,
      userIds: readonly string[],
    ): Promise<Map<string, WorkspaceMember['role']>> => {
      const rows = await organization(organizationId)
        .select(['user_id', 'role'])
        .where('user_id', 'in', [...userIds])
        .execute();
      return new Map(rows.map((row) => [row.user_id, withRole(row).role]));
    },

    /**
     * The roles of these users, locked until the transaction ends, in one order, so that two transactions that lock the same
     * users cannot deadlock. Users that are not members are missing.
     */
    lockRoles: async (
      organizationId: string,
      userIds: readonly string[],
    ): Promise<Map<string, WorkspaceMember['role']>> => {
      const roles = new Map<string, WorkspaceMember['role']>();
      for (const userId of [...new Set(userIds)].sort()) {
        const row = await queries
          .updateTable('organization_members')
          .set(({ ref }) => ({ seq: ref('seq') }))
          .where('organization_id', '=', organizationId)
          .where('user_id', '=', userId)
          .returning('role')
          .executeTakeFirst();
        if (row) roles.set(userId, withRole(row).role);
      }
      return roles;
    },

    /** These members and all administrators with their roles, locked against changes of roles as by `lockRoles`. */
    lockForRoles: async (
      organizationId: string,
      userIds: readonly string[],
    ): Promise<Map<string, WorkspaceMember['role']>> => {
      const rows = await organization(organizationId).select('user_id').where('role', '=', 'admin').execute();
      const administrators = rows.map(({ user_id }) => user_id);
      return memberStore(queries).lockRoles(organizationId, [...administrators, ...userIds]);
    },

    /** Changes a member's role, in the organization and in all of its workspaces. */
    setRole: async (member: { organization_id: string; user_id: string; role: WorkspaceMember['role'] }) => {
      const { organization_id, user_id, role } = member;
      const workspaces = queries.selectFrom('workspaces').select('id').where('organization_id', '=', organization_id);
      await queries
        .updateTable('organization_members')
        .set({ role })
        .where('organization_id', '=', organization_id)
        .where('user_id', '=', user_id)
        .execute();
      await queries
        .updateTable('workspace_members')
        .set({ role })
        .where('workspace_id', 'in', workspaces)
        .where('user_id', '=', user_id)
        .execute();
    },

    /** The members of the organization, in the order in which they joined. */
    listOrganization: async (organizationId: string, page: Page): Promise<Paged<NamedMember>> => {
      const { count } = await organization(organizationId)
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow();
      const rows = await organization(organizationId)
        .innerJoin('users', 'users.id', 'organization_members.user_id')
        .select(['users.id as id', 'name', 'email', 'first_name', 'last_name', 'role'])
        .orderBy('seq')
        .limit(page.limit)
        .offset(page.offset)
        .execute();
      return {
        total_count: count,
        data: rows.map((row) => ({ ...row, role: row.role === 'admin' ? 'org:admin' : 'org:member' })),
      };
    },

    /** The members of a workspace, in the order in which they joined. */
    listBy: async (which: Membership, page: Page): Promise<Paged<WorkspaceMember>> => {
      const { organization_id, workspace_id, is_default } = which;
      if (is_default) {
        const { count } = await organization(organization_id)
          .select(({ fn }) => fn.countAll<number>().as('count'))
          .executeTakeFirstOrThrow();
        const rows = await organization(organization_id)
          .select(['id', 'user_id', 'role', 'created_at'])
          .orderBy('seq')
          .limit(page.limit)
          .offset(page.offset)
          .execute();
        return { total_count: count, data: rows.map((row) => ({ ...withRole(row), workspace_id })) };
      }
      const query = queries.selectFrom('workspace_members').where('workspace_id', '=', workspace_id);
      const { count } = await query.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow();
      const rows = await query
        .select(['id', 'workspace_id', 'user_id', 'role', 'created_at'])
        .orderBy('seq')
        .limit(page.limit)
        .offset(page.offset)
        .execute();
      return { total_count: count, data: rows.map(withRole) };
    },

    /** The memberships of these users in a workspace, by user id. */
    findBy: async (which: Membership, userIds: readonly string[]): Promise<Map<string, WorkspaceMember>> => {
      const { organization_id, workspace_id, is_default } = which;
      const rows = is_default
        ? await organization(organization_id)
            .select(['id', 'user_id', 'role', 'created_at'])
            .where('user_id', 'in', [...userIds])
            .execute()
        : await queries
            .selectFrom('workspace_members')
            .select(['id', 'user_id', 'role', 'created_at'])
            .where('workspace_id', '=', workspace_id)
            .where('user_id', 'in', [...userIds])
            .execute();
      return new Map(rows.map((row) => [row.user_id, { ...withRole(row), workspace_id }]));
    },

    /** Deletes the memberships of a user in all workspaces of an organization, and returns them. */
    deleteFromWorkspaces: async ({ organization_id, user_id }: { organization_id: string; user_id: string }) => {
      const workspaces = queries.selectFrom('workspaces').select('id').where('organization_id', '=', organization_id);
      const rows = await queries
        .deleteFrom('workspace_members')
        .where('workspace_id', 'in', workspaces)
        .where('user_id', '=', user_id)
        .returning(['id', 'workspace_id', 'user_id', 'role', 'created_at'])
        .execute();
      return rows.map(withRole);
    },

    deleteFromOrganization: async (member: { organization_id: string; user_id: string }): Promise<void> => {
      await queries
        .deleteFrom('organization_members')
        .where('organization_id', '=', member.organization_id)
        .where('user_id', '=', member.user_id)
        .execute();
    },

    insert: async (membership: Omit<WorkspaceMember, 'id'>): Promise<WorkspaceMember> => {
      const member = { id: randomUUID(), ...membership };
      await queries
        .insertInto('workspace_members')
        .values({ ...member, seq: await nextNumber(queries, 'workspace_members') })
        .execute();
      return member;
    },

    updateRole: async (id: string, role: WorkspaceMember['role']): Promise<void> => {
      await queries.updateTable('workspace_members').set({ role }).where('id', '=', id).execute();
    },

    delete: async (ids: readonly string[]): Promise<void> => {
      await queries
        .deleteFrom('workspace_members')
        .where('id', 'in', [...ids])
        .execute();
    },
  };
}

export type MemberStore = ReturnType<typeof memberStore>;
